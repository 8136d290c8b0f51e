package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// What excuses something is counted until its end, and so is the end of mode warn told.
func TestPolicyzCountsExceptionsUntilTheyEnd(t *testing.T) {
	f := newFixture(t)
	f.offer(t, "cluster", f.object(t, f.document(
		"mode: enforce", "mode: warn\nwarnUntil: \"2026-12-02T00:00:00Z\"",
		"  signers:\n", `  unguarded: [{profiles: ["old-*"], until: "2026-12-10T00:00:00Z"}, {profiles: ["older-*"], until: "2026-11-30T12:00:00Z"}]
  signers:
`,
		"    users:", `    raw: [{host: pool/a, until: "2026-12-10T00:00:00Z"}, {host: pool/b, until: "2026-12-10T00:00:00Z"}]
    users:`,
		"joinProfiles:", `waivers:
- {kind: SSHJoinProfile, name: x, digest: "sha256:`+strings.Repeat("0", 64)+`", expires: "2026-12-10T00:00:00Z", reason: migration}
joinProfiles:`), f.root), decision.Verified)

	r := f.holder.Report(testkit.Now())
	if diff := cmp.Diff(Exceptions{Unguarded: 1, RawHosts: 2, Waivers: 1}, r.Exceptions); diff != "" {
		t.Error(diff)
	}
	if r.Mode != "warn" || r.WarnUntil == nil || !r.WarnUntil.Equal(time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("mode %q until %v", r.Mode, r.WarnUntil)
	}

	r = f.holder.Report(time.Date(2026, 12, 10, 0, 0, 0, 0, time.UTC))
	if diff := cmp.Diff(Exceptions{}, r.Exceptions); diff != "" {
		t.Error(diff)
	}
	if r.Mode != "enforce" || r.WarnUntil != nil {
		t.Errorf("mode %q until %v", r.Mode, r.WarnUntil)
	}
}

// What a policy says of fragments is counted; which keys it names is not told.
func TestPolicyzCountsClasses(t *testing.T) {
	f := newFixture(t)
	key := "key:" + strings.Repeat("ab", 32)
	f.offer(t, "cluster", f.object(t, f.document("joinProfiles:", `fragmentClasses: {base: {signers: ["`+key+`"], allowedSpecPaths: [execs]}, overlay: {signers: ["`+key+`"], allowedSpecPaths: [execs]}}
ruleClasses: {base: {signers: ["`+key+`"], allowedRuleIDs: ["*"]}}
learners: ["system:serviceaccount:kubescape:node-agent"]
bundles: {redis: {required: [{class: base, name: redis-base}]}}
revoked: {fragmentSigners: ["`+key+`"]}
joinProfiles:`), f.root), decision.Verified)
	r := f.holder.Report(testkit.Now())
	if diff := cmp.Diff(Fragments{Classes: 2, RuleClasses: 1, Bundles: 1, Learners: 1, Revoked: 1}, r.Fragments); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), key) || strings.Contains(string(text), "node-agent") {
		t.Errorf("%s, %v", text, err)
	}
}
