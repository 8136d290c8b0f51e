//go:build linux

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/kubescape"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Each ValidatingAdmissionPolicy refuses what it is for and lets its near miss pass, on an API server
// with our webhook configurations deleted and no program of ours running.
func TestGuards(t *testing.T) {
	w := newGuardWorld(t)
	for _, g := range []struct {
		name string
		show func(*testing.T, *guardWorld)
	}{
		{"hostwarrant-profile-shape", guardProfileShape},
		{"hostwarrant-trust-policy", guardTrustPolicy},
		{"hostwarrant-ledger", guardLedger},
		{"hostwarrant-anchor", guardAnchor},
		{"hostwarrant-crds", guardCRDs},
		{"hostwarrant-canary", guardCanary},
		{"hostwarrant-decommission", guardDecommission},
		{"hostwarrant-serving-secret", guardServingSecret},
		{"hostwarrant-controller-hosts", guardControllerHosts},
		{"hostwarrant-composites", guardComposites},
		{"hostwarrant-hostrun-status", guardHostRunStatus},
		{"hostwarrant-minter-secrets", guardMinterSecrets},
		{"hostwarrant-minter-approvals", guardMinterApprovals},
		{"hostwarrant-leases", guardLeases},
		{"hostwarrant-host-reports", guardHostReports},
		{"hostwarrant-webhook-configurations", guardWebhookConfigurations},
		{"hostwarrant-guards.static.k8s.io", guardStatic}, // last: from here on nothing of ours can be deleted
	} {
		t.Run(g.name, func(t *testing.T) { g.show(t, w) })
	}
}

func guardProfileShape(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-profile-shape"
	signed := signatures(t, w.signer, scripts())
	empty := profile(t, "shape", scripts(), map[string]string{})
	w.inForce(t, policy, "spec.signatures is empty", empty, "create", "-f", "-")
	with := func(signature string) map[string]string {
		all := signatures(t, w.signer, scripts())
		all["join"] = signature
		return all
	}
	const noSignature = "a signature is no armored SSH signature: spec.signatures.join"
	long := join(func(s string) string { return s + strings.Repeat("#", 300_000) })
	noJoin := scripts()
	delete(noJoin, "join")
	for name, c := range map[string]struct {
		object []byte
		says   string // of the policy; else of the CRD
		crd    string
	}{
		"an empty signatures block":  {empty, "spec.signatures is empty", ""},
		"an empty signature":         {profile(t, "shape", scripts(), with("")), noSignature, ""},
		"text":                       {profile(t, "shape", scripts(), with("hello")), noSignature, ""},
		"only the first line":        {profile(t, "shape", scripts(), with("-----BEGIN SSH SIGNATURE-----\nAAAA\n")), noSignature, ""},
		"only the last line":         {profile(t, "shape", scripts(), with("AAAA\n-----END SSH SIGNATURE-----\n")), noSignature, ""},
		"an empty join":              {profile(t, "shape", join(func(string) string { return " \n" }), nil), "spec.scripts.join is empty", ""},
		"no join":                    {profile(t, "shape", noJoin, nil), "", "spec.scripts.join: Required value"},
		"300,000 characters":         {profile(t, "shape", long, signed), "", "Too long: may not be more than 262144"},
		"near miss: signed":          {profile(t, "shape", scripts(), signed), "", ""},
		"near miss: no signatures":   {profile(t, "shape", scripts(), nil), "", ""},
		"near miss: YAML's |- armor": {profile(t, "shape", scripts(), with(strings.TrimSuffix(signed["join"], "\n"))), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			switch {
			case c.says != "":
				w.denied(t, policy, c.says, c.object, "create", "-f", "-")
			case c.crd != "":
				if r := w.kubectl(t, c.object, "create", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, c.crd) {
					t.Errorf("exit %d: %s", r.Code, r.Stderr)
				}
			default:
				w.allowed(t, c.object, "create", "-f", "-", "--dry-run=server")
			}
		})
	}
	t.Run("what was stored before keeps its finalizers free", func(t *testing.T) {
		w.allowed(t, profile(t, "shape", scripts(), signed), "create", "-f", "-")
		t.Cleanup(func() { w.allowed(t, nil, "delete", "sshjoinprofile", "shape") })
		w.denied(t, policy, "spec.signatures is empty", nil, "patch", "sshjoinprofile", "shape", "--type=json", "-p", `[{"op":"replace","path":"/spec/signatures","value":{}}]`)
		w.allowed(t, nil, "label", "sshjoinprofile", "shape", "team=a")
	})
}

func guardTrustPolicy(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-trust-policy"
	armored := testkit.Sign(t, w.signer, "hostwarrant-policy", []byte("x"))
	object := func(name, document string, signatures ...string) []byte {
		return encode(t, object{
			"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": object{"name": name},
			"spec": object{"document": document, "signatures": signatures},
		})
	}
	chained := func(signature string) []byte {
		return encode(t, map[string]any{
			"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": map[string]any{"name": "cluster"},
			"spec": map[string]any{"document": "x", "signatures": []string{armored}, "rootChain": []map[string]any{{"document": "y", "signatures": []string{signature}}}},
		})
	}
	const empty, noSignature, kept = "spec.document is empty", "a signature is no armored SSH signature", "the TrustPolicy is not deleted while it guards"
	w.inForce(t, policy, empty, object("cluster", " \n", armored), "create", "-f", "-")
	if r := w.kubectl(t, object("other", "x", armored), "create", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, "named 'cluster'") {
		t.Errorf("another name: exit %d: %s", r.Code, r.Stderr)
	}
	w.denied(t, policy, empty, object("cluster", " \n", armored), "create", "-f", "-")
	w.denied(t, policy, noSignature, object("cluster", "x", armored, "hello"), "create", "-f", "-")
	w.denied(t, policy, noSignature, chained("-----BEGIN SSH SIGNATURE-----\n"), "create", "-f", "-")
	w.allowed(t, chained(armored), "create", "-f", "-", "--dry-run=server")
	canary := object("hostwarrant-canary-0123456789abcdef", "x", armored)
	w.allowed(t, canary, "create", "-f", "-", "--dry-run=server")
	w.allowed(t, object("cluster", "x", armored), "create", "-f", "-")
	w.denied(t, policy, empty, object("cluster", "\n", armored), "replace", "-f", "-")
	w.allowed(t, object("cluster", "y", armored), "replace", "-f", "-")
	w.allowed(t, nil, "label", "trustpolicy", "cluster", "team=a")
	w.denied(t, policy, kept, nil, "delete", "trustpolicy", "cluster")
	w.denied(t, policy, kept, nil, "delete", "--raw", "/apis/hostwarrant.dev/v1alpha1/trustpolicies")
	w.allowed(t, nil, append(as("admin", breakGlass), "delete", "trustpolicy", "cluster")...)
}

