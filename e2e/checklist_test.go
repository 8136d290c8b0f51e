//go:build linux

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// metrics of the one replica.
func (i *installation) metrics(t *testing.T) harness.Metrics {
	t.Helper()
	m, err := harness.ReadMetrics(soon(t), i.webhook.Metrics)
	must(t, err)
	return m
}

const decisions = "hostwarrant_decisions_total"

// asked is how many requests the replica has judged, dry runs included.
func (i *installation) asked(t *testing.T) float64 {
	t.Helper()
	return i.metrics(t)["hostwarrant_decision_seconds_count"]
}

// large is scripts of 64 KiB each.
func large() map[string]string {
	texts := map[string]string{}
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		head := "#!/usr/bin/env bash\nset -euo pipefail\n: " + phase + "\n"
		line := "echo 'a line of a script as long as people write them, more or less'\n"
		texts[phase] = head + strings.Repeat(line, (64<<10-len(head))/len(line))
	}
	return texts
}

// TestLatency reads our own histogram over dry-run creates of a profile of 4 × 64 KiB. On a machine
// that does other work as well the bounds are those of decoding such a review, timed beside it.
func TestLatency(t *testing.T) {
	i := install(t)
	texts := large()
	raw := profile(t, "p-latency", texts, signatures(t, i.signer, texts))
	review := reviewOf(t, admissionv1.Create, raw, nil)
	before := i.metrics(t)
	var tally, floor harness.Tally
	for range times(300, 1000) {
		began := time.Now()
		tally.Add(i.writer.DryCreate(t.Context(), harness.Profiles(), raw), time.Since(began))
		began = time.Now()
		var decoded, object map[string]any
		floor.Add(errors.Join(json.Unmarshal(review, &decoded), json.Unmarshal(raw, &object)), time.Since(began))
	}
	after := i.metrics(t)
	const name = "hostwarrant_decision_seconds"
	p50, p99 := harness.Quantile(before, after, name, 0.5), harness.Quantile(before, after, name, 0.99)
	t.Logf("in the server: %v requests, p50 %.2f ms, p99 %.2f ms", after[name+"_count"]-before[name+"_count"], p50*1000, p99*1000)
	t.Logf("for the client: %v", &tally)
	t.Logf("decoding alone: %v", &floor)
	if tally.Count(harness.Admitted) != tally.Total() {
		t.Fatalf("%v: %q", &tally, tally.Said(harness.Refused))
	}
	limit50, limit99 := max(0.005, 3*floor.Percentile(0.5).Seconds()), max(0.05, 3*floor.Percentile(0.99).Seconds())
	if p50 >= limit50 || p99 >= limit99 {
		t.Errorf("p50 %.2f ms, p99 %.2f ms; want under %.0f and %.0f", p50*1000, p99*1000, limit50*1000, limit99*1000)
	}
}

