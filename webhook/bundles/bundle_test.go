package bundles

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

const (
	all     = "/usr/bin/redis-server /usr/bin/id"
	honest  = "True Assembled"
	profile = fragment.KindContainerProfile
)

func TestThreeFragmentsOfTwoSignersAreOneComposite(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.wantAssembled(honest)
	w.wantExecs(all)
	u := w.read(t.Context(), profile, shop, redis)
	if u.GetAnnotations()[annotationManagedBy] != managedByUser || u.GetAnnotations()[AnnotationRoot] == "" || u.GetLabels()[fragment.LabelClass] != "" || u.GetLabels()[fragment.LabelBundle] != "" {
		t.Errorf("the composite has labels %v, annotations %v", u.GetLabels(), u.GetAnnotations())
	}
	status := w.report().Status
	if status.MemberCount != 3 || len(status.Members) != 3 || string(status.MerkleRoot) != u.GetAnnotations()[AnnotationRoot] || status.Composite.UID != string(u.GetUID()) {
		t.Errorf("status %+v", status)
	}
	if got := w.condition("Published"); got != "True Stored" {
		t.Errorf("Published is %s", got)
	}
	if got := w.condition("Degraded"); got != "False AsAssembled" {
		t.Errorf("Degraded is %s", got)
	}
	if got := w.said(); !slices.Equal(got, []string{"Normal ProfileBundle/redis Assembled", "Normal ProfileBundle/redis Stored"}) {
		t.Errorf("events %v", got)
	}
	gets, version := len(w.gets), u.GetResourceVersion()
	w.settle()
	if len(w.gets) != gets || w.read(t.Context(), profile, shop, redis).GetResourceVersion() != version || len(w.said()) != 0 {
		t.Errorf("nothing changed, and %d objects were read, the composite is version %s after %s", len(w.gets)-gets, w.read(t.Context(), profile, shop, redis).GetResourceVersion(), version)
	}
	w.put(w.part(w.operator, "overlay", "redis-site", 2, `{execs: [{path: /usr/bin/env}]}`))
	w.settle()
	w.wantExecs("/usr/bin/redis-server /usr/bin/env")
	if len(w.gets) != gets+1 {
		t.Errorf("one object changed, and %d were read", len(w.gets)-gets)
	}
}

func TestATamperedMemberKeepsTheLastComposite(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprint("restarted ", restarted), func(t *testing.T) {
			w := newWorld(t)
			again := func() {
				if restarted {
					w.restart()
				}
			}
			w.three()
			w.settle()
			w.said()
			again()
			for range 2 { // re-armed by a clean assembly
				w.edit("redis-site", func(u *unstructured.Unstructured) {
					a := u.GetAnnotations()
					a[fragment.AnnotationContent] = "H4sI" + a[fragment.AnnotationContent][4:40]
					u.SetAnnotations(a)
				})
				w.settle()
				w.wantAssembled("False Tampered")
				w.wantExecs(all)
				again()
				w.settle()
				w.wantAssembled("False Tampered")
				w.wantExecs(all)
				if got := w.said(); !slices.Equal(got, []string{"Warning ProfileBundle/redis Tampered"}) {
					t.Errorf("events %v", got)
				}
				again()
				w.put(w.part(w.operator, "overlay", "redis-site", 1, `{execs: [{path: /usr/bin/id}]}`))
				w.settle()
				w.wantAssembled(honest)
				w.wantExecs(all)
				if got := w.said(); !slices.Equal(got, []string{"Normal ProfileBundle/redis Assembled"}) {
					t.Errorf("events %v", got)
				}
			}
		})
	}
}

// Signatures hide what stands beside them: a stripped one, an old version, other labels, a foreign key.
func TestWhatStandsInAMembersPlaceRefusesTheSet(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(w *world)
		want   string
		execs  string
		events int
	}{
		"the signature is stripped": {func(w *world) {
			w.edit("redis-site", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		}, "False Unsigned", all, 1},
		"an older version": {func(w *world) {
			w.put(w.part(w.operator, "overlay", "redis-site", 5, `{execs: [{path: /usr/bin/env}]}`))
			w.settle()
			w.said()
			w.put(w.part(w.operator, "overlay", "redis-site", 4, `{execs: [{path: /usr/bin/id}]}`))
		}, "False VersionRollback", "/usr/bin/redis-server /usr/bin/env", 1},
		"the same version with other content": {func(w *world) {
			w.put(w.part(w.operator, "overlay", "redis-site", 1, `{execs: [{path: /usr/bin/env}]}`))
		}, "False VersionEquivocated", all, 1},
		"stored labels of another bundle: the signed ones count": {func(w *world) {
			w.edit("redis-site", func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{fragment.LabelBundle: "other", fragment.LabelClass: "base"})
			})
		}, honest, all, 0},
		"no labels at all: the signed ones count": {func(w *world) {
			w.edit("redis-site", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		}, honest, all, 0},
		"another signer of a class that may not": {func(w *world) {
			w.put(w.part(w.vendor, "overlay", "redis-site", 2, `{execs: [{path: /usr/bin/env}]}`))
		}, "False SignerUnknown", all, 1},
		"it is deleted, and nobody requires it": {func(w *world) { w.delete(profile, "redis-site") }, honest, "/usr/bin/redis-server", 2},
		"another object beside, that nobody signed": {func(w *world) {
			w.put([]byte(`{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"junk","namespace":"shop","labels":{"signature.kubescape.io/bundle":"redis","signature.kubescape.io/fragment-class":"base"}},"spec":{}}`))
		}, honest, all, 0},
		"another object beside, by a key that nobody knows": {func(w *world) {
			w.put(w.part(testkitSigner(w), "base", "stranger", 1, `{execs: [{path: /bin/sh}]}`))
		}, honest, all, 0},
		"a fragment with the name of the bundle": {func(w *world) {
			w.notice(parse(w, w.part(w.vendor, "base", "redis", 1, `{}`)))
		}, honest, all, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.three()
			w.settle()
			w.said()
			tt.do(w)
			w.settle()
			w.wantAssembled(tt.want)
			w.wantExecs(tt.execs)
			if got := w.said(); len(got) != tt.events && name != "a fragment with the name of the bundle" {
				t.Errorf("events %v", got)
			}
			w.restart()
			w.settle()
			w.wantAssembled(tt.want)
			w.wantExecs(tt.execs)
		})
	}
}

// What one change of a member asks of API servers, however many members there are.
func TestAChangeOfAMemberTakesSixCalls(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.put(w.part(w.operator, "overlay", "redis-site", 2, `{execs: [{path: /usr/bin/env}]}`))
	w.said()
	clear(w.calls)
	if _, err := w.look(t.Context(), item{ID: ID{shop, redis}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"get ContainerProfile": 2, "update ContainerProfile": 1, // the member, and the composite
		"update Ledger": 1, "status ProfileBundle": 1,
	}
	if diff := cmp.Diff(want, w.calls); diff != "" {
		t.Error(diff)
	}
	events := w.said()
	if !slices.Equal(events, []string{"Normal ProfileBundle/redis RootChanged"}) {
		t.Errorf("events %v", events)
	}
	calls := len(events)
	for _, n := range w.calls {
		calls += n
	}
	t.Logf("a change of one member of a bundle: %d API calls, %d of them events: %v", calls, len(events), w.calls)
	clear(w.calls)
	w.settle()
	for _, kind := range []string{"ContainerProfile", "ProfileBundle"} {
		delete(w.calls, "get "+kind) // the test's own
	}
	if len(w.calls) > 0 {
		t.Errorf("nothing changed: %v", w.calls)
	}
}
