//go:build linux

package lab

import (
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// Target is how a relay with this login key reaches the host: as the account that is held to the shim, and by
// the host's own keys.
func (h *Host) Target(t testing.TB, loginKey []byte) transport.Target {
	t.Helper()
	login, err := transport.ParseLoginKey(loginKey)
	if err != nil {
		t.Fatal(err)
	}
	pin, err := transport.ParsePin([]byte(h.KnownHostLine()))
	if err != nil {
		t.Fatal(err)
	}
	return transport.Target{Address: h.SSHAddr(), User: "kpssh", Login: login, Pin: pin, Command: shimPath}
}

// RelayLimits are a relay's own, and a minute for the scripts of tests.
func RelayLimits() transport.Limits {
	l := transport.DefaultLimits()
	l.Run = time.Minute
	return l
}