// TestDecisionsNeedNoAPIServer cuts a replica off from the API server, so that no token of it is worth
// anything, and asks it again.
func TestDecisionsNeedNoAPIServer(t *testing.T) {
	i := install(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	gate, err := harness.NewBalancer(ctx, i.product.Addr().String()+":0")
	must(t, err)
	t.Cleanup(func() { must(t, gate.Close()) })
	server := strings.TrimPrefix(i.cp.RESTConfig().Host, "https://")
	gate.Set(server)
	kubeconfig, err := i.cp.ServiceAccountKubeconfig(ctx, "hostwarrant-system", "hostwarrant-webhook")
	must(t, err)
	text, err := os.ReadFile(kubeconfig)
	must(t, err)
	if !strings.Contains(string(text), server) {
		t.Fatalf("the kubeconfig does not name %s", server)
	}
	own := testkit.WriteFile(t, t.TempDir(), "kubeconfig", []byte(strings.ReplaceAll(string(text), server, gate.Addr())))
	address, err := product.FreeAddress(i.product.Addr())
	must(t, err)
	replica, err := i.product.StartWebhookAt(ctx, "webhook-cut-off", address, "--kubeconfig="+own)
	must(t, err)
	t.Cleanup(func() { must(t, replica.Kill()) })
	must(t, replica.Wait(ctx, "/readyz"))
	p := i.poster(t, address)
	good := reviewOf(t, admissionv1.Create, profile(t, "p-cut", scripts(), signatures(t, i.signer, scripts())), nil)
	bad := reviewOf(t, admissionv1.Create, profile(t, "p-cut", scripts(), nil), nil)
	answers := func() string { return fmt.Sprint(asks(t, p, good), "\n", asks(t, p, bad)) }
	before := answers()
	gate.Set() // no backend, and every connection is cut
	for range 20 {
		if after := answers(); after != before {
			t.Fatalf("cut off:\n%s\nbefore:\n%s", after, before)
		}
		time.Sleep(100 * time.Millisecond) // its informers lose their watches meanwhile
	}
	if code, body := get(t, replica.Health+"/readyz"); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if !strings.Contains(before, `verdict "allow"`) || !strings.Contains(before, `reason "Unsigned"`) {
		t.Errorf("the answers are:\n%s", before)
	}
}

func (i *installation) validating(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	c, err := i.cp.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(soon(t), "hostwarrant", metav1.GetOptions{})
	must(t, err)
	return c
}

// TestConfigurationsAreNarrow reads what is live: few webhooks, short timeouts, named resources, no
// selectors, declared side effects.
func TestConfigurationsAreNarrow(t *testing.T) {
	i := install(t)
	validating := i.validating(t)
	mutating, err := i.cp.Client().AdmissionregistrationV1().MutatingWebhookConfigurations().Get(soon(t), "hostwarrant", metav1.GetOptions{})
	must(t, err)
	if len(validating.Webhooks) > 3 || len(mutating.Webhooks) > 1 {
		t.Errorf("%d validating and %d mutating webhooks; want at most 3 and 1", len(validating.Webhooks), len(mutating.Webhooks))
	}
	groups := []string{"karpenter.dklesev.github.io", "hostwarrant.dev", "spdx.softwarecomposition.kubescape.io", "kubescape.io"}
	type entry struct {
		name                string
		fail, wantFail      admissionregistrationv1.FailurePolicyType
		effects             admissionregistrationv1.SideEffectClass
		match               admissionregistrationv1.MatchPolicyType
		timeout             int32
		namespaces, objects *metav1.LabelSelector
		rules               []admissionregistrationv1.RuleWithOperations
	}
	var all []entry
	for _, w := range validating.Webhooks {
		all = append(all, entry{w.Name, *w.FailurePolicy, admissionregistrationv1.Fail, *w.SideEffects, *w.MatchPolicy, *w.TimeoutSeconds, w.NamespaceSelector, w.ObjectSelector, w.Rules})
	}
	for _, w := range mutating.Webhooks {
		all = append(all, entry{w.Name, *w.FailurePolicy, admissionregistrationv1.Ignore, *w.SideEffects, *w.MatchPolicy, *w.TimeoutSeconds, w.NamespaceSelector, w.ObjectSelector, w.Rules})
	}
	for _, e := range all {
		if e.fail != e.wantFail || e.effects != admissionregistrationv1.SideEffectClassNone || e.match != admissionregistrationv1.Equivalent || e.timeout > 5 {
			t.Errorf("%s: failurePolicy %s, sideEffects %s, matchPolicy %s, timeout %d s", e.name, e.fail, e.effects, e.match, e.timeout)
		}
		for _, s := range []*metav1.LabelSelector{e.namespaces, e.objects} {
			if s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
				t.Errorf("%s has a selector, which is a way around it: %v", e.name, s)
			}
		}
		for _, rule := range e.rules {
			for _, group := range rule.APIGroups {
				if !slices.Contains(groups, group) {
					t.Errorf("%s is asked about group %q", e.name, group)
				}
			}
			for _, resource := range rule.Resources {
				if strings.Contains(resource, "*") {
					t.Errorf("%s is asked about resources %q", e.name, resource)
				}
			}
		}
	}
}

