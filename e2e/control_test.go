//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// controlWorld is the product in a lab of its own, with a controller that looks often.
type controlWorld struct {
	*installation
	controller *product.Program
	version    int
}

// canaryEvery is the interval of the tests' canaries.
const canaryEvery = 2 * time.Second

func newControlWorld(t *testing.T) *controlWorld {
	t.Helper()
	ctx, l, cp := ownLab(t, lab.ControlPlaneOptions{})
	i := &installation{cp: cp, root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519")}
	var err error
	i.product, err = product.Install(ctx, product.Options{
		Lab: l, ControlPlane: cp, Roots: []byte(i.root.Line + "\n"), ClusterID: "e2e", HostNamespaces: []string{pool}, UpstreamCRDs: product.UpstreamCRDs(t),
	})
	must(t, err)
	i.webhook, err = i.product.StartWebhook(ctx)
	must(t, err)
	w := &controlWorld{installation: i}
	w.start(t)
	w.policy(t, i.signer)
	must(t, i.webhook.Wait(ctx, "/readyz"))
	return w
}

func (w *controlWorld) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	var err error
	w.controller, err = w.product.StartControllerWith(ctx, "--canary-interval="+canaryEvery.String())
	must(t, err)
}

// policy puts the next version of the trust policy in force.
func (w *controlWorld) policy(t *testing.T, signers ...testkit.Signer) {
	t.Helper()
	w.policyWith(t, func(document string) string { return document }, signers...)
}

func (w *controlWorld) policyWith(t *testing.T, edit func(string) string, signers ...testkit.Signer) {
	t.Helper()
	w.version++
	w.document = edit(policyDocument(t, w.version, signers...))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, w.product.ApplyPolicy(ctx, testkit.WriteFile(t, t.TempDir(), "policy.json", w.trustPolicy(t, w.document, w.root))))
}

// numbered is the JSON of a signed profile with warrants of the given serial.
func numbered(t *testing.T, name string, serial int64, s testkit.Signer) []byte {
	t.Helper()
	texts := map[string]string{}
	for phase := range scripts() {
		texts[phase] = fmt.Sprintf("#!/usr/bin/env bash\n#warrant: v1\n#warrant: profile %s\n#warrant: phase %s\n#warrant: serial %d\n#warrant: not-after %d\n#warrant: target any\n#warrant: end\necho %s\n",
			name, phase, serial, time.Now().Add(30*24*time.Hour).Unix(), phase)
	}
	o := object{}
	must(t, json.Unmarshal(profile(t, name, texts, signatures(t, s, texts)), &o))
	spec, ok := o["spec"].(map[string]any)
	if !ok {
		t.Fatalf("spec is %T", o["spec"])
	}
	spec["version"] = strconv.FormatInt(serial, 10)
	return encode(t, o)
}

// ledger is the serial of a profile's record; "" where there is none.
func (w *controlWorld) ledger(t *testing.T, profile string) string {
	t.Helper()
	return w.kubectl(t, nil, "get", "ledger", "profile."+profile, "-o", "jsonpath={.spec.profile.serial}").Stdout
}

// condition is "status reason: message" of a condition of the trust policy.
func (w *controlWorld) condition(t *testing.T, name string) string {
	t.Helper()
	at := fmt.Sprintf(`{.status.conditions[?(@.type=="%s")]`, name)
	return w.kubectl(t, nil, "get", "trustpolicy", "cluster", "-o", "jsonpath="+at+".status} "+at+".reason}: "+at+".message}").Stdout
}

// events are "type reason message" of the events about an object, one a line.
func (w *controlWorld) events(t *testing.T, namespace, kind, name string) string {
	t.Helper()
	return w.kubectl(t, nil, "get", "events", "-n", namespace, "--field-selector", "involvedObject.kind="+kind+",involvedObject.name="+name,
		"-o", `jsonpath={range .items[*]}{.type} {.reason} {.message}{"\n"}{end}`).Stdout
}

// metric is the value of a series of the controller; "" where there is none.
func (w *controlWorld) metric(t *testing.T, series string) string {
	t.Helper()
	return metricOf(t, w.controller, series)
}

