package bundles

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// ruleObject is a signed Rules object with one rule.
func (w *world) ruleObject(s testkit.FragmentSigner, class, name, id string, version int) []byte {
	w.t.Helper()
	return s.Sign(w.t, fmt.Sprintf(`{apiVersion: kubescape.io/v1, kind: Rules, metadata: {name: %s, namespace: shop, labels: {signature.kubescape.io/fragment-class: %s,
  signature.kubescape.io/version: "%d"}}, spec: {rules: [{enabled: true, id: %s, name: x, description: "", expressions: {message: "", uniqueId: "", ruleExpression: []},
  profileDependency: 0, severity: 1, supportPolicy: false, tags: [], agentVersionRequirement: "", isTriggerAlert: true, mitreTactic: "", mitreTechnique: ""}]}}`, name, class, version, id), true)
}

func (w *world) trustRules() {
	w.t.Helper()
	w.trust(fmt.Sprintf("ruleClasses: {base: {signers: [%q], allowedRuleIDs: [\"*\"], mayDisable: false}}\n", w.vendor.Fingerprint))
}

func (w *world) lookRules() {
	w.t.Helper()
	if _, err := w.look(w.t.Context(), item{rules: true}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantRules(status string, admitted, rejected int) {
	w.t.Helper()
	c := w.conditions[ConditionRulesAdmitted]
	if got := string(c.Status) + " " + c.Reason; got != status {
		w.t.Errorf("RulesAdmitted is %q, want %q", got, status)
	}
	if got := w.Counts().Rules; got.Admitted != admitted || got.Rejected != rejected {
		w.t.Errorf("counts %+v", got)
	}
}

func TestNothingAdmittedIsSaidUntilItIsHealed(t *testing.T) {
	w := newWorld(t)
	w.lookRules()
	w.wantRules("Unknown NotSigned", 0, 0)
	w.trustRules()
	w.put([]byte(`{"apiVersion":"kubescape.io/v1","kind":"Rules","metadata":{"name":"unsigned","namespace":"shop"},"spec":{"rules":[]}}`))
	w.lookRules()
	w.wantRules("False MemberMissing", 0, 1)
	if got := w.gauge("hostwarrant_rules_nothing_admitted"); got != 1 {
		t.Errorf("the metric is %v", got)
	}
	if got := w.said(); !slices.Equal(got, []string{"Warning Rules/unsigned Unsigned", "Warning TrustPolicy/cluster NoRulesAdmitted"}) {
		t.Errorf("events %v", got)
	}
	w.now = w.now.Add(time.Minute)
	w.lookRules()
	if got := w.said(); len(got) != 0 {
		t.Errorf("a minute later: %v", got)
	}
	w.now = w.now.Add(w.Interval)
	w.lookRules()
	if got := w.said(); !slices.Equal(got, []string{"Warning TrustPolicy/cluster NoRulesAdmitted"}) {
		t.Errorf("after the interval: %v", got)
	}
	w.put(w.ruleObject(w.vendor, "base", "baseline", "R0001", 1))
	w.lookRules()
	w.wantRules("True Admitted", 1, 1)
	if got := w.said(); !slices.Equal(got, []string{"Normal TrustPolicy/cluster RulesAdmitted"}) || w.gauge("hostwarrant_rules_nothing_admitted") != 0 {
		t.Errorf("healed: %v", got)
	}
	if len(w.gets) != 1 {
		t.Errorf("read %v: what nobody signed need not be", w.gets)
	}
}

// Nothing changes in such a cluster, so nothing else would have rules looked at. The queue keeps the
// soonest time of an item alone: a look that comes before it is time has to ask for the next.
func TestNothingAdmittedIsSaidAgainByItself(t *testing.T) {
	w := newWorld(t)
	w.trustRules()
	w.Interval = time.Second
	w.queue.AddAfter(item{rules: true}, time.Millisecond)
	for _, look := range []string{"the one before it is time", "the next"} {
		w.now = w.now.Add(time.Millisecond)
		w.lookRules()
		testkit.Eventually(t, time.Minute, look, func() bool { return w.queue.Len() == 1 })
		i, _ := w.queue.Get()
		w.queue.Done(i)
	}
}

// Rules that nobody signed count while no class of rules is there, and from the moment of one no more.
func TestAPolicyThatGivesRuleClassesRefusesUnsignedRulesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.put([]byte(`{"apiVersion":"kubescape.io/v1","kind":"Rules","metadata":{"name":"unsigned","namespace":"shop"},"spec":{"rules":[]}}`))
	w.put(w.ruleObject(w.vendor, "base", "baseline", "R0001", 1))
	w.lookRules()
	w.wantRules("Unknown NotSigned", 0, 0)
	if got := w.said(); len(got) != 0 {
		t.Errorf("without ruleClasses: %v", got)
	}
	w.trustRules()
	w.lookRules()
	w.wantRules("True Admitted", 1, 1)
	if got := w.said(); !slices.Contains(got, "Warning Rules/unsigned Unsigned") {
		t.Errorf("with them: %v", got)
	}
}

// Anybody who may write rules can write thousands; the one that was signed and refused is told of all the same.
func TestAFloodOfUnsignedRulesIsToldInPart(t *testing.T) {
	w := newWorld(t)
	w.trustRules()
	for i := range 5 * maxUnsignedTold {
		w.put([]byte(fmt.Sprintf(`{"apiVersion":"kubescape.io/v1","kind":"Rules","metadata":{"name":"junk-%03d","namespace":"shop"},"spec":{"rules":[]}}`, i)))
	}
	w.put(w.ruleObject(w.operator, "base", "unlisted", "R0001", 1))
	w.lookRules()
	w.wantRules("False MemberMissing", 0, 5*maxUnsignedTold+1)
	got := w.said()
	if len(got) != maxUnsignedTold+2 || !slices.Contains(got, "Warning Rules/unlisted SignerUnknown") || !slices.Contains(got, "Warning TrustPolicy/cluster NoRulesAdmitted") {
		t.Errorf("%d events: %v", len(got), got)
	}
}

// The overlay of one bundle is no reason to be quiet about all other pods, unless the policy has no base.
func TestAnOverlayHidesNoLossOfTheBase(t *testing.T) {
	w := newWorld(t)
	w.trust(fmt.Sprintf("ruleClasses: {base: {signers: [%q], allowedRuleIDs: [\"*\"]}, overlay: {signers: [%q], allowedRuleIDs: [\"*\"]}}\n", w.vendor.Fingerprint, w.operator.Fingerprint))
	w.put(w.ruleObject(w.vendor, "base", "baseline", "R0001", 1))
	overlay := w.operator.Sign(t, `{apiVersion: kubescape.io/v1, kind: Rules, metadata: {name: site, namespace: shop, labels: {signature.kubescape.io/fragment-class: overlay,
  signature.kubescape.io/bundle: redis}}, spec: {rules: [{enabled: true, id: R0001, name: x, description: "", expressions: {message: "", uniqueId: "", ruleExpression: []},
  profileDependency: 0, severity: 1, supportPolicy: false, tags: [], agentVersionRequirement: "", isTriggerAlert: true, mitreTactic: "", mitreTechnique: ""}]}}`, true)
	w.put(overlay)
	w.lookRules()
	w.wantRules("True Admitted", 2, 0)
	w.said()
	w.delete(fragment.KindRules, "baseline")
	w.lookRules()
	w.wantRules("False MemberMissing", 1, 0)
	if got := w.said(); !slices.Equal(got, []string{"Warning TrustPolicy/cluster NoRulesAdmitted"}) || w.gauge("hostwarrant_rules_nothing_admitted") != 1 {
		t.Errorf("without the base: %v", got)
	}
	w.trust(fmt.Sprintf("ruleClasses: {overlay: {signers: [%q], allowedRuleIDs: [\"*\"]}}\n", w.operator.Fingerprint))
	w.lookRules()
	w.wantRules("True Admitted", 1, 0)
}

func TestRulesAreHeldToVersionsOverARestart(t *testing.T) {
	w := newWorld(t)
	w.trustRules()
	w.put(w.ruleObject(w.vendor, "base", "baseline", "R0001", 5))
	w.lookRules()
	w.wantRules("True Admitted", 1, 0)
	if m, ok := w.Ledger.Slot(ledger.Slot{Class: "rules/base", Name: "baseline"}); !ok || m.Version != 5 {
		t.Errorf("remembered %+v", m)
	}
	w.put(w.ruleObject(w.vendor, "base", "baseline", "R0001", 4))
	w.restart()
	w.said()
	w.lookRules()
	w.wantRules("False MemberMissing", 0, 1)
	if got := w.said(); !slices.Contains(got, "Warning Rules/baseline VersionRollback") {
		t.Errorf("events %v", got)
	}
}

func TestBindingsAreJudgedAgainWhenThePolicyChanges(t *testing.T) {
	w := newWorld(t)
	w.put([]byte(`{"apiVersion":"kubescape.io/v1","kind":"RuntimeRuleAlertBinding","metadata":{"name":"all","namespace":"shop"},"spec":{}}`))
	w.lookRules()
	if got := w.said(); len(got) != 0 {
		t.Errorf("without bindingClasses: %v", got)
	}
	w.trust(fmt.Sprintf("bindingClasses: {base: {signers: [%q]}}\n", w.vendor.Fingerprint))
	w.lookRules()
	if got := w.said(); !slices.Equal(got, []string{"Warning RuntimeRuleAlertBinding/all Unsigned"}) {
		t.Errorf("with them: %v", got)
	}
	w.put(w.vendor.Sign(t, `{apiVersion: kubescape.io/v1, kind: RuntimeRuleAlertBinding, metadata: {name: all, namespace: shop, labels: {signature.kubescape.io/fragment-class: base}}, spec: {}}`, true))
	w.lookRules()
	w.said()
	w.put([]byte(`{"apiVersion":"kubescape.io/v1","kind":"RuntimeRuleAlertBinding","metadata":{"name":"all","namespace":"shop"},"spec":{}}`))
	w.lookRules()
	if got := w.said(); !slices.Equal(got, []string{"Warning RuntimeRuleAlertBinding/all Unsigned"}) {
		t.Errorf("a good one that is made bad: %v", got)
	}
}

// What is kept of an object is bounded, whatever it holds.
func TestSlimKeepsFactsAlone(t *testing.T) {
	w := newWorld(t)
	u := parse(w, w.part(w.vendor, "base", "redis-base", 1, `{}`))
	u.SetUID("1")
	u.SetResourceVersion("2")
	w.notice(u)
	f := w.index.get(Key{fragment.KindContainerProfile, shop, "redis-base"})
	if f == nil || f.bundle != redis || f.class != "base" || f.signer != w.vendor.Fingerprint || f.unsigned != nil || f.uid != "1" || f.version != "2" {
		t.Errorf("facts %+v", f)
	}
	if _, ok := Slim(&unstructured.Unstructured{}); ok {
		t.Error("an object that others watch was slimmed")
	}
}