// TestExcludedRequestsDoNotReachTheServer: status updates and updates that change nothing guarded.
func TestExcludedRequestsDoNotReachTheServer(t *testing.T) {
	i := install(t)
	const name = "h-excluded"
	i.succeeds(t, host(t, name, object{"trustedSigners": []string{i.signer.Line}}), "create", "-f", "-")
	i.remove(t, "-n", "pool", "sshhost", name)
	i.succeeds(t, profile(t, "p-excluded", scripts(), signatures(t, i.signer, scripts())), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", "p-excluded")
	// The mutating half is asked of every update of a host; it counts nothing.
	before := i.asked(t)
	for n := range 10 {
		i.succeeds(t, nil, "patch", "-n", "pool", "sshhost", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, n))
		i.succeeds(t, nil, "annotate", "-n", "pool", "sshhost", name, "--overwrite", fmt.Sprintf("n=%d", n))
		i.succeeds(t, nil, "label", "sshjoinprofile", "p-excluded", "--overwrite", fmt.Sprintf("n=n%d", n))
	}
	if after := i.asked(t); after != before {
		t.Errorf("%v requests reached the server", after-before)
	}
	i.succeeds(t, nil, "patch", "-n", "pool", "sshhost", name, "--type=merge", "-p", `{"spec":{"capacity":{"cpu":"3"}}}`)
	if after := i.asked(t); after != before+1 {
		t.Errorf("a change of spec: %v requests reached the server; want 1", after-before)
	}
}

// TestABrokenConditionRefuses gives a copy of the first entry a CEL condition that fails at run time.
func TestABrokenConditionRefuses(t *testing.T) {
	i := install(t)
	entry := i.validating(t).Webhooks[0]
	entry.Name = "broken.example.com"
	entry.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "broken", Expression: "object.spec.nothing.of.the.kind == 'x'"}}
	client := i.cp.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := client.Create(soon(t), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "trial-broken"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{entry},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, client.Delete(soon(t), "trial-broken", metav1.DeleteOptions{})) })
	good := profile(t, "p-condition", scripts(), signatures(t, i.signer, scripts()))
	var last lab.Result
	defer func() {
		if t.Failed() {
			t.Logf("exit %d: %s%s", last.Code, last.Stdout, last.Stderr)
		}
	}()
	eventually(t, "the broken condition to refuse", func() bool {
		last = i.kubectl(t, good, "create", "--dry-run=server", "-f", "-")
		return last.Code != 0 && strings.Contains(last.Stderr, "object.spec.nothing.of.the.kind == 'x'' resulted in error")
	})
}

// patchOf posts an object to the mutating half and returns the operations.
func patchOf(t *testing.T, p *harness.Poster, raw []byte) []harness.PatchOperation {
	t.Helper()
	r, err := p.Review(soon(t), "/mutate", reviewOf(t, admissionv1.Create, raw, nil))
	must(t, err)
	if !r.Allowed {
		t.Fatalf("the mutating half refused: %v", r.Result)
	}
	if len(r.Patch) == 0 {
		return nil
	}
	var all []harness.PatchOperation
	must(t, json.Unmarshal(r.Patch, &all))
	return all
}

// TestThePatchIsTheLeastThereIs posts objects to the mutating half, and its own result once more.
func TestThePatchIsTheLeastThereIs(t *testing.T) {
	i := install(t)
	p := i.poster(t, i.at)
	signed := profile(t, "p-patch", scripts(), signatures(t, i.signer, scripts()))
	annotated := object{"annotations": object{"hostwarrant.dev/verdict": "Verified", "a": "b"}, "finalizers": []string{"example.com/hold"}, "labels": object{"c": "d"}}
	for name, raw := range map[string][]byte{
		"a signed profile": signed, "an unsigned profile": profile(t, "p-patch", scripts(), nil), "an annotated profile": withMeta(t, signed, annotated),
		"a host with signers": host(t, "h-patch", object{"trustedSigners": []string{i.signer.Line}}),
		"a Raw host":          host(t, "h-patch", object{"execMode": "Raw"}),
	} {
		if ops := patchOf(t, p, raw); len(ops) > 0 {
			t.Errorf("%s: %v", name, ops)
		}
	}
	for name, raw := range map[string][]byte{
		"a host without signers": host(t, "h-patch", nil), "the same, annotated": withMeta(t, host(t, "h-patch", nil), annotated),
	} {
		ops := patchOf(t, p, raw)
		if len(ops) != 1 || ops[0].Path != "/spec/trustedSigners" {
			t.Errorf("%s: %v", name, ops)
			continue
		}
		for range 3 {
			if again := patchOf(t, p, host(t, "h-patch", object{"trustedSigners": ops[0].Value})); len(again) > 0 {
				t.Errorf("%s, once more: %v", name, again)
			}
		}
	}
	t.Run("what others put there survives", func(t *testing.T) {
		i.succeeds(t, withMeta(t, host(t, "h-patch", nil), annotated), "create", "-f", "-")
		i.remove(t, "-n", "pool", "sshhost", "h-patch")
		got := i.succeeds(t, nil, "get", "-n", "pool", "sshhost", "h-patch", "-o", "jsonpath={.metadata.annotations.a} {.metadata.finalizers} {.metadata.labels.c}").Stdout
		if got != `b ["example.com/hold"] d` {
			t.Error(got)
		}
	})
	t.Run("strict validation takes what was filled in", func(t *testing.T) {
		i.succeeds(t, host(t, "h-strict", nil), "create", "--dry-run=server", "--validate=strict", "-f", "-")
	})
}

