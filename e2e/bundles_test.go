//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
)

const (
	bothSigners = "/usr/bin/redis-server /usr/bin/id"
	vendorAlone = "/usr/bin/redis-server"
)

func TestBundlesInACRD(t *testing.T) { bundleStory(t, newBundleWorld(t, false)) }

func TestBundlesBehindAnAggregatedAPIServer(t *testing.T) { bundleStory(t, newBundleWorld(t, true)) }

// bundleStory is what happens to a bundle, in either home, with everything restarted between the steps.
func bundleStory(t *testing.T, w *bundleWorld) {
	t.Helper()
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"three fragments of two signers become one composite", w.assembles},
		{"a member is tampered with: the last composite is kept", w.tampered},
		{"it recovers", w.recovers},
		{"an older version comes back: the last composite is kept", w.rolledBack},
		{"somebody else writes the composite: it is repaired", w.drifts},
		{"a required member is deleted: the last composite is kept", w.required},
		{"the policy is tightened: its word counts at once", w.tightened},
		{"a member is taken out by the policy", w.buried},
		{"its namespace goes, and nothing of it comes back", w.namespaceGoes},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
		w.restart(t)
	}
}

func (w *bundleWorld) assembles(t *testing.T) {
	for _, o := range [][]byte{w.base(t), w.net(t), w.site(t)} {
		w.put(t, o)
	}
	w.becomes(t, bothSigners)
	w.says(t, "Assembled", "True Assembled")
	w.says(t, "Published", "True Stored")
	w.says(t, "Degraded", "False AsAssembled")
	text := string((agent{w}).profile(t, "redis").Spec)
	if strings.Contains(text, "/bin/sh") || !strings.Contains(text, "example.org") || !strings.Contains(text, "/data/") {
		t.Errorf("the agent enforces %s", text)
	}
	if got := w.report(t, "{.status.memberCount} {.status.members[*].name}"); got != "3 redis-base redis-net redis-site" {
		t.Errorf("members: %s", got)
	}
}

func (w *bundleWorld) tampered(t *testing.T) {
	w.stays(t, bothSigners)
	w.unguarded(t, func() {
		w.succeeds(t, nil, "annotate", "--overwrite", "containerprofile", "-n", shop, "redis-site", "signature.kubescape.io/content=H4sIAAAAAAAA")
	})
	w.says(t, "Assembled", "False Tampered")
	w.says(t, "Degraded", "True LastCompositeKept")
	w.told(t, "Tampered")
	w.stays(t, bothSigners)
}

func (w *bundleWorld) recovers(t *testing.T) {
	w.says(t, "Assembled", "False Tampered")
	w.stays(t, bothSigners)
	w.put(t, w.site(t))
	w.says(t, "Assembled", "True Assembled")
	w.stays(t, bothSigners)
}

func (w *bundleWorld) rolledBack(t *testing.T) {
	old := w.site(t)
	w.put(t, w.part(t, w.operator, "overlay", "redis-site", 2, `{execs: [{path: /usr/bin/env}]}`))
	w.becomes(t, "/usr/bin/redis-server /usr/bin/env")
	w.reinstall(t)
	w.unguarded(t, func() { w.put(t, old) })
	w.says(t, "Assembled", "False VersionRollback")
	w.stays(t, "/usr/bin/redis-server /usr/bin/env")
	w.leaderDies(t)
	w.succeeds(t, nil, "delete", "containerprofile", "-n", shop, "redis-site")
	w.unguarded(t, func() { w.put(t, old) })
	w.says(t, "Assembled", "False VersionRollback")
	w.put(t, w.part(t, w.operator, "overlay", "redis-site", 3, `{execs: [{path: /usr/bin/id}]}`))
	w.becomes(t, bothSigners)
}

func (w *bundleWorld) drifts(t *testing.T) {
	w.says(t, "Assembled", "True Assembled")
	for _, patch := range []string{
		`{"spec":{"execs":[{"path":"/bin/sh"}]}}`,
		`{"metadata":{"labels":{"signature.kubescape.io/fragment-class":"base"}}}`,
		`{"metadata":{"annotations":{"kubescape.io/managed-by":"Robot"}}}`,
	} {
		was := w.report(t, "{.status.driftCount}")
		w.unguarded(t, func() {
			w.succeeds(t, nil, "patch", "containerprofile", "-n", shop, "redis", "--type=merge", "-p", patch)
		})
		eventually(t, "the drift to be reported", func() bool { return w.report(t, "{.status.driftCount}") != was })
		w.stays(t, bothSigners)
		t.Logf("undone %s ms after it was seen: %s", w.report(t, "{.status.lastDrift.milliseconds}"), patch)
	}
	was := w.report(t, "{.status.driftCount}")
	w.succeeds(t, nil, "delete", "containerprofile", "-n", shop, "redis")
	eventually(t, "the deletion to be reported", func() bool { return w.report(t, "{.status.driftCount}") != was })
	w.becomes(t, bothSigners)
	t.Logf("made again %s ms after its deletion was seen", w.report(t, "{.status.lastDrift.milliseconds}"))
	w.told(t, "DriftRepaired")
}

