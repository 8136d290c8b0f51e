//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// ruleObject is a Rules object with one rule, signed where there is a signer.
func ruleObject(t *testing.T, s *testkit.FragmentSigner, class, name, id string) []byte {
	t.Helper()
	text := fmt.Sprintf(`{apiVersion: kubescape.io/v1, kind: Rules, metadata: {name: %s, namespace: shop, labels: {signature.kubescape.io/fragment-class: %s, signature.kubescape.io/version: "1"}},
  spec: {rules: [{enabled: true, id: %s, name: x, description: "", expressions: {message: "", uniqueId: "", ruleExpression: []}, profileDependency: 0, severity: 1,
  supportPolicy: false, tags: [], agentVersionRequirement: "", isTriggerAlert: true, mitreTactic: "", mitreTechnique: ""}]}}`, name, class, id)
	if s == nil {
		return []byte(text)
	}
	return s.Sign(t, text, true)
}

// A policy that signs rules over a cluster in which nobody signed any: detection is off, and that is
// said until it is healed.
func TestNothingAdmittedIsAnOutageUntilItIsHealed(t *testing.T) {
	w := newBundleWorld(t, false)
	w.put(t, ruleObject(t, nil, "base", "unsigned", "R0001"))
	w.trust(t, fmt.Sprintf("ruleClasses: {base: {signers: [%q], allowedRuleIDs: [\"*\"], mayDisable: false}}\n", w.vendor.Fingerprint))
	rules := func() string {
		return w.succeeds(t, nil, "get", "trustpolicy", "cluster", "-o", `jsonpath={.status.conditions[?(@.type=="RulesAdmitted")].status} {.status.conditions[?(@.type=="RulesAdmitted")].reason}`).Stdout
	}
	events := func() string {
		return w.succeeds(t, nil, "get", "events", "-A", "-o", `jsonpath={range .items[*]}{.involvedObject.kind}/{.involvedObject.name} {.reason}{"\n"}{end}`).Stdout
	}
	metric := func() string {
		_, text := get(t, w.controller.Metrics+"/metrics")
		for _, line := range strings.Split(text, "\n") {
			if value, ok := strings.CutPrefix(line, "hostwarrant_rules_nothing_admitted "); ok {
				return value
			}
		}
		return ""
	}
	eventually(t, "the outage to be reported", func() bool { return rules() == "False MemberMissing" })
	eventually(t, "the events", func() bool {
		return strings.Contains(events(), "TrustPolicy/cluster NoRulesAdmitted") && strings.Contains(events(), "Rules/unsigned Unsigned")
	})
	if metric() != "1" {
		t.Errorf("the metric is %q", metric())
	}
	first := strings.Count(events(), "NoRulesAdmitted")
	eventually(t, "the outage to be said again", func() bool { return strings.Count(events(), "NoRulesAdmitted") > first })
	w.put(t, ruleObject(t, &w.vendor, "base", "baseline", "R0001"))
	eventually(t, "the outage to be healed", func() bool { return rules() == "True Admitted" && metric() == "0" })
	eventually(t, "the event", func() bool { return strings.Contains(events(), "TrustPolicy/cluster RulesAdmitted") })
	_, page := get(t, w.controller.Health+"/policyz")
	if !strings.Contains(strings.Join(strings.Fields(page), ""), `"rules":{"admitted":1,"rejected":1,"effective":1}`) {
		t.Errorf("/policyz says %s", page)
	}
}