func metricOf(t *testing.T, of *product.Program, series string) string {
	t.Helper()
	_, text := get(t, of.Metrics+"/metrics")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (.*)$`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}

func TestControllerKeepsLedgerAndJudgesAgain(t *testing.T) {
	w := newControlWorld(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"canaries are refused, and nothing differs", w.inPath},
		{"the ledger rises after an apply, and after nothing less", w.ledgerRises},
		{"trusted signers that nobody owns are refreshed", w.refreshes},
		{"a removed signer flips verdicts without a write", w.flips},
		{"what is admitted in mode warn moves no ledger", w.warnRaisesNothing},
		{"a configuration that was changed or deleted is found", w.drifts},
		{"a controller that was taken over is found by the relay", w.relayAlarms},
		{"a lost ledger is filled again, loudly", w.rebuilds},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

func (w *controlWorld) inPath(t *testing.T) {
	eventually(t, "AdmissionInPath", func() bool { return strings.HasPrefix(w.condition(t, "AdmissionInPath"), "True CanariesRefused") })
	for _, kind := range []string{"SSHJoinProfile", "SSHHost", "SSHNodeClass", "HostRun", "HostStatement", "TrustPolicy"} {
		if got := w.metric(t, `hostwarrant_admission_in_path{kind="`+kind+`"}`); got != "1" {
			t.Errorf("%s: in path %q", kind, got)
		}
	}
	w.succeeds(t, nil, "wait", "--for=condition=InForce", "trustpolicy/cluster", "--timeout=30s")
	eventually(t, "the anchor to be pinned", func() bool {
		return w.kubectl(t, nil, "get", "ledger", "policy", "-o", "jsonpath={.spec.policy.version} {.spec.policy.roots}").Stdout == "1 "+w.root.Line+"\n"
	})
	eventually(t, "the ledger to be intact", func() bool { return strings.HasPrefix(w.condition(t, "LedgerIntact"), "True") })
}

func (w *controlWorld) ledgerRises(t *testing.T) {
	w.succeeds(t, numbered(t, "p-ledger", 7, w.signer), "apply", "--dry-run=server", "-f", "-")
	w.succeeds(t, numbered(t, "p-other", 3, w.signer), "apply", "-f", "-")
	eventually(t, "the record of what was applied", func() bool { return w.ledger(t, "p-other") == "3" })
	if got := w.ledger(t, "p-ledger"); got != "" {
		t.Fatalf("a dry run raised the ledger to %s", got)
	}
	w.succeeds(t, numbered(t, "p-ledger", 7, w.signer), "apply", "-f", "-")
	eventually(t, "the record of what was applied", func() bool { return w.ledger(t, "p-ledger") == "7" })
	eventually(t, "the webhook to know it", func() bool {
		return strings.Contains(w.kubectl(t, numbered(t, "p-ledger", 6, w.signer), "apply", "-f", "-").Stderr, "SerialRollback")
	})
	w.succeeds(t, numbered(t, "p-ledger", 8, w.signer), "apply", "-f", "-")
	eventually(t, "the record to rise", func() bool { return w.ledger(t, "p-ledger") == "8" })
	r := w.kubectl(t, nil, "patch", "ledger", "profile.p-ledger", "--type=merge", "-p", `{"spec":{"profile":{"serial":1}}}`)
	if r.Code == 0 || !strings.Contains(r.Stderr, "only hostwarrant-controller writes a Ledger") {
		t.Errorf("a cluster admin lowers the ledger: exit %d, %s", r.Code, r.Stderr)
	}
	r = w.kubectl(t, nil, "delete", "sshjoinprofile", "p-other", "--as=system:serviceaccount:hostwarrant-system:hostwarrant-controller")
	if r.Code == 0 || !strings.Contains(r.Stderr, "hostwarrant-controller deletes canaries only") {
		t.Errorf("the controller deletes a profile: exit %d, %s", r.Code, r.Stderr)
	}
}

// verifiedHost leaves trustedSigners to the webhook, unless some are given.
func verifiedHost(t *testing.T, name string, signers ...string) []byte {
	t.Helper()
	spec := object{
		"address": "192.0.2.7", "user": "kpssh", "execMode": "Verified", "sshKeySecretRef": object{"name": "key"}, "capacity": object{"cpu": "1", "memory": "1Gi"},
	}
	if len(signers) > 0 {
		spec["trustedSigners"] = signers
	}
	return encode(t, object{
		"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHHost", "metadata": object{"name": name, "namespace": pool}, "spec": spec,
	})
}

func (w *controlWorld) refreshes(t *testing.T) {
	w.succeeds(t, verifiedHost(t, "h-ours"), "create", "-f", "-")
	w.succeeds(t, verifiedHost(t, "h-theirs", w.signer.Line), "create", "-f", "-")
	second := testkit.NewSigner(t, "ed25519")
	w.policy(t, w.signer, second)
	signers := func(host string) string {
		return w.kubectl(t, nil, "get", "sshhost", "-n", pool, host, "-o", "jsonpath={.spec.trustedSigners}").Stdout
	}
	eventually(t, "the list to be refreshed", func() bool { return strings.Contains(signers("h-ours"), strings.Fields(second.Line)[1]) })
	eventually(t, "the other list to be reported", func() bool {
		return strings.Contains(w.events(t, pool, "SSHHost", "h-theirs"), "Warning TrustedSignersOutdated")
	})
	if got := signers("h-theirs"); strings.Contains(got, strings.Fields(second.Line)[1]) {
		t.Errorf("a list that somebody owns was changed to %s", got)
	}
}

func (w *controlWorld) flips(t *testing.T) {
	stored := func() string {
		return w.kubectl(t, nil, "get", "sshjoinprofile", "p-ledger", "-o", "jsonpath={.metadata.resourceVersion}").Stdout
	}
	before, start := stored(), time.Now()
	other := testkit.NewSigner(t, "ed25519")
	w.policy(t, other)
	eventually(t, "the verdict to flip", func() bool {
		return strings.Contains(w.events(t, "default", "SSHJoinProfile", "p-ledger"), "Warning SignerUnknown")
	})
	t.Logf("the verdict flipped %.1f s after the policy was applied", time.Since(start).Seconds())
	if after := stored(); after != before {
		t.Errorf("the object was written: %s, and %s before", after, before)
	}
	if got := w.condition(t, "ObjectsVerified"); !strings.HasPrefix(got, "False ObjectsRefused") {
		t.Errorf("ObjectsVerified is %q", got)
	}
	if got := w.metric(t, `hostwarrant_objects{kind="SSHJoinProfile",reason="SignerUnknown",verdict="refused"}`); got != "2" {
		t.Errorf("%q profiles are refused", got)
	}
	w.policy(t, w.signer)
	eventually(t, "the verdict to flip back", func() bool {
		return strings.Contains(w.events(t, "default", "SSHJoinProfile", "p-ledger"), "Normal Verified")
	})
}

func (w *controlWorld) warnRaisesNothing(t *testing.T) {
	w.policyWith(t, func(document string) string {
		return strings.Replace(document, "mode: enforce\n", "mode: warn\nwarnUntil: "+strconv.Quote(time.Now().UTC().Add(24*time.Hour).Format(time.RFC3339))+"\n", 1)
	}, w.signer)
	stranger := testkit.NewSigner(t, "ed25519")
	for name, o := range map[string][]byte{
		"p-warn": numbered(t, "p-warn", 5, stranger), "p-jump": numbered(t, "p-jump", 999999999999999, w.signer),
	} {
		eventually(t, name+" to be admitted in mode warn", func() bool { return w.kubectl(t, o, "apply", "-f", "-").Code == 0 })
	}
	eventually(t, "both to be judged", func() bool {
		return strings.Contains(w.events(t, "default", "SSHJoinProfile", "p-warn"), "Warning SignerUnknown") &&
			strings.Contains(w.events(t, "default", "SSHJoinProfile", "p-jump"), "Warning SerialJump")
	})
	for _, name := range []string{"p-warn", "p-jump"} {
		if got := w.ledger(t, name); got != "" {
			t.Errorf("%s was admitted in mode warn, and raised the ledger to %s", name, got)
		}
		w.succeeds(t, nil, "delete", "sshjoinprofile", name)
	}
	w.policy(t, w.signer)
}

// restorer gives what puts the validating configuration back as it is now.
func (w *controlWorld) restorer(t *testing.T) func() {
	t.Helper()
	kept := w.succeeds(t, nil, "get", "validatingwebhookconfiguration", "hostwarrant", "-o", "json").Stdout
	return func() {
		o := object{}
		must(t, json.Unmarshal([]byte(kept), &o))
		o["metadata"] = object{"name": "hostwarrant"}
		w.succeeds(t, encode(t, o), "apply", "--server-side", "--force-conflicts", "-f", "-")
	}
}

func (w *controlWorld) drifts(t *testing.T) {
	back := w.restorer(t)
	restore := func() {
		back()
		eventually(t, "AdmissionInPath again", func() bool { return strings.HasPrefix(w.condition(t, "AdmissionInPath"), "True") })
	}
	w.succeeds(t, nil, "patch", "validatingwebhookconfiguration", "hostwarrant", "--type=json", "-p", `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
	eventually(t, "the changed failure policy to be named", func() bool {
		got := w.condition(t, "AdmissionInPath")
		return strings.HasPrefix(got, "False ConfigurationDrift") && strings.Contains(got, "webhooks[0].failurePolicy")
	})
	restore()
	start := time.Now()
	w.succeeds(t, nil, "delete", "validatingwebhookconfiguration", "hostwarrant")
	eventually(t, "the deleted configuration to be found", func() bool { return strings.HasPrefix(w.condition(t, "AdmissionInPath"), "False NotAsked") })
	took := time.Since(start)
	t.Logf("found %.1f s after the configuration was deleted, with an interval of %s", took.Seconds(), canaryEvery)
	if took > canaryEvery+5*time.Second {
		t.Errorf("that is more than an interval")
	}
	if !strings.Contains(w.events(t, "default", "TrustPolicy", "cluster"), "Warning NotAsked") {
		t.Error("there is no event")
	}
	if got := w.kubectl(t, nil, "get", "validatingwebhookconfiguration", "hostwarrant").Code; got == 0 {
		t.Error("what a cluster admin deleted was made again")
	}
	restore()
}