// TestDryRunsLeaveNothingBehind: no event, no count of decisions, no write by us.
func TestDryRunsLeaveNothingBehind(t *testing.T) {
	i := install(t)
	good, bad := profile(t, "p-dry", scripts(), signatures(t, i.signer, scripts())), profile(t, "p-dry", scripts(), nil)
	events := func() int {
		list, err := i.cp.Client().CoreV1().Events("").List(soon(t), metav1.ListOptions{})
		must(t, err)
		n := 0
		for _, e := range list.Items {
			if strings.Contains(e.InvolvedObject.Name, "p-dry") {
				n++
			}
		}
		return n
	}
	before, asked := i.metrics(t).Sum(decisions), i.asked(t)
	n := times(300, 1000)
	harness.Spread(n, 4, func(number int) {
		raw := good
		if number%2 == 1 {
			raw = bad
		}
		if err := i.writer.DryCreate(t.Context(), harness.Profiles(), raw); (err == nil) != (number%2 == 0) {
			t.Errorf("dry run %d: %v", number, err)
		}
	})
	if after := i.metrics(t).Sum(decisions); after != before {
		t.Errorf("%v decisions were counted", after-before)
	}
	if got := i.asked(t) - asked; got != float64(n) {
		t.Errorf("the server judged %v requests; want %d", got, n)
	}
	if n := events(); n != 0 {
		t.Errorf("%d events", n)
	}
	written, err := harness.ReadAudit(i.cp.AuditLog, func(e harness.AuditEvent) bool {
		return strings.HasSuffix(e.User.Username, ":hostwarrant-webhook")
	})
	must(t, err)
	if len(written) > 0 {
		t.Errorf("the webhook wrote %d times, first: %s", len(written), written[0].Raw)
	}
}