// ledger is the JSON of a Ledger.
func ledger(t *testing.T, name string, spec object) []byte {
	t.Helper()
	return encode(t, object{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "Ledger", "metadata": object{"name": name}, "spec": spec})
}

func digest(of string) string { return "sha256:" + strings.Repeat(of, 64) }

func guardLedger(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-ledger"
	controller := as(account("hostwarrant-controller"))
	const stranger, lower, content = "only hostwarrant-controller writes a Ledger", "the serial of a profile never goes down", "one serial of a profile is one content"
	serial := func(serial int, d, reset string) []byte {
		p := object{"serial": serial, "digest": digest(d)}
		if reset != "" {
			p["reset"] = reset
		}
		return ledger(t, "profile.web", object{"profile": p})
	}
	w.inForce(t, policy, stranger, serial(5, "a", ""), "create", "-f", "-")
	for _, name := range []string{"hostwarrant-webhook", "hostwarrant-relay"} { // the canary has a policy of its own
		w.denied(t, policy, stranger, serial(5, "a", ""), append(as(account(name)), "create", "-f", "-")...)
	}
	w.denied(t, policy, stranger, serial(5, "a", ""), append(as("system:serviceaccount:other:hostwarrant-controller"), "create", "-f", "-")...)
	write := slices.Concat(controller, []string{"replace", "-f", "-"})
	w.allowed(t, serial(5, "a", ""), slices.Concat(controller, []string{"create", "-f", "-"})...)
	w.denied(t, policy, stranger, serial(6, "a", ""), "replace", "-f", "-")
	w.denied(t, policy, lower, serial(4, "b", ""), write...)
	w.denied(t, policy, content, serial(5, "b", ""), write...)
	w.allowed(t, serial(5, "a", ""), write...)
	w.allowed(t, serial(6, "b", ""), write...)
	const noID, stays = "the id of a reset is 64 lower-case hex digits", "the last reset of a profile stays in its Ledger"
	for _, id := range []string{"web/2", strings.Repeat("a", 63), strings.Repeat("a", 65), strings.Repeat("A", 64), resetID(1) + "\n"} {
		w.denied(t, policy, noID, serial(2, "c", id), write...)
	}
	w.allowed(t, serial(2, "c", resetID(2)), write...)
	w.denied(t, policy, lower, serial(1, "d", resetID(2)), write...)
	w.denied(t, policy, lower, serial(1, "d", ""), write...)
	w.denied(t, policy, stays, serial(2, "c", ""), write...)
	w.denied(t, policy, stays, serial(3, "d", ""), write...)
	w.allowed(t, serial(3, "d", resetID(2)), write...)
	w.allowed(t, serial(1, "d", resetID(1)), write...)
	t.Run("policies", func(t *testing.T) { guardLedgerOfPolicies(t, w, policy, controller) })
	t.Run("fragments", func(t *testing.T) { guardLedgerOfFragments(t, w, policy, controller) })
	t.Run("resets that were used", func(t *testing.T) { guardUsedResets(t, w, policy, write) })

	const kept = "a Ledger is never deleted"
	w.denied(t, policy, kept, nil, "delete", "ledger", "policy")
	w.denied(t, policy, kept, nil, append(as(account("hostwarrant-relay")), "delete", "ledger", "profile.web")...)
	if r := w.kubectl(t, nil, slices.Concat(controller, []string{"delete", "ledger", "profile.web"})...); !deniedBy(r, policy, kept) && !deniedBy(r, "hostwarrant-canary", "hostwarrant-controller deletes canaries only") {
		t.Errorf("the controller deletes a Ledger: exit %d: %s", r.Code, r.Stderr) // two policies refuse it; either may be named
	}
	w.denied(t, policy, kept, nil, "delete", "--raw", "/apis/hostwarrant.dev/v1alpha1/ledgers")
	w.allowed(t, nil, append(as("admin", breakGlass), "delete", "ledger", "policy", "profile.web")...)
}

// resetID is the id of some reset.
func resetID(n int) string { return fmt.Sprintf("%064x", n) }

// guardLedgerOfPolicies leaves a record of version 5 and root version 4.
func guardLedgerOfPolicies(t *testing.T, w *guardWorld, policy string, controller []string) {
	write := slices.Concat(controller, []string{"replace", "-f", "-"})
	remembered := func(version, root int, d string) []byte {
		return ledger(t, "policy", object{"policy": object{
			"roots": "r", "anchorDigest": digest("0"), "rootVersion": root, "version": version, "digest": digest(d),
		}})
	}
	w.allowed(t, remembered(3, 2, "a"), slices.Concat(controller, []string{"create", "-f", "-"})...)
	const down, document = "the version and the root version of the trust policy never go down", "one version of the trust policy is one document"
	w.denied(t, policy, down, remembered(2, 2, "b"), write...)
	w.denied(t, policy, down, remembered(4, 1, "b"), write...)
	w.denied(t, policy, document, remembered(3, 3, "b"), write...)
	w.allowed(t, remembered(3, 3, "a"), write...)
	w.allowed(t, remembered(4, 3, "b"), write...)

	with := func(root int, rootDigest, roots, anchorDigest string) []byte {
		p := object{"roots": roots, "anchorDigest": digest(anchorDigest), "rootVersion": root, "version": 5, "digest": digest("c")}
		if rootDigest != "" {
			p["rootDigest"] = digest(rootDigest)
		}
		return ledger(t, "policy", object{"policy": p})
	}
	const oneRoot, onePin = "one root version is one document", "roots and anchorDigest are one pin"
	w.allowed(t, with(3, "d", "r", "0"), write...) // from none
	w.denied(t, policy, oneRoot, with(3, "e", "r", "0"), write...)
	w.denied(t, policy, oneRoot, with(3, "", "r", "0"), write...)
	w.allowed(t, with(4, "e", "r", "0"), write...)
	w.denied(t, policy, onePin, with(4, "e", "other", "0"), write...)
	w.denied(t, policy, onePin, with(4, "e", "r", "1"), write...)
	w.allowed(t, with(4, "e", "link", "1"), write...) // along the chain
}