// relayAlarms: the controller says nothing any more, and its account opens the webhook.
func (w *controlWorld) relayAlarms(t *testing.T) {
	must(t, w.controller.Stop())
	relay, err := w.product.StartRelay(soon(t))
	must(t, err)
	shows := func(object, value string) {
		t.Helper()
		start := time.Now()
		eventually(t, fmt.Sprintf("the relay to show %s of %s", value, object), func() bool {
			return metricOf(t, relay, `hostwarrant_guard_drift{object="`+object+`"}`) == value
		})
		t.Logf("%s is %s after %.0f s", object, value, time.Since(start).Seconds())
	}
	logged := func(words string) {
		t.Helper()
		eventually(t, "the relay to say "+words, func() bool { return strings.Contains(relay.Tail(1000), words) })
	}
	const configuration, binding = "ValidatingWebhookConfiguration/hostwarrant", "ValidatingAdmissionPolicyBinding/hostwarrant-ledger"
	shows(configuration, "0")
	shows(binding, "0")
	logged("what guards the cluster is as shipped")
	restore := w.restorer(t)
	w.succeeds(t, nil, "--as="+account("hostwarrant-controller"), "patch", "validatingwebhookconfiguration", "hostwarrant", "--type=json",
		"-p", `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
	shows(configuration, "1")
	logged("ALARM: what guards the cluster is not as shipped")
	logged("webhooks[0].failurePolicy differs from what is shipped")
	shows(binding, "0")
	restore()
	shows(configuration, "0")

	put := w.bindingBack(t)
	w.succeeds(t, nil, "delete", "validatingwebhookconfiguration", "hostwarrant")
	w.succeeds(t, nil, "delete", "validatingadmissionpolicybinding", "hostwarrant-ledger")
	shows(configuration, "1")
	shows(binding, "1")
	logged(binding + ": is missing")
	restore()
	put()
	shows(configuration, "0")
	shows(binding, "0")
	must(t, relay.Stop())
	w.start(t)
	eventually(t, "AdmissionInPath again", func() bool { return strings.HasPrefix(w.condition(t, "AdmissionInPath"), "True") })
}

// bindingBack gives what puts the binding of hostwarrant-ledger back as it is now.
func (w *controlWorld) bindingBack(t *testing.T) func() {
	t.Helper()
	binding := w.succeeds(t, nil, "get", "validatingadmissionpolicybinding", "hostwarrant-ledger", "-o", "json").Stdout
	return func() {
		o := object{}
		must(t, json.Unmarshal([]byte(binding), &o))
		o["metadata"] = object{"name": "hostwarrant-ledger"}
		w.succeeds(t, encode(t, o), "apply", "-f", "-")
	}
}

func (w *controlWorld) rebuilds(t *testing.T) {
	must(t, w.controller.Stop())
	put := w.bindingBack(t)
	w.succeeds(t, nil, "delete", "validatingadmissionpolicybinding", "hostwarrant-ledger")
	eventually(t, "the ledger to be deleted", func() bool { return w.kubectl(t, nil, "delete", "ledger", "--all").Code == 0 })
	put()
	w.start(t)
	eventually(t, "the ledger to be filled again", func() bool { return w.ledger(t, "p-ledger") == "8" && w.ledger(t, "p-other") == "3" })
	eventually(t, "the alarm", func() bool {
		return strings.HasPrefix(w.condition(t, "LedgerIntact"), "False LedgerRebuilt") &&
			strings.Contains(w.events(t, "default", "TrustPolicy", "cluster"), "Warning LedgerRebuilt") && w.metric(t, "hostwarrant_ledger_rebuilt_total") == "1"
	})
}

// many is how many profiles and hosts the figure is for.
const many = 1000

// TestControllerConvergesOnManyObjects: a policy change with a thousand profiles and a thousand hosts.
func TestControllerConvergesOnManyObjects(t *testing.T) {
	w := newControlWorld(t)
	start := time.Now()
	w.createMany(t)
	t.Logf("%d profiles and %d hosts created in %.0f s", many, many, time.Since(start).Seconds())
	eventually(t, "all to be recorded", func() bool {
		return w.metric(t, `hostwarrant_objects{kind="SSHJoinProfile",reason="Verified",verdict="verified"}`) == strconv.Itoa(many)
	})

	second := testkit.NewSigner(t, "ed25519")
	for _, c := range []struct {
		name    string
		signers []testkit.Signer
		series  string
		events  bool
	}{
		{"a signer more: no verdict changes", []testkit.Signer{w.signer, second}, `hostwarrant_objects{kind="SSHJoinProfile",reason="Verified",verdict="verified"}`, false},
		{"the signer removed: every verdict changes", []testkit.Signer{second}, `hostwarrant_objects{kind="SSHJoinProfile",reason="SignerUnknown",verdict="refused"}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			scans := w.metric(t, "hostwarrant_rejudgement_seconds_count")
			start := time.Now()
			w.policy(t, c.signers...)
			eventually(t, "a scan", func() bool { return w.metric(t, "hostwarrant_rejudgement_seconds_count") != scans })
			took := time.Since(start)
			if got := w.metric(t, c.series); got != strconv.Itoa(many) {
				t.Errorf("%s is %s", c.series, got)
			}
			line := lastLine(w.controller.Tail(200), "stored objects judged again")
			t.Logf("converged %.1f s after the policy was applied: %s", took.Seconds(), line)
			var figures struct{ Objects, Reads, Writes, Changed int }
			must(t, json.Unmarshal([]byte(line), &figures))
			if took > time.Minute || figures.Objects != 2*many || figures.Reads > 2*many+many+1 {
				t.Errorf("objects %d, reads %d (each object and each record of the ledger once), %s", figures.Objects, figures.Reads, took)
			}
			if !c.events && figures.Writes > 3 { // condition, ledger of policies
				t.Errorf("%d writes although no verdict changed", figures.Writes)
			}
			if c.events && figures.Changed != 2*many {
				t.Errorf("%d verdicts changed", figures.Changed)
			}
		})
	}
}

func lastLine(text, with string) string {
	found := ""
	for line := range strings.SplitSeq(text, "\n") {
		if _, fields, ok := strings.Cut(line, "{"); ok && strings.Contains(line, with) {
			found = "{" + fields
		}
	}
	return found
}

// createMany stores profiles and hosts, eight at a time.
func (w *controlWorld) createMany(t *testing.T) {
	t.Helper()
	config := rest.CopyConfig(w.cp.RESTConfig())
	config.QPS, config.Burst = 500, 500
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	c, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	must(t, err)
	const group = "/apis/karpenter.dklesev.github.io/v1beta1"
	create := func(path string, body []byte) error {
		return c.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
	}
	work := make(chan int)
	errs := make(chan error, 2*many)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range work {
				if err := create(group+"/sshjoinprofiles", numbered(t, fmt.Sprintf("many-%04d", n), 1, w.signer)); err != nil {
					errs <- err
				}
				if err := create(group+"/namespaces/"+pool+"/sshhosts", verifiedHost(t, fmt.Sprintf("many-%04d", n), w.signer.Line)); err != nil {
					errs <- err
				}
			}
		})
	}
	for n := range many {
		work <- n
	}
	close(work)
	all.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
}
