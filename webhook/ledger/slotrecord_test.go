package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func slotOf(name string) ledger.Slot {
	return ledger.Slot{Namespace: "pay", Bundle: "redis", Class: "base", Name: name}
}

// markOf is a mark of a version with content that is told by a digit.
func markOf(version int64, content string) ledger.SlotMark {
	hex := strings.Repeat(content, 64)
	return ledger.SlotMark{Version: version, Digest: hex, Bytes: hex}
}

func (w *world) recordSlots(t *testing.T, k *Keeper, p *trustpolicy.Policy, marks map[ledger.Slot]ledger.SlotMark) {
	t.Helper()
	if err := k.RecordSlots(t.Context(), verify.Snapshot{Policy: p, ClusterID: "any", Now: testkit.Now()}, marks); err != nil {
		t.Fatal(err)
	}
}

func TestSlotsOnlyRiseOverRestarts(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	p := w.policy(t)
	x := slotOf("x")
	for _, c := range []struct {
		name string
		mark ledger.SlotMark
		want ledger.SlotMark
	}{
		{"the first", markOf(5, "a"), markOf(5, "a")},
		{"the same", markOf(5, "a"), markOf(5, "a")},
		{"lower", markOf(4, "b"), markOf(5, "a")},
		{"equal, other content", markOf(5, "b"), markOf(5, "a")},
		{"a jump", markOf(1006, "b"), markOf(5, "a")},
		{"the next", markOf(6, "b"), markOf(6, "b")},
	} {
		w.recordSlots(t, w.Keeper, p, map[ledger.Slot]ledger.SlotMark{x: c.mark})
		again := w.keeper(t, w.root)
		if _, _, err := again.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, ok := again.Slot(x); !ok || got != c.want {
			t.Errorf("%s: remembered %+v", c.name, got)
		}
	}
	if !w.Bundle("pay", "redis") || w.Bundle("pay", "other") || w.Bundle("other", "redis") {
		t.Error("bundles are mixed up")
	}
}

func TestOnlyAResetLowersASlotAndOnce(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	x := slotOf("x")
	w.recordSlots(t, w.Keeper, w.policy(t), map[ledger.Slot]ledger.SlotMark{x: markOf(9, "a")})
	reset := w.policy(t, "mode: enforce\n",
		fmt.Sprintf("mode: enforce\nresets: [{slot: pay/redis/base/x, serial: 3, digest: \"sha256:%s\"}]\n", strings.Repeat("b", 64)))
	lowered := map[ledger.Slot]ledger.SlotMark{x: markOf(3, "b")}
	w.recordSlots(t, w.Keeper, reset, lowered)
	if got, _ := w.Slot(x); got != markOf(3, "b") {
		t.Fatalf("the reset left %+v", got)
	}
	if len(w.alarms) != 1 || w.alarms[0] != "LedgerReset" {
		t.Errorf("alarms %v", w.alarms)
	}
	w.recordSlots(t, w.Keeper, reset, map[ledger.Slot]ledger.SlotMark{x: markOf(9, "a")})
	w.recordSlots(t, w.Keeper, reset, lowered)
	if got, _ := w.Slot(x); got != markOf(9, "a") {
		t.Errorf("a reset that was used lowered it again: %+v", got)
	}
}

// A record holds 2,000 slots; what does not fit stands in the next, and stays where it is.
func TestMoreSlotsThanARecordHoldsStandInTheNext(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	p := w.policy(t)
	marks := func(version int64) map[ledger.Slot]ledger.SlotMark {
		all := map[ledger.Slot]ledger.SlotMark{}
		for i := range ledger.MaxSlots + 5 {
			all[slotOf(fmt.Sprint("x", i))] = markOf(version, "a")
		}
		return all
	}
	w.recordSlots(t, w.Keeper, p, marks(1))
	w.recordSlots(t, w.Keeper, p, marks(2))
	again := w.keeper(t, w.root)
	if read, _, err := again.Load(t.Context()); err != nil || read != 2 {
		t.Fatalf("%d records, %v", read, err)
	}
	all := again.Slots("pay", "redis")
	if len(all) != ledger.MaxSlots+5 {
		t.Errorf("%d slots", len(all))
	}
	for slot, m := range all {
		if m.Version != 2 {
			t.Fatalf("%s is %+v", slot, m)
		}
	}
}

func TestAJumpAtFirstIsNotRecorded(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	w.recordSlots(t, w.Keeper, w.policy(t), map[ledger.Slot]ledger.SlotMark{slotOf("x"): markOf(ledger.MaxFirst+1, "a")})
	if m, ok := w.Slot(slotOf("x")); ok || decision.From(ledger.FirstSlot(markOf(ledger.MaxFirst+1, "a"))).Reason != decision.SerialJump {
		t.Errorf("recorded %+v", m)
	}
}