// guardLedgerOfFragments: one version of a slot is one content, and numbers go up.
func guardLedgerOfFragments(t *testing.T, w *guardWorld, policy string, controller []string) {
	name := "slots." + strings.Repeat("0a", 16) + ".0"
	mark := func(version int, digest, bytes, reset string) object {
		m := object{"version": version, "digest": strings.Repeat(digest, 64), "bytes": strings.Repeat(bytes, 64)}
		if reset != "" {
			m["reset"] = reset
		}
		return m
	}
	record := func(namespace, bundle string, marks object) []byte {
		return ledger(t, name, object{"slots": object{"namespace": namespace, "bundle": bundle, "marks": marks}})
	}
	one := func(m object) []byte { return record("pay", "redis", object{"base/redis-base": m}) }
	write := slices.Concat(controller, []string{"replace", "-f", "-"})
	const down, place, stays = "the version of a slot never goes down", "a Ledger of slots stays that of its namespace and bundle", "a slot stays in the Ledger"
	w.denied(t, policy, "only hostwarrant-controller writes a Ledger", one(mark(5, "a", "b", "")), "create", "-f", "-")
	w.allowed(t, one(mark(5, "a", "b", "")), slices.Concat(controller, []string{"create", "-f", "-"})...)
	w.denied(t, policy, down, one(mark(4, "a", "b", "")), write...)
	w.denied(t, policy, down, one(mark(5, "c", "b", "")), write...)
	w.denied(t, policy, down, one(mark(5, "a", "c", "")), write...)
	w.denied(t, policy, stays, record("pay", "redis", object{"base/other": mark(1, "a", "b", "")}), write...)
	w.denied(t, policy, place, record("shop", "redis", object{"base/redis-base": mark(5, "a", "b", "")}), write...)
	w.denied(t, policy, place, record("pay", "mysql", object{"base/redis-base": mark(5, "a", "b", "")}), write...)
	w.denied(t, policy, "the id of a slot's reset is 64 lower-case hex digits", one(mark(6, "a", "b", "x")), write...)
	w.allowed(t, record("pay", "redis", object{"base/redis-base": mark(6, "c", "d", ""), "base/other": mark(0, "a", "b", "")}), write...)
	both := func(m object) []byte {
		return record("pay", "redis", object{"base/redis-base": m, "base/other": mark(0, "a", "b", "")})
	}
	w.allowed(t, both(mark(2, "e", "f", resetID(1))), write...)
	w.denied(t, policy, down, both(mark(1, "e", "f", resetID(1))), write...)
	w.denied(t, policy, "the last reset of a slot stays", both(mark(3, "e", "f", "")), write...)
	w.allowed(t, both(mark(1, "e", "f", resetID(2))), write...)

	full := object{"base/redis-base": mark(7, "e", "f", resetID(2)), "base/other": mark(0, "a", "b", "")}
	for n := len(full); n < 2000; n++ {
		full[fmt.Sprintf("overlay/redis-%04d", n)] = mark(1, "a", "b", resetID(n))
	}
	w.allowed(t, record("pay", "redis", full), write...)
	full["overlay/redis-1999"] = mark(0, "a", "b", resetID(1999))
	w.denied(t, policy, down, record("pay", "redis", full), write...) // the guard can afford to compare a full record
	full["overlay/redis-1999"] = mark(2, "a", "b", resetID(1999))
	w.allowed(t, record("pay", "redis", full), write...)
	w.allowed(t, nil, append(as("admin", breakGlass), "delete", "ledger", name)...)
}

// guardUsedResets goes on from there.
func guardUsedResets(t *testing.T, w *guardWorld, policy string, write []string) {
	used := func(ids ...string) []byte {
		return ledger(t, "policy", object{"policy": object{
			"roots": "link", "anchorDigest": digest("1"), "rootVersion": 4, "rootDigest": digest("e"), "version": 5, "digest": digest("c"), "resetsUsed": ids,
		}})
	}
	from := func(first, last int) []string {
		var ids []string
		for n := first; n <= last; n++ {
			ids = append(ids, resetID(n))
		}
		return ids
	}
	const stays, noID = "a reset that was used stays in resetsUsed", "resetsUsed holds ids of resets"
	w.denied(t, policy, noID, used("web/1"), write...)
	w.denied(t, policy, noID, used(strings.Repeat("A", 64)), write...)
	w.allowed(t, used(from(1, 2)...), write...)
	w.denied(t, policy, stays, used(), write...)
	w.denied(t, policy, stays, used(from(2, 3)...), write...)
	w.allowed(t, used(from(1, 2)...), write...)
	w.allowed(t, used(from(1, 511)...), write...)
	w.denied(t, policy, stays, used(from(2, 511)...), write...)
	w.allowed(t, used(from(1, 512)...), write...)
	w.denied(t, policy, stays, used(from(2, 512)...), write...)
	w.allowed(t, used(from(2, 513)...), write...) // the oldest goes first
}

