package ledger_test

import (
	"math"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

func TestASlotOnlyRises(t *testing.T) {
	five := ledger.SlotMark{Version: 5, Digest: "a", Bytes: "x"}
	for name, tt := range map[string]struct {
		v    ledger.SlotMark
		want decision.Reason
	}{
		"the next":              {ledger.SlotMark{Version: 6, Digest: "b", Bytes: "y"}, ""},
		"the same":              {five, ""},
		"lower":                 {ledger.SlotMark{Version: 4, Digest: "a", Bytes: "x"}, decision.VersionRollback},
		"equal, other content":  {ledger.SlotMark{Version: 5, Digest: "b", Bytes: "x"}, decision.VersionEquivocated},
		"equal, in other order": {ledger.SlotMark{Version: 5, Digest: "a", Bytes: "y"}, decision.VersionEquivocated},
		"equal, no digest":      {ledger.SlotMark{Version: 5, Bytes: "x"}, decision.VersionEquivocated},
		"1000 above":            {ledger.SlotMark{Version: 1005}, ""},
		"1001 above":            {ledger.SlotMark{Version: 1006}, decision.SerialJump},
		"the largest number":    {ledger.SlotMark{Version: math.MaxInt64}, decision.SerialJump},
	} {
		t.Run(name, func(t *testing.T) { wantReason(t, five.Next(tt.v), tt.want) })
	}
}

func TestTheFirstVersionOfASlotIsBounded(t *testing.T) {
	for version, want := range map[int64]decision.Reason{0: "", 1_000_000: "", 1_000_001: decision.SerialJump, math.MaxInt64: decision.SerialJump} {
		wantReason(t, ledger.FirstSlot(ledger.SlotMark{Version: version}), want)
	}
}

func TestSlotsAreNamedWithoutDoubt(t *testing.T) {
	slot := ledger.Slot{Namespace: "pay", Bundle: "redis", Class: "rules/base", Name: "r0"}
	if slot.String() != "pay/redis/rules/base/r0" || slot.Key() != "rules/base/r0" {
		t.Errorf("%s, %s", slot, slot.Key())
	}
	names := map[string]bool{}
	for _, name := range []string{
		ledger.SlotsName("a", "b", 0), ledger.SlotsName("a", "b", 1), ledger.SlotsName("", "ab", 0), ledger.SlotsName("ab", "", 0), ledger.SlotsName("", "", 10),
	} {
		names[name] = true
	}
	if len(names) != 5 || !names["slots.c14cddc033f64b9dea80ea675cf280a0.0"] {
		t.Errorf("names %v", names)
	}
}
