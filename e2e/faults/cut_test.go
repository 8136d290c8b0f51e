//go:build linux

package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// quick gives a host up after three seconds without a sign of life.
func quick(o delivery.Order) delivery.Order {
	o.Limits.Keepalive, o.Limits.Misses = time.Second, 3
	o.Limits.Dial, o.Limits.Handshake, o.Limits.Channel = 5*time.Second, 5*time.Second, 5*time.Second
	return o
}

// What the relay loses while a script runs it asks for afterwards: the script runs to its end, once.
func TestAConnectionThatIsLostWhileAScriptRuns(t *testing.T) {
	much := "head -c 1000000 /dev/zero | tr '\\0' x\n"
	cases := map[string]struct {
		before        string // what the script does before it waits
		lose, mend    func(*testing.T, target)
		why           string
		silent        bool // until it is mended
		endsMeanwhile bool
	}{
		"its sshd processes are killed": {
			lose: func(t *testing.T, h target) { h.hangUp(t) }, mend: func(*testing.T, target) {}, why: "before the command's exit status",
		},
		"its sshd is stopped": {
			lose: func(t *testing.T, h target) { h.signal(t, "STOP") }, mend: func(t *testing.T, h target) { h.signal(t, "CONT") },
			why: "no sign of life", silent: true,
		},
		"the cable is pulled": {lose: unplug, mend: plug, why: "no sign of life", silent: true},
		"the cable is pulled in the middle of the output": {
			before: much, lose: unplug, mend: plug, why: "no sign of life", silent: true,
		},
		"the cable is pulled before the script's end": {
			before: much, lose: unplug, mend: plug, why: "no sign of life", silent: true, endsMeanwhile: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			s := h.start(t, quick(h.order(t, c.before+waiting+"exit 5\n")))
			c.lose(t, h)
			if c.endsMeanwhile {
				h.ends(t, s.order.Envelope.RunID)
			}
			isCut(t, s.end(t), c.why)
			if c.silent {
				memory, r := recall(t, s.order)
				if memory != delivery.NotAsked || r.Result != delivery.Unreachable {
					t.Fatalf("asked meanwhile: memory %d, %+v", memory, r)
				}
			}
			c.mend(t, h)
			if !c.endsMeanwhile {
				h.runsStill(t, s.order)
				h.release(t)
			}
			remembers(t, s.order, delivery.ScriptFailed, 10, 5)
			h.repeats(t, s.order, 10, 5)
		})
	}
}

func unplug(t *testing.T, h target) {
	t.Helper()
	must(t, h.Unplug(t.Context()))
}

func plug(t *testing.T, h target) {
	t.Helper()
	must(t, h.Plug(t.Context()))
}

// ends lets the script go and waits for the host's record of its end.
func (h target) ends(t *testing.T, id envelope.RunID) {
	t.Helper()
	h.release(t)
	testkit.Eventually(t, stepLimit, "the record of the end", func() bool {
		return strings.Contains(h.read(t, "/var/lib/hostwarrant/runs/"+string(id)), "state=ended")
	})
}

// runsStill wants the host to say that the script runs.
func (h target) runsStill(t *testing.T, o delivery.Order) {
	t.Helper()
	var memory delivery.Memory
	var r delivery.Report
	testkit.Eventually(t, stepLimit, "the host's answer", func() bool {
		memory, r = recall(t, o)
		return memory != delivery.NotAsked
	})
	if memory != delivery.Running || r.Result != delivery.Cut {
		t.Fatalf("asked while the script runs: memory %d, %+v", memory, r)
	}
}

// repeats sends the order again, as a relay would that did not ask: the host answers with its record and runs nothing.
func (h target) repeats(t *testing.T, o delivery.Order, shim, exit int) {
	t.Helper()
	r := deliver(t, o)
	if r.ShimExit != shim || r.ScriptExit != exit || r.Trailer != delivery.None {
		t.Fatalf("sent once more: %+v", r)
	}
	h.once(t)
}

// Two relays that both believe to lead send one run, at the same time and one after the other.
func TestTwoRelaysThatSendOneRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	s := h.start(t, h.order(t, waiting))
	if r := deliver(t, s.order); r.Result != delivery.Busy {
		t.Fatalf("sent a second time while it runs: %+v", r)
	}
	h.release(t)
	if r := s.end(t); r.Result != delivery.Succeeded || r.Trailer != delivery.Whole {
		t.Fatalf("the first: %+v", r)
	}
	h.repeats(t, s.order, 0, 0)
}

// The power goes: nobody can tell how far the script came, and nobody claims to.
func TestAHostThatLosesItsPower(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	s := h.start(t, quick(h.order(t, waiting)))
	must(t, h.Stop())
	isCut(t, s.end(t), "")
	if memory, r := recall(t, s.order); memory != delivery.NotAsked || r.Result != delivery.Unreachable {
		t.Fatalf("asked: memory %d, %+v", memory, r)
	}
}

// The relay ends a run that is too long for it, and one that it no longer waits for, by closing the connection: no
// signal reaches the script.
func TestAScriptIsNeverSignalledByARelayThatGoesAway(t *testing.T) {
	const traps = "trap 'echo got a signal >>/root/signalled' HUP INT QUIT PIPE TERM\n"
	cases := map[string]struct {
		change func(*delivery.Order)
		leave  func(*sending)
		why    string
	}{
		"its time is over":  {func(o *delivery.Order) { o.Limits.Run = 3 * time.Second }, func(*sending) {}, "no exit status within"},
		"it is told to end": {func(*delivery.Order) {}, func(s *sending) { s.cancel() }, "canceled"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			o := h.order(t, traps+waiting+"echo still here\necho to both >&2\nexit 5\n")
			c.change(&o)
			s := h.start(t, o)
			c.leave(s)
			isCut(t, s.end(t), c.why)
			h.runsStill(t, o)
			h.release(t)
			remembers(t, o, delivery.ScriptFailed, 10, 5)
			h.once(t)
			if got := h.read(t, "/root/signalled"); got != "" {
				t.Errorf("the script got a signal: %q", got)
			}
		})
	}
}
