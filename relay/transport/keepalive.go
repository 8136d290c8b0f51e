package transport

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"
)

// keepalive asks the host for a sign of life and gives up after too many
// intervals without one: TCP alone would wait for hours.
func keepalive(ctx context.Context, client *ssh.Client, l Limits, giveUp context.CancelCauseFunc) {
	ticker := time.NewTicker(l.Keepalive)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		answered := make(chan error, 1)
		go func() {
			_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		select {
		case <-ctx.Done():
			return
		case err := <-answered:
			if err == nil {
				continue
			}
		case <-time.After(l.Keepalive * time.Duration(l.Misses)):
		}
		giveUp(errors.New("the host gives no sign of life"))
		return
	}
}