func guardAnchor(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-anchor"
	const kept, immutable, changed = "the anchor is never deleted", "the anchor must be immutable", "the anchor is never changed"
	in := []string{"-n", product.Namespace}
	w.inForce(t, policy, kept, nil, append(in, "delete", "configmap", "hostwarrant-anchor")...)
	w.denied(t, policy, kept, nil, append(in, "delete", "configmap", "hostwarrant-anchor")...)
	w.denied(t, policy, kept, nil, "delete", "--raw", "/api/v1/namespaces/"+product.Namespace+"/configmaps")
	anchor := func(edit func(object)) []byte {
		o := object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "hostwarrant-anchor", "namespace": product.Namespace},
			"immutable": true, "data": object{"roots": "ssh-ed25519 AAAA", "cluster-id": "x"},
		}
		edit(o)
		return encode(t, o)
	}
	for name, edit := range map[string]func(object){
		"other roots":            func(object) {},
		"data beside":            func(o object) { o["binaryData"] = object{"x": "AAAA"} },
		"not immutable any more": func(o object) { delete(o, "immutable") },
	} {
		t.Run(name, func(t *testing.T) {
			// An immutable ConfigMap is the API server's to keep; it asks admission first.
			if r := w.kubectl(t, anchor(edit), "replace", "-f", "-"); r.Code == 0 || !deniedBy(r, policy, changed) && !deniedBy(r, policy, immutable) && !strings.Contains(r.Stderr, "immutable") {
				t.Errorf("exit %d: %s", r.Code, r.Stderr)
			}
		})
	}
	w.allowed(t, nil, append(in, "label", "configmap", "hostwarrant-anchor", "team=a")...)
	t.Run("break-glass takes it away, and only a good one comes", func(t *testing.T) {
		w.allowed(t, nil, slices.Concat(as("admin", breakGlass), in, []string{"delete", "configmap", "hostwarrant-anchor"})...)
		w.denied(t, policy, immutable, anchor(func(o object) { delete(o, "immutable") }), "create", "-f", "-", "--dry-run=server")
		w.denied(t, policy, immutable, anchor(func(o object) { o["immutable"] = false }), "create", "-f", "-")
		w.denied(t, policy, "the anchor holds roots and cluster-id", anchor(func(o object) { o["data"] = object{"roots": "x"} }), "create", "-f", "-")
		// One from before this policy was there may be made immutable, as it is.
		mutable := func(o object) { delete(o, "immutable") }
		w.allowed(t, anchor(mutable), append(as("admin", breakGlass), "create", "-f", "-")...)
		w.denied(t, policy, immutable, anchor(mutable), "replace", "-f", "-")
		w.denied(t, policy, changed, anchor(func(o object) { o["data"] = object{"roots": "other", "cluster-id": "x"} }), "replace", "-f", "-")
		w.denied(t, policy, changed, anchor(func(o object) { o["binaryData"] = object{"x": "AAAA"} }), "replace", "-f", "-")
		w.allowed(t, anchor(func(object) {}), "replace", "-f", "-")
	})
	t.Run("near miss: another ConfigMap, another namespace", func(t *testing.T) {
		w.allowed(t, nil, append(in, "create", "configmap", "hostwarrant-other", "--from-literal=a=b")...)
		w.allowed(t, nil, append(in, "delete", "configmap", "hostwarrant-other")...)
		w.allowed(t, nil, "-n", pool, "create", "configmap", "hostwarrant-anchor", "--from-literal=a=b")
		w.allowed(t, nil, "-n", pool, "delete", "configmap", "hostwarrant-anchor")
	})
}

