package transport

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// connect opens an authenticated connection to the pinned host.
func connect(ctx context.Context, t Target, l Limits) (*ssh.Client, error) {
	// check: HostKeyNotPinned: a caller that forgot the pin must not get a connection
	if t.Pin.empty() {
		return nil, failed(HostKeyNotPinned, "no host key is pinned")
	}
	if t.Login == nil {
		return nil, failed(LoginKeyInvalid, "no login key")
	}
	dialer := net.Dialer{Timeout: l.Dial}
	conn, err := dialer.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, failed(Unreachable, "connecting to %.100q: %.200v", t.Address, err)
	}
	// a cancelled context must end a handshake as well
	stop := context.AfterFunc(ctx, func() { closeQuietly(conn) })
	defer stop()
	client, err := handshake(conn, t, l)
	if err != nil {
		closeQuietly(conn)
		return nil, err
	}
	return client, nil
}

// handshake is bounded as a whole by the connection's deadline: a host that
// says nothing, or talks for ever before its version or in its banner, is as
// unreachable as one that is switched off.
func handshake(conn net.Conn, t Target, l Limits) (*ssh.Client, error) {
	if err := conn.SetDeadline(time.Now().Add(l.Handshake)); err != nil {
		return nil, failed(Unreachable, "bounding the handshake: %v", err)
	}
	config := &ssh.ClientConfig{
		User:              t.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(t.Login)},
		HostKeyCallback:   t.Pin.callback(),
		HostKeyAlgorithms: t.Pin.Algorithms(),
		ClientVersion:     "SSH-2.0-hostwarrant-relay",
	}
	c, channels, requests, err := ssh.NewClientConn(conn, t.Address, config)
	if err != nil {
		return nil, t.compare(handshakeFault(err))
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, failed(Unreachable, "ending the handshake: %v", err)
	}
	return ssh.NewClient(c, channels, requests), nil
}

func handshakeFault(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	// a host without any key of a pinned type has, in any case, another key
	if e, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok && e.What == "host key" {
		return failed(HostKeyMismatch, "the host has no key of a pinned type")
	}
	return failed(Unreachable, "SSH handshake: %.200v", err)
}

// compare adds to the fault of a host with another key what to hold that key against: a pin is public.
func (t Target) compare(e *Error) *Error {
	if e.Fault == HostKeyMismatch {
		e.What += "; " + cmp.Or(t.PinIn, "the caller") + " pins " + t.Pin.fingerprints() + ": compare at the host's console"
	}
	return e
}

// closeQuietly closes what is being given up; how that goes changes nothing.
func closeQuietly(c interface{ Close() error }) {
	if err := c.Close(); err != nil {
		return
	}
}