// TestOurOwnPodsNeedNoneOfUs: with no replica at all, what our pods are made of can be written.
func TestOurOwnPodsNeedNoneOfUs(t *testing.T) {
	i := install(t)
	i.balancer.Set()
	t.Cleanup(func() { i.balancer.Set(i.at) })
	i.refused503(t, profile(t, "p-nobody", scripts(), signatures(t, i.signer, scripts())))
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"trial","namespace":"hostwarrant-system"},"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"c","image":"x","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"trial","namespace":"hostwarrant-system"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"x"}]}}}}`,
		`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"trial","namespace":"hostwarrant-system"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"trial","namespace":"kube-system"}}`,
	} {
		i.succeeds(t, []byte(text), "create", "--dry-run=server", "-f", "-")
	}
	started, err := i.product.StartWebhookAt(soon(t), "webhook-alone", freeAddress(t, i))
	must(t, err)
	t.Cleanup(func() { must(t, started.Kill()) })
	must(t, started.Wait(soon(t), "/readyz")) // with no other replica answering
}

func freeAddress(t *testing.T, i *installation) string {
	t.Helper()
	address, err := product.FreeAddress(i.product.Addr())
	must(t, err)
	return address
}

// refused503 wants a refusal because nobody of ours answers.
func (i *installation) refused503(t *testing.T, raw []byte) {
	t.Helper()
	eventually(t, "the API server to find nobody", func() bool {
		r := i.kubectl(t, raw, "create", "--dry-run=server", "-f", "-")
		return r.Code != 0 && strings.Contains(r.Stderr, "failed calling webhook")
	})
}

// TestReadyAsSoonAsThereIsAPolicy: the first policy of the installation.
func TestReadyAsSoonAsThereIsAPolicy(t *testing.T) {
	i := install(t)
	t.Logf("ready %v after the policy was stored", i.readyAfter)
	if i.readyAfter > time.Second {
		t.Errorf("it took %v; want less than a second", i.readyAfter)
	}
}

// TestNamesMakeNoSeries posts objects of many names to a replica, and kinds that it does not judge.
func TestNamesMakeNoSeries(t *testing.T) {
	i := install(t)
	p := i.poster(t, i.at)
	raw := string(profile(t, "p-series", scripts(), nil))
	post := func(n int) {
		body := reviewOf(t, admissionv1.Create, []byte(strings.Replace(raw, "p-series", fmt.Sprintf("p-series-%d", n), 1)), nil)
		if n%10 == 0 {
			body = []byte(strings.ReplaceAll(string(body), "SSHJoinProfile", fmt.Sprintf("Kind%d", n)))
		}
		code, _, err := p.Post(t.Context(), "/validate", body)
		if err != nil || code >= 500 {
			t.Errorf("HTTP %d, %v", code, err)
		}
	}
	for n := range 20 {
		post(n)
	}
	before := i.metrics(t)
	harness.Spread(10000, 4, func(n int) { post(n + 20) })
	after := i.metrics(t)
	t.Logf("10,000 names: %d series of ours before, %d after; %d in all before, %d after", before.Series("hostwarrant_"), after.Series("hostwarrant_"), len(before), len(after))
	if before.Series("hostwarrant_") != after.Series("hostwarrant_") || before.Series("hostwarrant_") == 0 {
		t.Errorf("%d series before, %d after", before.Series("hostwarrant_"), after.Series("hostwarrant_"))
	}
	if counted := after.Sum(decisions) - before.Sum(decisions); counted != 10000 {
		t.Errorf("%v decisions were counted", counted)
	}
}

// warnMode makes the tests' policy one that only warns.
func warnMode(t *testing.T) func(string) string {
	t.Helper()
	return replace(t, "mode: enforce\n", fmt.Sprintf("mode: warn\nwarnUntil: %q\n", time.Now().UTC().Add(24*time.Hour).Format(time.RFC3339)))
}

// TestModeWarnCountsWhatItWouldRefuse stages a roll-out: warn, look at the counts, enforce.
func TestModeWarnCountsWhatItWouldRefuse(t *testing.T) {
	i := install(t)
	i.usualPolicy(t)
	bad := profile(t, "p-warn", join(func(s string) string { return s + "{{ \x1b[31mred\n" }), nil)
	i.newPolicy(t, warnMode(t), i.signer)
	before := i.metrics(t)
	r := i.succeeds(t, bad, "create", "-f", "-")
	i.remove(t, "sshjoinprofile", "p-warn")
	var warnings []string
	for line := range strings.Lines(r.Stderr) {
		if text, ok := strings.CutPrefix(line, "Warning: "); ok {
			warnings = append(warnings, strings.TrimSuffix(text, "\n"))
		}
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "hostwarrant (mode warn) would refuse: SSHJoinProfile/p-warn: ") {
		t.Fatalf("warnings %q", warnings)
	}
	if len(warnings[0]) >= 256 || regexp.MustCompile(`[\x00-\x1f\x7f]`).MatchString(warnings[0]) {
		t.Errorf("a warning of %d bytes, or with control characters: %q", len(warnings[0]), warnings[0])
	}
	after := i.metrics(t)
	warned := func(m harness.Metrics) float64 { return m.Sum(decisions, `kind="SSHJoinProfile"`, `outcome="warn"`) }
	t.Logf("would-deny count %v before, %v after", warned(before), warned(after))
	if warned(after) != warned(before)+1 {
		t.Errorf("%v would-denials were counted; want 1", warned(after)-warned(before))
	}
	i.newPolicy(t, nil, i.signer)
	i.refused(t, withMeta(t, bad, object{"name": "p-warn-2"}), []string{"create", "-f", "-"}, "SSHJoinProfile/p-warn-2: ")
	if denied := i.metrics(t).Sum(decisions, `outcome="deny"`) - after.Sum(decisions, `outcome="deny"`); denied != 1 {
		t.Errorf("%v denials were counted; want 1", denied)
	}
}

// TestTheAuditLogSaysWhoVouched reads the API server's audit log at level Metadata.
func TestTheAuditLogSaysWhoVouched(t *testing.T) {
	i := install(t)
	const name = "p-audit"
	good := profile(t, name, scripts(), signatures(t, i.signer, scripts()))
	i.succeeds(t, good, "create", "-f", "-")
	i.remove(t, "sshjoinprofile", name)
	i.refused(t, profile(t, name, join(func(s string) string { return s + "id # a-secret-word\n" }), nil), []string{"replace", "-f", "-"}, "Unsigned")
	events, err := harness.ReadAudit(i.cp.AuditLog, func(e harness.AuditEvent) bool {
		return e.ObjectRef.Resource == "sshjoinprofiles" && (e.ObjectRef.Name == name || e.Verb == "create" && strings.Contains(e.Raw, name))
	})
	must(t, err)
	verdicts := map[string]bool{}
	for _, e := range events {
		verdict := e.Annotation(".dev/verdict")
		if verdict == "" {
			continue
		}
		verdicts[verdict] = true
		if e.Annotation("hostwarrant.dev/policy-version") != fmt.Sprint(i.version) || e.Annotation("hostwarrant.dev/policy-digest") == "" || e.Annotation("hostwarrant.dev/reason") == "" {
			t.Errorf("annotations %v", e.Annotations)
		}
		if verdict == "allow" && !strings.Contains(e.Annotation("hostwarrant.dev/keys"), i.signer.Fingerprint) {
			t.Errorf("no annotation names the key %s: %v", i.signer.Fingerprint, e.Annotations)
		}
		for _, text := range []string{"a-secret-word", "echo install", "BEGIN SSH SIGNATURE"} {
			if strings.Contains(e.Raw, text) {
				t.Errorf("the audit log holds %q", text)
			}
		}
	}
	if !verdicts["allow"] || !verdicts["deny"] {
		t.Errorf("verdicts %v in %d events", verdicts, len(events))
	}
}

// TestNoCallComesBackToUs: writing Events, Leases and reports about guarded objects asks nobody of us.
func TestNoCallComesBackToUs(t *testing.T) {
	i := install(t)
	before := i.asked(t)
	for n := range 5 {
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "trial-", Namespace: "pool"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "karpenter.dklesev.github.io/v1beta1", Kind: "SSHHost", Namespace: "pool", Name: "h"},
			Reason:         "Trial", Message: fmt.Sprint(n),
		}
		_, err := i.cp.Client().CoreV1().Events("pool").Create(soon(t), event, metav1.CreateOptions{})
		must(t, err)
	}
	if after := i.asked(t); after != before {
		t.Errorf("%v requests reached the server", after-before)
	}
}

// TestServingCertificateIsOfTheConfiguration: the bundle in the configuration is a certificate, and
// the leaf is of the Service's name; a client without the bundle gets nowhere.
func TestServingCertificateIsOfTheConfiguration(t *testing.T) {
	i := install(t)
	for _, w := range i.validating(t).Webhooks {
		if !strings.HasPrefix(string(w.ClientConfig.CABundle), "-----BEGIN CERTIFICATE-----") {
			t.Errorf("%s: caBundle %s", w.Name, base64.StdEncoding.EncodeToString(w.ClientConfig.CABundle))
		}
	}
	p, err := harness.NewPoster(i.at, "other.svc", i.validating(t).Webhooks[0].ClientConfig.CABundle)
	must(t, err)
	t.Cleanup(p.Close)
	if _, _, err := p.Post(soon(t), "/validate", []byte("{}")); err == nil {
		t.Error("the serving certificate holds for another name")
	}
}