func guardCRDs(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-crds"
	const kept, conversion, served = "this CustomResourceDefinition is not deleted", "this kind has no conversion webhook", "a served version of this kind stays served"
	for _, name := range []string{"trustpolicies.hostwarrant.dev", "hostruns.hostwarrant.dev", "sshjoinprofiles.karpenter.dklesev.github.io", "sshhosts.karpenter.dklesev.github.io"} {
		w.inForce(t, policy, kept, nil, "delete", "crd", name)
		w.denied(t, policy, kept, nil, "delete", "crd", name)
	}
	const profiles = "sshjoinprofiles.karpenter.dklesev.github.io"
	w.denied(t, policy, conversion, nil, "patch", "crd", profiles, "--type=merge", "-p",
		`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"}}}}}`)
	w.denied(t, policy, served, nil, "patch", "crd", profiles, "--type=json", "-p", `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	guardSubresources(t, w, policy)
	t.Run("near miss: an upgrade by a cluster administrator", func(t *testing.T) {
		w.allowed(t, nil, "patch", "crd", profiles, "--dry-run=server", "--type=json", "-p", `[{"op":"add","path":"/spec/names/categories/-","value":"ssh"}]`)
		w.allowed(t, nil, "patch", "crd", profiles, "--dry-run=server", "--type=json", "-p",
			`[{"op":"add","path":"/spec/versions/-","value":{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`)
	})
	t.Run("near miss: another group", func(t *testing.T) {
		other := encode(t, object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "things.example.com"},
			"spec": object{
				"group": "example.com", "scope": "Cluster", "names": object{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
				"versions": []object{{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}}},
			},
		})
		w.allowed(t, other, "create", "-f", "-")
		w.allowed(t, nil, "delete", "crd", "things.example.com", "--wait=false")
	})
	w.allowed(t, nil, append(as("admin", breakGlass), "delete", "crd", "trustpolicies.hostwarrant.dev", "--dry-run=server")...)
}

func guardSubresources(t *testing.T, w *guardWorld, policy string) {
	const status, scale = "the status sub-resource of this kind stays where it was", "this kind gets no scale sub-resource"
	const hosts, profiles, runs, ledgers = "sshhosts.karpenter.dklesev.github.io", "sshjoinprofiles.karpenter.dklesev.github.io", "hostruns.hostwarrant.dev", "ledgers.hostwarrant.dev"
	const schema = `"served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	const scaled = `{"specReplicasPath":".spec.port","statusReplicasPath":".status.port"}`
	for name, c := range map[string]struct {
		crd, patch, says string
	}{
		"status taken away":                  {hosts, `{"op":"remove","path":"/spec/versions/0/subresources/status"}`, status},
		"all taken away, of ours":            {runs, `{"op":"remove","path":"/spec/versions/0/subresources"}`, status},
		"status where none was":              {ledgers, `{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}`, status},
		"a new version without it":           {hosts, `{"op":"add","path":"/spec/versions/-","value":{"name":"v9",` + schema + `}}`, status},
		"a new version with it":              {profiles, `{"op":"add","path":"/spec/versions/-","value":{"name":"v9",` + schema + `,"subresources":{"status":{}}}}`, status},
		"scale added":                        {hosts, `{"op":"add","path":"/spec/versions/0/subresources/scale","value":` + scaled + `}`, scale},
		"scale added where nothing was":      {profiles, `{"op":"add","path":"/spec/versions/0/subresources","value":{"scale":` + scaled + `}}`, scale},
		"near miss: a new version like them": {hosts, `{"op":"add","path":"/spec/versions/-","value":{"name":"v9",` + schema + `,"subresources":{"status":{}}}}`, ""},
		"near miss: status written again":    {hosts, `{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}`, ""},
		"near miss: none, said otherwise":    {ledgers, `{"op":"remove","path":"/spec/versions/0/subresources"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"patch", "crd", c.crd, "--dry-run=server", "--type=json", "-p", "[" + c.patch + "]"}
			if c.says == "" {
				w.allowed(t, nil, args...)
				return
			}
			w.denied(t, policy, c.says, nil, args...)
		})
	}
}

func guardCanary(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-canary"
	const name = "hostwarrant-canary-0123456789abcdef"
	canary := as(account("hostwarrant-canary"))
	const dry, named, stored = "hostwarrant-canary only creates, and only as a dry run", "hostwarrant-canary only names objects", "names that begin with hostwarrant-canary- are the canary's"
	object := func(name string) []byte { return profile(t, name, scripts(), nil) }
	w.inForce(t, policy, named, object("other"), append(canary, "create", "-f", "-")...)
	w.denied(t, policy, dry, object(name), append(canary, "create", "-f", "-")...)
	w.allowed(t, object(name), append(canary, "create", "-f", "-", "--dry-run=server")...)
	for _, other := range []string{"other", name + "0", strings.ToLower(name[:len(name)-1]) + "g", "hostwarrant-canary-"[:18], "x-" + name} {
		w.denied(t, policy, named, object(other), append(canary, "create", "-f", "-", "--dry-run=server")...)
	}
	w.allowed(t, object("plain"), "create", "-f", "-")
	t.Cleanup(func() { w.allowed(t, nil, "delete", "sshjoinprofile", "plain") })
	w.denied(t, policy, dry, nil, append(canary, "delete", "sshjoinprofile", "plain")...)
	w.denied(t, policy, dry, nil, append(canary, "label", "sshjoinprofile", "plain", "a=b", "--dry-run=server")...)
	for _, user := range [][]string{as("admin"), as(account("hostwarrant-controller")), as("admin", breakGlass)} {
		w.denied(t, policy, stored, object(name), append(user, "create", "-f", "-")...)
		w.denied(t, policy, stored, object("hostwarrant-canary-other"), append(user, "create", "-f", "-")...)
		w.allowed(t, object(name), append(user, "create", "-f", "-", "--dry-run=server")...)
	}
	t.Run("one that was stored all the same goes, by the controller, and nothing else does", func(t *testing.T) {
		controller := as(account("hostwarrant-controller"))
		w.denied(t, policy, "hostwarrant-controller deletes canaries only", nil, append(controller, "delete", "sshjoinprofile", "plain")...)
		w.denied(t, policy, "hostwarrant-controller deletes canaries only", nil, append(controller, "delete", "--raw", "/apis/karpenter.dklesev.github.io/v1beta1/sshjoinprofiles")...)
		w.allowed(t, nil, "delete", "validatingadmissionpolicybinding", policy)
		eventually(t, "a canary to be stored", func() bool { return w.kubectl(t, object(name), "create", "-f", "-").Code == 0 })
		w.allowed(t, nil, "apply", "--server-side", "-f", filepath.Join(testkit.Root(t), "policies", "canary.yaml"))
		w.inForce(t, policy, named, object("other"), append(canary, "create", "-f", "-")...)
		w.allowed(t, nil, append(controller, "delete", "sshjoinprofile", name)...)
	})
	t.Run("a generated name", func(t *testing.T) {
		text := strings.Replace(string(object("x")), `"name":"x"`, `"generateName":"hostwarrant-canary-"`, 1)
		w.denied(t, policy, stored, []byte(text), "create", "-f", "-")
	})
}

func guardDecommission(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-decommission"
	const needs = "phase leave needs the verb decommission on sshhosts host-1"
	grant := func(name, rules string) {
		w.allowed(t, []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"`+name+`","namespace":"pool"},"rules":[`+rules+`]}`), "create", "-f", "-")
		w.allowed(t, nil, "-n", pool, "create", "rolebinding", name, "--role="+name, "--user="+name)
	}
	const runs = `{"apiGroups":["hostwarrant.dev"],"resources":["hostruns"],"verbs":["create","patch","get","update"]}`
	grant("runner", runs)
	grant("decommissioner", runs+`,{"apiGroups":["karpenter.dklesev.github.io"],"resources":["sshhosts"],"resourceNames":["host-1"],"verbs":["decommission"]}`)
	grant("writer", runs+`,{"apiGroups":["karpenter.dklesev.github.io"],"resources":["sshhosts"],"verbs":["get","list","watch","create","update","patch","delete"]}`)
	run := func(phase, host string) []byte {
		spec := object{"hostRef": object{"name": host}, "profileRef": object{"name": "p"}, "phase": phase}
		if phase == "join" {
			spec["nodeName"] = "pool-1"
		}
		return encode(t, object{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostRun", "metadata": object{"generateName": "run-", "namespace": pool}, "spec": spec})
	}
	create := func(user string) []string { return []string{"--as=" + user, "create", "-f", "-"} }
	w.inForce(t, policy, needs, run("leave", "host-1"), create("runner")...)
	for _, user := range []string{"runner", "writer"} {
		w.denied(t, policy, needs, run("leave", "host-1"), create(user)...)
		w.denied(t, policy, strings.Replace(needs, "leave", "uninstall", 1), run("uninstall", "host-1"), create(user)...)
		w.allowed(t, run("join", "host-1"), create(user)...)
		w.allowed(t, run("install", "host-1"), create(user)...)
	}
	w.denied(t, policy, strings.Replace(needs, "host-1", "host-2", 1), run("leave", "host-2"), create("decommissioner")...)
	w.allowed(t, run("leave", "host-1"), create("decommissioner")...)
	w.allowed(t, run("uninstall", "host-1"), create("decommissioner")...)
	t.Run("near miss: a run that was let in can be cancelled by others", func(t *testing.T) {
		name := w.allowed(t, run("leave", "host-1"), append(create("decommissioner"), "-o", "jsonpath={.metadata.name}")...).Stdout
		w.allowed(t, nil, "--as=runner", "-n", pool, "patch", "hostrun", name, "--type=merge", "-p", `{"spec":{"cancel":true}}`)
	})
}

func guardServingSecret(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-serving-secret"
	webhook := append(as(account("hostwarrant-webhook")), "-n", product.Namespace)
	const notOurs, more = "this Secret is not the webhook's to fill", "the webhook writes only ca.crt, tls.crt and tls.key"
	w.allowed(t, nil, "-n", product.Namespace, "create", "secret", "generic", "brought", "--from-literal=ca.crt=mine")
	fill := []string{"--type=merge", "-p", `{"data":{"ca.crt":"AAAA","tls.crt":"AAAA","tls.key":"AAAA"}}`}
	w.inForce(t, policy, notOurs, nil, slices.Concat(webhook, []string{"patch", "secret", "brought"}, fill)...)
	w.denied(t, policy, notOurs, nil, slices.Concat(webhook, []string{"patch", "secret", "brought"}, fill)...)
	w.denied(t, policy, notOurs, nil, slices.Concat(webhook, []string{"create", "secret", "generic", "another"})...)
	w.denied(t, policy, notOurs, nil, slices.Concat(webhook, []string{"delete", "secret", "hostwarrant-webhook-ca"})...)
	ours := slices.Concat(webhook, []string{"patch", "secret", "hostwarrant-webhook-ca"})
	w.denied(t, policy, more, nil, append(ours, "--type=merge", "-p", `{"data":{"other":"AAAA"}}`)...)
	w.denied(t, policy, more, nil, append(ours, "--type=merge", "-p", `{"data":{"tls.key":"AAAA"},"metadata":{"labels":{"hostwarrant.dev/serving-ca":null}}}`)...)
	w.allowed(t, nil, append(ours, fill...)...)
	t.Run("a Secret that somebody brought under our name", func(t *testing.T) {
		w.allowed(t, nil, "-n", product.Namespace, "delete", "secret", "hostwarrant-webhook-ca")
		w.allowed(t, nil, "-n", product.Namespace, "create", "secret", "generic", "hostwarrant-webhook-ca", "--from-literal=ca.crt=mine")
		w.denied(t, policy, notOurs, nil, append(ours, fill...)...)
	})
	t.Run("near miss: others", func(t *testing.T) {
		w.allowed(t, nil, "-n", product.Namespace, "delete", "secret", "brought", "hostwarrant-webhook-ca")
	})
}

func guardControllerHosts(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-controller-hosts"
	const spec, labels, annotations = "hostwarrant-controller changes of an SSHHost nothing but spec.trustedSigners", "hostwarrant-controller changes no labels", "hostwarrant-controller changes no annotations"
	const finalizers, owners, status = "hostwarrant-controller changes no finalizers", "hostwarrant-controller changes no owners", "hostwarrant-controller changes no status"
	w.allowed(t, host(t, "h-held", object{"trustedSigners": []string{"a"}}), "create", "-f", "-")
	w.allowed(t, nil, "-n", pool, "patch", "sshhost", "h-held", "--type=merge", "-p", `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["example.com/a"]}}`)
	patch := func(user []string, kind, patch string) []string {
		return slices.Concat(user, []string{"-n", pool, "patch", "sshhost", "h-held", "--dry-run=server", "--type=" + kind, "-p", patch})
	}
	controller := as(account("hostwarrant-controller"))
	w.inForce(t, policy, spec, nil, slices.Concat(controller, []string{"-n", pool, "patch", "sshhost", "h-held", "--type=merge", "-p", `{"spec":{"port":2222}}`})...)
	for name, c := range map[string]struct{ patch, says string }{
		"the shim command, new":    {`{"spec":{"shimCommand":"/bin/sh"}}`, spec},
		"the mode":                 {`{"spec":{"execMode":"Raw"}}`, spec},
		"the key":                  {`{"spec":{"sshKeySecretRef":{"name":"other"}}}`, spec},
		"the user, beside signers": {`{"spec":{"user":"root","trustedSigners":["b"]}}`, spec},
		"the node's address":       {`{"spec":{"nodeAddress":"10.0.0.9"}}`, spec},
		"what it offers":           {`{"spec":{"capacity":{"cpu":"4"}}}`, spec},
		"a label":                  {`{"metadata":{"labels":{"a":"c"}}}`, labels},
		"no labels":                {`{"metadata":{"labels":null}}`, labels},
		"an annotation":            {`{"metadata":{"annotations":{"b":"c"}}}`, annotations},
		"another annotation":       {`{"metadata":{"annotations":{"a":"c"}}}`, annotations},
		"no annotations":           {`{"metadata":{"annotations":null}}`, annotations},
		"a finalizer more":         {`{"metadata":{"finalizers":["example.com/a","example.com/b"]}}`, finalizers},
		"no finalizers":            {`{"metadata":{"finalizers":null}}`, finalizers},
		"an owner":                 {`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]}}`, owners},
	} {
		t.Run(name, func(t *testing.T) {
			w.denied(t, policy, c.says, nil, patch(controller, "merge", c.patch)...)
			w.denied(t, policy, c.says, nil, patch(as(account("hostwarrant-controller"), breakGlass), "merge", c.patch)...)
			w.allowed(t, nil, patch(as("admin"), "merge", c.patch)...)
		})
	}
	w.denied(t, policy, status, nil, append(patch(controller, "merge", `{"status":{"state":"Available"}}`), "--subresource=status")...)
	w.allowed(t, nil, append(patch(as("admin"), "merge", `{"status":{"state":"Available"}}`), "--subresource=status")...)
	w.allowed(t, nil, patch(controller, "merge", `{"spec":{"trustedSigners":["b","c"]}}`)...)
	w.allowed(t, nil, patch(controller, "merge", `{"metadata":{"annotations":{"hostwarrant.dev/verdict":"x"}},"spec":{"trustedSigners":["b"]}}`)...)
	w.denied(t, policy, spec, nil, patch(controller, "json", `[{"op":"remove","path":"/spec/user"},{"op":"add","path":"/spec/user","value":"root"}]`)...)
	t.Run("near miss: no labels, annotations and finalizers", func(t *testing.T) {
		w.allowed(t, nil, "-n", pool, "patch", "sshhost", "h-held", "--type=merge", "-p", `{"metadata":{"labels":null,"annotations":null,"finalizers":null}}`)
		w.allowed(t, nil, patch(controller, "merge", `{"spec":{"trustedSigners":["b"]}}`)...)
		w.allowed(t, nil, "-n", pool, "delete", "sshhost", "h-held")
	})
}

func guardComposites(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-composites"
	const report, composite, manifest = "only hostwarrant-controller writes a ProfileBundle", "hostwarrant-controller writes composites only", "hostwarrant-controller writes no ConfigMap but"
	must(t, kubescape.InstallCRDs(t.Context(), w.cp, kubescape.Profiles))
	made := func(apiVersion, kind, name string, metadata object) []byte {
		metadata["name"], metadata["namespace"] = name, pool
		return encode(t, object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
	}
	profile := func(metadata object) []byte {
		return made("spdx.softwarecomposition.kubescape.io/v1beta1", "ContainerProfile", "redis", metadata)
	}
	root := object{"hostwarrant.dev/merkle-root": "x"}
	create := func(user []string) []string {
		return slices.Concat(user, []string{"create", "--dry-run=server", "-f", "-"})
	}
	controller := as(account("hostwarrant-controller"))
	bundle := made("hostwarrant.dev/v1alpha1", "ProfileBundle", "redis", object{})
	w.inForce(t, policy, report, bundle, create(as("admin"))...)
	for name, c := range map[string]struct {
		object []byte
		says   string
	}{
		"a profile without a root":       {profile(object{}), composite},
		"a composite of a class":         {profile(object{"annotations": root, "labels": object{"signature.kubescape.io/fragment-class": "base"}}), composite},
		"a composite with a signature":   {profile(object{"annotations": object{"hostwarrant.dev/merkle-root": "x", "signature.kubescape.io/signature": "x"}}), composite},
		"another ConfigMap":              {made("v1", "ConfigMap", "hostwarrant-anchor", object{}), manifest},
		"a ConfigMap of nearly the name": {made("v1", "ConfigMap", "hostwarrant-manifest-0123456789abcdef-x", object{}), manifest},
		"near miss: a composite":         {profile(object{"annotations": root}), ""},
		"near miss: a manifest":          {made("v1", "ConfigMap", "hostwarrant-manifest-0123456789abcdef-0", object{}), ""},
		"near miss: a report":            {bundle, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.says == "" {
				w.allowed(t, c.object, create(controller)...)
				return
			}
			w.denied(t, policy, c.says, c.object, create(controller)...)
			w.denied(t, policy, c.says, c.object, create(as(account("hostwarrant-controller"), breakGlass))...)
			w.allowed(t, c.object, create(as("admin"))...)
		})
	}
	w.denied(t, policy, report, bundle, create(as("admin", breakGlass))...)
}

// guardWebhookConfigurations is a component. Contrary to what is often said, policies of the API do
// see webhook configurations; those they do not see are policies and bindings.
func guardWebhookConfigurations(t *testing.T, w *guardWorld) {
	w.allowed(t, nil, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(testkit.Root(t), "policies", "webhook-configurations"))
	w.configurations(t)
	w.showConfigurationsGuarded(t, "hostwarrant-webhook-configurations")
	w.allowed(t, nil, "delete", "validatingadmissionpolicybinding", "hostwarrant-webhook-configurations")
	eventually(t, "the configurations to be free again", func() bool {
		return w.kubectl(t, nil, "delete", "validatingwebhookconfiguration", "hostwarrant", "--dry-run=server").Code == 0
	})
	w.allowed(t, nil, "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "hostwarrant")
}

// configurations creates our webhook configurations as shipped.
func (w *guardWorld) configurations(t *testing.T) {
	t.Helper()
	w.allowed(t, nil, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(testkit.Root(t), "manifests", "base", "webhook-configurations.yaml"))
}

// showConfigurationsGuarded shows a policy that guards our webhook configurations.
func (w *guardWorld) showConfigurationsGuarded(t *testing.T, policy string) {
	t.Helper()
	const kept, changed, bundle = "our webhook configuration is deleted only by group hostwarrant:break-glass", "our webhook configuration is changed only by group hostwarrant:break-glass", "caBundle is written by hostwarrant-controller alone"
	const validating, mutating = "validatingwebhookconfiguration", "mutatingwebhookconfiguration"
	w.inForce(t, policy, kept, nil, "delete", validating, "hostwarrant")
	for _, kind := range []string{validating, mutating} {
		w.denied(t, policy, kept, nil, "delete", kind, "hostwarrant")
		w.denied(t, policy, kept, nil, append(as(account("hostwarrant-controller")), "delete", kind, "hostwarrant")...)
		w.denied(t, policy, kept, nil, "delete", "--raw", "/apis/admissionregistration.k8s.io/v1/"+kind+"s")
		w.denied(t, policy, changed, nil, "patch", kind, "hostwarrant", "--type=json", "-p", `[{"op":"remove","path":"/webhooks/0/rules/0"}]`)
	}
	for name, patch := range map[string]string{
		"fails open":            `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`,
		"a namespace excepted":  `[{"op":"add","path":"/webhooks/0/namespaceSelector","value":{"matchLabels":{"a":"b"}}}]`,
		"objects excepted":      `[{"op":"add","path":"/webhooks/0/objectSelector","value":{"matchLabels":{"a":"b"}}}]`,
		"an operation less":     `[{"op":"replace","path":"/webhooks/0/rules/0/operations","value":["CREATE"]}]`,
		"a condition more":      `[{"op":"add","path":"/webhooks/0/matchConditions/-","value":{"name":"never","expression":"false"}}]`,
		"another service":       `[{"op":"replace","path":"/webhooks/0/clientConfig/service/name","value":"other"}]`,
		"a webhook less":        `[{"op":"remove","path":"/webhooks/1"}]`,
		"a webhook of one name": `[{"op":"replace","path":"/webhooks/1/name","value":"other.hostwarrant.dev"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, user := range [][]string{as("admin"), as(account("hostwarrant-controller"))} {
				w.denied(t, policy, changed, nil, append(user, "patch", validating, "hostwarrant", "--type=json", "-p", patch)...)
			}
		})
	}
	setBundle := []string{"patch", validating, "hostwarrant", "--dry-run=server", "--type=json", "-p", `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"` + base64.StdEncoding.EncodeToString(w.cp.RESTConfig().CAData) + `"}]`}
	w.denied(t, policy, bundle, nil, append(as("admin"), setBundle...)...)
	w.denied(t, policy, bundle, nil, append(as(account("hostwarrant-webhook")), setBundle...)...)
	w.allowed(t, nil, append(as(account("hostwarrant-controller")), setBundle...)...)
	w.allowed(t, nil, "label", validating, "hostwarrant", "team=a")
	w.configurations(t) // applying the same again changes nothing
	w.allowed(t, nil, append(as("admin", breakGlass), "delete", validating, "hostwarrant", "--dry-run=server")...)
	w.allowed(t, nil, append(as("admin", breakGlass), "patch", validating, "hostwarrant", "--dry-run=server", "--type=json", "-p", `[{"op":"remove","path":"/webhooks/1"}]`)...)
}

// guardStatic copies the static manifests to where the API server reads them. They see all that the
// API's own policies see, and policies and bindings as well.
func guardStatic(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-guards.static.k8s.io"
	w.configurations(t)
	w.copyStatic(t)
	kept := "this guard is deleted only by group hostwarrant:break-glass"
	changed := "this guard is changed only by group hostwarrant:break-glass"
	w.inForce(t, policy, kept, nil, "delete", "validatingadmissionpolicy", "hostwarrant-ledger")
	for _, kind := range []string{"validatingadmissionpolicy", "validatingadmissionpolicybinding"} {
		w.denied(t, policy, kept, nil, "delete", kind, "hostwarrant-ledger")
		w.denied(t, policy, kept, nil, append(as(account("hostwarrant-controller")), "delete", kind, "hostwarrant-ledger")...)
		w.allowed(t, nil, "label", kind, "hostwarrant-ledger", "team=a")
		w.allowed(t, nil, append(as("admin", breakGlass), "delete", kind, "hostwarrant-ledger", "--dry-run=server")...)
	}
	for _, kind := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		w.denied(t, policy, kept, nil, "delete", "--raw", "/apis/admissionregistration.k8s.io/v1/"+kind)
	}
	w.denied(t, policy, changed, nil, "patch", "validatingadmissionpolicybinding", "hostwarrant-ledger", "--type=merge", "-p", `{"spec":{"validationActions":["Warn"]}}`)
	w.denied(t, policy, changed, nil, "patch", "validatingadmissionpolicy", "hostwarrant-ledger", "--type=merge", "-p", `{"spec":{"failurePolicy":"Ignore"}}`)
	w.allowed(t, nil, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(testkit.Root(t), "policies"))
	t.Run("webhook configurations", func(t *testing.T) {
		w.showConfigurationsGuarded(t, "hostwarrant-webhook-configurations.static.k8s.io")
	})
	t.Run("with every object of ours deleted", func(t *testing.T) {
		w.allowed(t, nil, append(as("admin", breakGlass), "delete", "-k", filepath.Join(testkit.Root(t), "policies"))...)
		for name, c := range map[string]struct {
			says string
			args []string
		}{
			"anchor": {"the anchor is never deleted", []string{"-n", product.Namespace, "delete", "configmap", "hostwarrant-anchor"}},
			"crds":   {"this CustomResourceDefinition is not deleted", []string{"delete", "crd", "trustpolicies.hostwarrant.dev"}},
		} {
			w.denied(t, "hostwarrant-"+name+".static.k8s.io", c.says, nil, c.args...)
		}
		w.denied(t, "hostwarrant-ledger.static.k8s.io", "only hostwarrant-controller writes a Ledger", ledger(t, "profile.x", object{"profile": object{"serial": 1, "digest": digest("a")}}), "create", "-f", "-")
		w.denied(t, "hostwarrant-trust-policy.static.k8s.io", "a signature is no armored SSH signature",
			encode(t, object{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": object{"name": "cluster"}, "spec": object{"document": "x", "signatures": []string{"x"}}}),
			"create", "-f", "-")
	})
	t.Run("the API takes none under such a name", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(testkit.Root(t), "policies", "static", "manifests", "guards.yaml"))
		must(t, err)
		if r := w.kubectl(t, text, "create", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, ".static.k8s.io") {
			t.Errorf("exit %d: %s", r.Code, r.Stderr)
		}
	})
	t.Run("a restart of the API server finds them again", func(t *testing.T) {
		must(t, w.cp.StopAPIServer())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		must(t, w.cp.StartAPIServer(ctx))
		w.denied(t, "hostwarrant-webhook-configurations.static.k8s.io", "our webhook configuration is deleted only", nil, "delete", "validatingwebhookconfiguration", "hostwarrant")
	})
}

// copyStatic copies the shipped static manifests, all at once, into the API server's directory.
func (w *guardWorld) copyStatic(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testkit.Root(t), "policies", "static", "manifests", "*.yaml"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		testkit.WriteFile(t, w.static, filepath.Base(file), text)
	}
}
