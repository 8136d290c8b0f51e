package ledger_test

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

func TestSlotMarks(t *testing.T) {
	seen := ledger.SlotMark{Version: 5, Digest: "d", Bytes: "b"}
	for name, tt := range map[string]struct {
		next ledger.SlotMark
		want decision.Reason
	}{
		"the same":                 {seen, ""},
		"the next":                 {ledger.SlotMark{Version: 6, Digest: "e", Bytes: "c"}, ""},
		"the next with old bytes":  {ledger.SlotMark{Version: 6, Digest: "d", Bytes: "b"}, ""},
		"the last":                 {ledger.SlotMark{Version: 4, Digest: "d", Bytes: "b"}, decision.VersionRollback},
		"below nothing":            {ledger.SlotMark{Version: -1 << 63, Digest: "d", Bytes: "b"}, decision.VersionRollback},
		"other content":            {ledger.SlotMark{Version: 5, Digest: "e", Bytes: "b"}, decision.VersionEquivocated},
		"the order of lists":       {ledger.SlotMark{Version: 5, Digest: "d", Bytes: "c"}, decision.VersionEquivocated},
		"as far as a step may be":  {ledger.SlotMark{Version: 1005}, ""},
		"farther":                  {ledger.SlotMark{Version: 1006}, decision.SerialJump},
		"the largest of all":       {ledger.SlotMark{Version: 1<<63 - 1}, decision.SerialJump},
		"one that nobody can read": {ledger.SlotMark{}, decision.VersionRollback},
	} {
		t.Run(name, func(t *testing.T) {
			wantReason(t, seen.Next(tt.next), tt.want)
		})
	}
	wantReason(t, ledger.FirstInSlot(ledger.SlotMark{Version: 1_000_000}), "")
	wantReason(t, ledger.FirstInSlot(ledger.SlotMark{Version: 1_000_001}), decision.SerialJump)
	top := ledger.SlotMark{Version: 1<<63 - 2}
	wantReason(t, top.Next(ledger.SlotMark{Version: 1<<63 - 1}), "")
}

// Kinds share no slot, and the slot is that of what was signed.
func TestSlots(t *testing.T) {
	profile := &fragment.Fragment{Kind: fragment.KindContainerProfile, Bundle: "redis", Class: "base", Name: "x", Version: 2, Digest: "d", Bytes: "b"}
	rules, binding := *profile, *profile
	rules.Kind, binding.Kind = fragment.KindRules, fragment.KindRuleBinding
	for of, want := range map[*fragment.Fragment]string{
		profile: "pool/redis/base/x", &rules: "pool/redis/rules/base/x", &binding: "pool/redis/runtimerulealertbinding/base/x",
	} {
		if got := ledger.SlotOf("pool", of).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got, want := ledger.SlotMarkOf(profile), (ledger.SlotMark{Version: 2, Digest: "d", Bytes: "b"}); got != want {
		t.Errorf("%+v", got)
	}
}
