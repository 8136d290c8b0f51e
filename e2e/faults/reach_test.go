//go:build linux

package faults

import (
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

const version = "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"

// says plays a host that sends the first text, and then the second one for ever.
func says(first, forEver string) func(net.Conn) {
	return func(c net.Conn) {
		_, err := c.Write([]byte(first))
		block := []byte(strings.Repeat(forEver, 1+4096/max(1, len(forEver))))
		for err == nil && forEver != "" {
			_, err = c.Write(block)
		}
	}
}

// ignored is an SSH_MSG_IGNORE in the clear, as RFC 4253 allows before the keys are exchanged.
func ignored() string {
	const padding = 8
	payload := append([]byte{2, 0, 0, 0, 16}, make([]byte, 16)...)
	packet := binary.BigEndian.AppendUint32(nil, uint32(1+len(payload)+padding))
	packet = append(append(packet, padding), payload...)
	return string(append(packet, make([]byte, padding)...))
}

// A host that is not there, or there and of no use, is Unreachable within the bounds, and nothing was begun: the
// relay has not even written that it would send.
func TestHostsThatAreOfNoUseAreUnreachable(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	o := h.order(t, "")
	o.Limits.Dial, o.Limits.Handshake = 4*time.Second, 2*time.Second
	l := shared.Lab(t)
	refused, err := l.RefusedAddr()
	must(t, err)
	played := func(play func(net.Conn)) string {
		host, err := l.PlayedHost(play)
		must(t, err)
		t.Cleanup(func() { must(t, host.Close()) })
		return host.AddrPort().String()
	}
	cases := map[string]struct{ address, text string }{
		"nothing listens":                        {refused.String(), "connecting to"},
		"no such host":                           {l.AbsentAddr().String(), "connecting to"},
		"port open and silent":                   {played(func(net.Conn) {}), "SSH handshake"},
		"version, then silence":                  {played(says(version, "")), "SSH handshake"},
		"half a version, then silence":           {played(says("SSH-2.0-Open", "")), "SSH handshake"},
		"lines before its version, for ever":     {played(says("", "welcome\r\n")), "SSH handshake"},
		"a line without an end":                  {played(says("", "x")), "SSH handshake"},
		"version, then noise for ever":           {played(says(version, "\x00\x00\x7f\xff")), "SSH handshake"},
		"version, then packets that say nothing": {played(says(version, ignored())), "SSH handshake"},
		"a web server":                           {played(says("HTTP/1.1 400 Bad Request\r\n\r\n", "")), "SSH handshake"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Target.Address = c.address
			unreachable(t, o, c.text)
		})
	}
}

// unreachable delivers to a host that must not be reached.
func unreachable(t *testing.T, o delivery.Order, text string) {
	t.Helper()
	begun := time.Now()
	r, err := delivery.Deliver(t.Context(), o, func() error { return errors.New("the relay began to send") })
	must(t, err)
	if r.Result != delivery.Unreachable || !strings.Contains(r.Message, text) || r.Trailer != delivery.None || r.Transcript != "" {
		t.Errorf("%+v, want Unreachable with %q", r, text)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// The kernel of a host takes connections for an sshd that is stopped; a host whose cable is out takes none.
func TestAHostThatStopsAnsweringIsUnreachable(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	o := h.order(t, "")
	short := o
	short.Limits.Dial, short.Limits.Handshake = 2*time.Second, 2*time.Second
	h.signal(t, "STOP")
	unreachable(t, short, "SSH handshake")
	h.signal(t, "CONT")
	must(t, h.Unplug(t.Context()))
	unreachable(t, short, "connecting to")
	must(t, h.Plug(t.Context()))
	if r := deliver(t, o); r.Result != delivery.Succeeded || r.Trailer != delivery.Whole {
		t.Fatalf("the same order afterwards: %+v", r)
	}
	h.once(t)
}

// signal sends a signal to every sshd of the host.
func (h target) signal(t *testing.T, name string) {
	t.Helper()
	h.Must(t, "for p in /proc/[0-9]*; do if [ \"$(cat $p/comm 2>/dev/null)\" = sshd ]; then kill -"+name+" ${p#/proc/}; fi; done")
}

// hangUp kills the sshd processes that serve a connection, not the one that listens.
func (h target) hangUp(t *testing.T) {
	t.Helper()
	h.Must(t, "for p in /proc/[0-9]*; do if [ \"$(cat $p/comm 2>/dev/null)\" = sshd ] && ! grep -qz listener $p/cmdline; then kill -KILL ${p#/proc/}; fi; done")
}
