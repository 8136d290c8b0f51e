package ledger_test

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// Kinds share no slot, and what takes effect in the whole cluster has one wherever it is stored.
func TestASlotIsThatOfWhatWasSigned(t *testing.T) {
	for kind, want := range map[string]string{
		fragment.KindContainerProfile: "pool/redis/base/x",
		fragment.KindSeccompProfile:   "pool/redis/seccomp/base/x",
		fragment.KindRules:            "/redis/rules/base/x",
		fragment.KindRuleBinding:      "/redis/bindings/base/x",
	} {
		f := &fragment.Fragment{Kind: kind, Bundle: "redis", Class: "base", Name: "x", Version: 2, Digest: "d", Bytes: "b"}
		if got := ledger.SlotOf("pool", f).String(); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		if got, want := ledger.SlotMarkOf(f), (ledger.SlotMark{Version: 2, Digest: "d", Bytes: "b"}); got != want {
			t.Errorf("%+v", got)
		}
	}
}