func (w *bundleWorld) required(t *testing.T) {
	w.trust(t, "bundles: {redis: {required: [{class: overlay, name: redis-site}]}}\n")
	w.says(t, "Assembled", "True Assembled")
	w.succeeds(t, nil, "delete", "containerprofile", "-n", shop, "redis-site")
	w.says(t, "Assembled", "False MemberMissing")
	w.stays(t, bothSigners)
	w.restart(t)
	w.stays(t, bothSigners)
	w.says(t, "Assembled", "False MemberMissing")
	w.told(t, "MemberMissing")
	w.put(t, w.part(t, w.operator, "overlay", "redis-site", 3, `{execs: [{path: /usr/bin/id}]}`))
	w.says(t, "Assembled", "True Assembled")
}

func (w *bundleWorld) tightened(t *testing.T) {
	classes := `
fragmentClasses:
  base: {signers: ["` + w.vendor.Fingerprint + `"], allowedSpecPaths: ["*"]}
  admission: {signers: ["` + w.operator.Fingerprint + `"], allowedSpecPaths: [ingress, egress]}
  overlay: {signers: ["` + w.vendor.Fingerprint + `"], allowedSpecPaths: [execs, opens]}
`
	w.trustWith(t, classes)
	w.becomes(t, vendorAlone)
	w.restart(t)
	w.stays(t, vendorAlone)
	w.trust(t, "")
	w.becomes(t, bothSigners)
}

func (w *bundleWorld) buried(t *testing.T) {
	w.trust(t, "bundles: {redis: {tombstones: [{class: overlay, name: redis-site, version: 3}]}}\n")
	w.becomes(t, vendorAlone)
	w.told(t, "MembersLeft")
	w.restart(t)
	w.stays(t, vendorAlone)
	w.put(t, w.part(t, w.operator, "overlay", "redis-site", 4, `{execs: [{path: /usr/bin/id}]}`))
	w.becomes(t, bothSigners)
}

func (w *bundleWorld) namespaceGoes(t *testing.T) {
	w.succeeds(t, nil, "delete", "namespace", shop, "--timeout=50s")
	if got := (agent{w}).execs(t); got != "no profile" {
		t.Errorf("the composite came back: %s", got)
	}
}

// What an agent is handed for the three things that the label of a pod can lead to: the stand-in of an
// agent reads what is stored under that name, and nothing else.
func TestThreeOutcomesOfAPodsLabel(t *testing.T) {
	w := newBundleWorld(t, true)
	flat := `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"redis","namespace":"shop","annotations":{"kubescape.io/managed-by":"User"}},"spec":{"execs":[{"path":"/usr/bin/flat"}]}}`
	w.put(t, []byte(flat))
	w.stays(t, "/usr/bin/flat") // there is a profile alone
	for _, o := range [][]byte{w.base(t), w.site(t)} {
		w.put(t, o)
	}
	w.says(t, "Published", "False CompositeForeign") // there are both, and nobody gave the name away
	w.told(t, "CompositeForeign")
	w.stays(t, "/usr/bin/flat")
	w.trust(t, "bundles: {redis: {}}\n")
	w.becomes(t, bothSigners)
	w.told(t, "ProfileReplaced")

	w.put(t, []byte(strings.ReplaceAll(string(w.part(t, w.vendor, "base", "cache-base", 1, `{execs: [{path: /bin/sh}]}`)), `"redis"`, `"cache"`)))
	eventually(t, "the fragment to be refused", func() bool {
		m, err := harness.ReadMetrics(t.Context(), w.controller.Metrics)
		must(t, err)
		return m.Sum("hostwarrant_bundle_reads_total") >= 3
	})
	if o := (agent{w}).profile(t, "cache"); o != nil { // there are fragments, and none verifies
		t.Errorf("an agent would enforce %s", o.Spec)
	}
}
