package bundles

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

func TestARequiredMemberThatIsGoneKeepsTheLastComposite(t *testing.T) {
	w := newWorld(t)
	w.trust("bundles: {redis: {required: [{class: overlay, name: redis-site}]}}\n")
	w.three()
	w.settle()
	w.delete(profile, "redis-site")
	w.said()
	for range 2 {
		w.settle()
		w.wantAssembled("False MemberMissing")
		w.wantExecs(all)
		if m := w.report().Status.Missing; len(m) != 1 || m[0].Name != "redis-site" || m[0].Class != "overlay" {
			t.Errorf("missing %+v", m)
		}
		w.restart()
	}
	if got := w.said(); !slices.Equal(got, []string{"Warning ProfileBundle/redis MemberMissing"}) {
		t.Errorf("events %v", got)
	}
	w.put(w.part(w.operator, "overlay", "redis-site", 1, `{execs: [{path: /usr/bin/id}]}`))
	w.settle()
	w.wantAssembled(honest)
}

func TestATombstoneTakesAMemberOutAndTheLastOneTheBundle(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.trust("bundles: {redis: {tombstones: [{class: overlay, name: redis-site, version: 1}]}}\n")
	w.settle()
	w.wantAssembled(honest)
	w.wantExecs("/usr/bin/redis-server")
	w.put(w.part(w.operator, "overlay", "redis-site", 2, `{execs: [{path: /usr/bin/env}]}`))
	w.settle()
	w.wantExecs("/usr/bin/redis-server /usr/bin/env")
	w.trust(`bundles: {redis: {tombstones: [{class: overlay, name: redis-site, version: 2}, {class: base, name: redis-base, version: 1}, {class: admission, name: redis-net, version: 1}]}}
`)
	w.said()
	w.settle()
	w.wantExecs("none")
	if w.report() != nil || !slices.Contains(w.said(), "Normal ProfileBundle/redis Dissolved") {
		t.Errorf("the bundle is still reported: %+v", w.report())
	}
}

func TestAForeignChangeOfTheCompositeIsUndone(t *testing.T) {
	for name, change := range map[string]func(*unstructured.Unstructured){
		"its spec": func(u *unstructured.Unstructured) {
			u.Object["spec"] = map[string]any{"execs": []any{map[string]any{"path": "/bin/sh"}}}
		},
		"a field more": func(u *unstructured.Unstructured) { set(u, "x", "spec", "unknown") },
		"no spec":      func(u *unstructured.Unstructured) { delete(u.Object, "spec") },
		"its root":     func(u *unstructured.Unstructured) { set(u, "x", "metadata", "annotations", AnnotationRoot) },
		"its manifest": func(u *unstructured.Unstructured) { set(u, "{}", "metadata", "annotations", AnnotationManifest) },
		"whose it is":  func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotationManagedBy: "Robot"}) },
		"a class":      func(u *unstructured.Unstructured) { set(u, "base", "metadata", "labels", fragment.LabelClass) },
		"a foreign signature": func(u *unstructured.Unstructured) {
			set(u, "x", "metadata", "annotations", fragment.AnnotationSignature)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, tampered := range []bool{false, true} {
				w := newWorld(t)
				w.three()
				w.settle()
				honestOne := w.read(t.Context(), profile, shop, redis)
				if tampered { // the kept composite is guarded as well
					w.edit("redis-site", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
					w.settle()
				}
				w.said()
				w.edit(redis, change)
				w.now = w.now.Add(40 * time.Millisecond)
				w.settle()
				now := w.read(t.Context(), profile, shop, redis)
				for _, u := range []*unstructured.Unstructured{honestOne, now} {
					u.SetResourceVersion("")
				}
				if got, want := fmt.Sprint(now.Object), fmt.Sprint(honestOne.Object); got != want {
					t.Errorf("stored is\n%s, want\n%s", got, want)
				}
				status := w.report().Status
				if status.DriftCount != 1 || status.LastDrift.Milliseconds != 40 {
					t.Errorf("drift %d, %+v", status.DriftCount, status.LastDrift)
				}
				if got := w.said(); !slices.Equal(got, []string{"Warning ProfileBundle/redis DriftRepaired"}) {
					t.Errorf("events %v", got)
				}
			}
		})
	}
}

func set(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

func TestWhatOthersAddBesideStays(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.edit(redis, func(u *unstructured.Unstructured) {
		set(u, "x", "metadata", "annotations", "kubescape.io/sync-checksum")
		set(u, []any{}, "spec", "opens")
	})
	w.settle()
	if u := w.read(t.Context(), profile, shop, redis); u.GetAnnotations()["kubescape.io/sync-checksum"] != "x" || w.report().Status.DriftCount != 0 {
		t.Errorf("annotations %v, drift %d", u.GetAnnotations(), w.report().Status.DriftCount)
	}
}

func TestTheCompositeIsMadeAgainAfterItWasDeleted(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.said()
	w.delete(profile, redis)
	w.settle()
	w.wantExecs(all)
	if got := w.said(); !slices.Equal(got, []string{"Warning ProfileBundle/redis DriftRepaired"}) || w.report().Status.DriftCount != 1 {
		t.Errorf("events %v, drift %d", got, w.report().Status.DriftCount)
	}
}

// Somebody who changes composite and member while nobody looks: nothing is left that anybody vouches for.
func TestACompositeThatWasChangedUnseenIsNotTheLastVerifiedOne(t *testing.T) {
	spec := func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"execs": []any{map[string]any{"path": "/bin/sh"}}}
	}
	for name, tt := range map[string]struct {
		change func(u *unstructured.Unstructured)
		member bool // changed too
		report bool // deleted too
		want   string
		execs  string
	}{
		"the members are sound":           {spec, false, false, honest, all},
		"a member was changed too":        {spec, true, false, "False Tampered", "none"},
		"and the report was deleted":      {spec, true, true, "False Tampered", "none"},
		"near miss: nothing but a member": {func(*unstructured.Unstructured) {}, true, false, "False Tampered", all},
		"a manifest of members that nobody knows": {func(u *unstructured.Unstructured) {
			other, err := bundle.ParseManifest([]byte(u.GetAnnotations()[AnnotationManifest]))
			if err != nil {
				t.Fatal(err)
			}
			other.Leaves = other.Leaves[:1]
			other.Root = one(t, other.Leaves)
			text, err := other.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			set(u, string(text), "metadata", "annotations", AnnotationManifest)
		}, true, false, "False Tampered", "none"},
		"a manifest with another name of the member": {renamed(t), true, false, "False Tampered", "none"},
		"the same, and the members are sound":        {renamed(t), false, false, honest, all},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.three()
			w.settle()
			if tt.member {
				w.edit("redis-site", func(u *unstructured.Unstructured) {
					set(u, "H4sI", "metadata", "annotations", fragment.AnnotationContent)
				})
			}
			w.edit(redis, tt.change)
			if tt.report {
				w.must(w.api.Delete(t.Context(), w.report()))
			}
			w.restart()
			w.settle()
			w.wantAssembled(tt.want)
			w.wantExecs(tt.execs)
		})
	}
}

// renamed gives redis-site another name in the manifest, which has the same root.
func renamed(t *testing.T) func(*unstructured.Unstructured) {
	t.Helper()
	return func(u *unstructured.Unstructured) {
		manifest := u.GetAnnotations()[AnnotationManifest]
		other := strings.Replace(manifest, `"redis-site"`, `"redis-some"`, 1)
		if other == manifest {
			t.Fatal(manifest)
		}
		set(u, other, "metadata", "annotations", AnnotationManifest)
	}
}

// one is the root of a single leaf, by the page (docs/spec/bundle.md).
func one(t *testing.T, leaves []bundle.Leaf) string {
	t.Helper()
	if len(leaves) != 1 {
		t.Fatalf("%d leaves", len(leaves))
	}
	leaf := leaves[0]
	return fmt.Sprintf("%x", sha256.Sum256([]byte("kubescape-bundle-leaf\x00"+leaf.Class+"\x00"+leaf.Signer+"\x00"+leaf.Digest)))
}

const flat = `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"redis","namespace":"shop","annotations":{"kubescape.io/managed-by":"User"}},"spec":{"execs":[{"path":"/usr/bin/flat"}]}}`

func TestAProfileThatWasThereBeforeIsNotWrittenOver(t *testing.T) {
	w := newWorld(t)
	w.put([]byte(flat))
	w.three()
	w.settle()
	w.wantExecs("/usr/bin/flat")
	w.wantAssembled(honest)
	if got := w.condition(v1alpha1.ConditionPublished); got != "False CompositeForeign" {
		t.Errorf("Published is %s", got)
	}
	if got := w.condition(v1alpha1.ConditionDegraded); got != "True CompositeForeign" {
		t.Errorf("Degraded is %s", got)
	}
	if !slices.Contains(w.said(), "Warning ProfileBundle/redis CompositeForeign") || len(w.Ledger.Slots(shop, redis)) != 0 {
		t.Errorf("nobody was told, or versions were recorded of what is not in effect: %v", w.Ledger.Slots(shop, redis))
	}
	w.trust("bundles: {redis: {}}\n") // the roots give the name to the bundle
	w.settle()
	w.wantExecs(all)
	if !slices.Contains(w.said(), "Warning ProfileBundle/redis ProfileReplaced") || len(w.Ledger.Slots(shop, redis)) != 3 {
		t.Errorf("the profile was replaced without a word, or without versions")
	}
	w.restart()
	w.trust("")
	w.delete(profile, redis)
	w.put([]byte(flat)) // from now on the name is the bundle's
	w.settle()
	w.wantExecs(all)
}

func TestAGetThatFailsStallsNothing(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.failing["redis-net"] = true
	w.edit("redis-net", func(u *unstructured.Unstructured) { set(u, "b", "metadata", "annotations", "a") })
	w.put(w.part(w.operator, "overlay", "redis-site", 2, `{execs: [{path: /usr/bin/env}]}`))
	again, err := w.look(t.Context(), item{ID: ID{shop, redis}})
	if err != nil || !again {
		t.Errorf("again %v, %v", again, err)
	}
	w.wantAssembled(honest)
	w.wantExecs("/usr/bin/redis-server /usr/bin/env")
	if got := w.condition(v1alpha1.ConditionDegraded); got != "True "+reasonUnreadable {
		t.Errorf("Degraded is %s", got)
	}
	w.restart() // nothing is in memory now
	w.settle()
	w.wantAssembled("False " + reasonUnreadable)
	w.wantExecs("/usr/bin/redis-server /usr/bin/env")
	if slices.ContainsFunc(w.said(), func(event string) bool { return strings.Contains(event, "Tampered") }) {
		t.Error("an object that could not be read was called tampered")
	}
	delete(w.failing, "redis-net")
	w.settle()
	w.wantAssembled(honest)
}

func TestJunkIsCountedAndNotRead(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	gets := len(w.gets)
	stranger := w.part(testkitSigner(w), "base", "by-a-stranger", 1, `{}`)
	w.notice(parse(w, stranger))
	w.notice(parse(w, w.part(w.vendor, "other-class", "of-another-class", 1, `{}`)))
	for i := range 300 {
		w.notice(parse(w, fmt.Appendf(nil, `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"aaa-%d","namespace":"shop","labels":{"signature.kubescape.io/bundle":"redis","signature.kubescape.io/fragment-class":"base"}},"spec":{}}`, i)))
	}
	w.settle()
	w.wantAssembled(honest)
	status := w.report().Status
	if len(w.gets) != gets {
		t.Errorf("junk was read: %v", w.gets[gets:])
	}
	if status.RefusalCount != 302 || len(status.Refusals) != 2+maxUnsigned || status.Refusals[0].Reason != "SignerUnknown" && status.Refusals[0].Reason != "ClassUnknown" {
		t.Errorf("%d refusals, %d are listed, first %+v", status.RefusalCount, len(status.Refusals), status.Refusals[0])
	}
	w.edit("redis-site", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
	w.settle()
	if first := w.report().Status.Refusals[0]; first.Name != "redis-site" || !first.Member {
		t.Errorf("the member that was stripped is hidden: %+v", first)
	}
}

// Labels are anybody's: none of these is a bundle, and none gets a report.
func TestLabelsAloneMakeNoBundle(t *testing.T) {
	w := newWorld(t)
	w.put(w.part(testkitSigner(w), "base", "stranger", 1, `{}`))
	w.settle()
	if w.report() != nil || w.knows(ID{shop, redis}) {
		t.Errorf("a report was written: %+v", w.report())
	}
}

// Nor does a label with a certificate that was copied from a good fragment: no report is asked for.
func TestACopiedCertificateMakesNoBundle(t *testing.T) {
	w := newWorld(t)
	copied := parse(w, w.part(w.vendor, "base", "redis-base", 1, `{}`))
	copied.SetName("copied")
	text, err := copied.MarshalJSON()
	w.must(err)
	w.put(text)
	for range 3 {
		if again, err := w.look(t.Context(), item{ID: ID{shop, redis}}); again || err != nil {
			t.Errorf("again %v, %v", again, err)
		}
	}
	if w.knows(ID{shop, redis}) || w.calls["get ProfileBundle"]+w.calls["create ProfileBundle"] > 0 || len(w.gets) != 1 {
		t.Errorf("read %v, calls %v", w.gets, w.calls)
	}
}

// What a copied certificate lets in may unpack to megabytes: many of them are judged a few at a time.
func TestOnlyAFewObjectsAreJudgedAtOnce(t *testing.T) {
	w := newWorld(t)
	var now, most atomic.Int32
	w.reader = newReader(w, func(verify.Snapshot, *fragment.Object) (*fragment.Fragment, *decision.Error) {
		n := now.Add(1)
		defer now.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		time.Sleep(10 * time.Millisecond)
		return nil, decision.Errorf(decision.Tampered, "a stand-in")
	}, w.Metrics)
	var group sync.WaitGroup
	for range 4 * readers {
		group.Go(func() { w.reader.judged(verify.Snapshot{Policy: w.policy}, []byte(flat)) })
	}
	group.Wait()
	if most.Load() != judges {
		t.Errorf("%d at once, want %d", most.Load(), judges)
	}
}

// A good fragment whose stored label names another bundle makes none of that name.
func TestAFragmentOfAnotherBundleMakesNoBundle(t *testing.T) {
	w := newWorld(t)
	w.put(w.part(w.vendor, "base", "redis-base", 1, `{}`))
	w.edit("redis-base", func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		labels[fragment.LabelBundle] = "ghost"
		u.SetLabels(labels)
	})
	ghost := ID{shop, "ghost"}
	if _, err := w.look(t.Context(), item{ID: ghost}); err != nil || w.knows(ghost) || w.calls["create ProfileBundle"] > 0 {
		t.Errorf("%v, calls %v", err, w.calls)
	}
}

func TestATightenedPolicyCountsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.trust("revoked: {fragmentSigners: [\"" + w.operator.Fingerprint + "\"]}\n")
	w.settle()
	w.wantExecs("/usr/bin/redis-server")
	w.trust("")
	w.settle()
	w.wantExecs(all)
}

// A Get that fails keeps nothing in effect that the policy took away, and nothing from it that the policy still allows.
func TestATightenedPolicyCountsForWhatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.failing["redis-net"], w.failing["redis-site"], w.failing["redis-base"] = true, true, true
	w.trust("floors: {web: 1}\n") // another policy, that allows the same
	w.settle()
	w.wantAssembled(honest)
	w.wantExecs(all)
	w.trust("revoked: {fragmentSigners: [\"" + w.operator.Fingerprint + "\"]}\n")
	w.settle()
	w.wantExecs("/usr/bin/redis-server")
}

func TestWithoutAPolicyNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	for name, tt := range map[string]struct {
		do   func()
		want string
	}{
		"none is known": {func() { w.trustError = decision.Errorf(decision.SnapshotUnavailable, "not read yet") }, "Unknown SnapshotUnavailable"},
		"it expired":    {func() { w.now = w.policy.Expires }, "Unknown PolicyExpired"},
	} {
		w.trustError = nil
		tt.do()
		w.put(w.part(w.operator, "overlay", "redis-site", 2, `{execs: [{path: /usr/bin/env}]}`))
		w.edit(redis, func(u *unstructured.Unstructured) { delete(u.Object, "spec") })
		w.settle()
		if got := w.condition(v1alpha1.ConditionAssembled); got != tt.want {
			t.Errorf("%s: Assembled is %s", name, got)
		}
		w.wantExecs(all) // repaired all the same
		if !slices.Contains(w.said(), "Warning ProfileBundle/redis DriftRepaired") {
			t.Errorf("%s: nobody was told of the repair", name)
		}
	}
}

func TestVersionsAreRememberedBeforeTheyTakeEffect(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	slot := ledger.Slot{Namespace: shop, Bundle: redis, Class: "overlay", Name: "redis-site"}
	if m := w.Ledger.Slots(shop, redis)[slot]; m.Version != 1 || m.Digest == "" || m.Bytes == "" {
		t.Errorf("remembered %+v", m)
	}
	w.put(w.part(w.operator, "overlay", "redis-site", 7, `{execs: [{path: /usr/bin/env}]}`))
	w.edit("redis-base", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }) // the set is refused
	w.settle()
	if m := w.Ledger.Slots(shop, redis)[slot]; m.Version != 1 {
		t.Errorf("a refused set moved the mark to %d", m.Version)
	}
}

func TestAManifestThatIsTooLongStandsInConfigMaps(t *testing.T) {
	w := newWorld(t)
	const many = 300
	long := strings.Repeat("x", 230) // the longer a name, the fewer members fill an annotation
	for i := range many {
		w.put(w.part(w.vendor, "base", fmt.Sprintf("redis-base-%03d-%s", i, long), 1, fmt.Sprintf(`{execs: [{path: /usr/bin/p%d}]}`, i)))
	}
	w.settle()
	w.wantAssembled(honest)
	u := w.read(t.Context(), profile, shop, redis)
	if got := u.GetAnnotations()[AnnotationManifest]; !strings.HasPrefix(got, "sha256:") {
		t.Fatalf("the annotation has %d bytes", len(got))
	}
	status := w.report().Status
	if status.MemberCount != many || len(status.Members) != many {
		t.Errorf("%d members, %d are listed", status.MemberCount, len(status.Members))
	}
	w.edit("redis-base-007-"+long, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
	w.restart()
	w.settle()
	w.wantAssembled("False Unsigned")
	if got := w.report().Status; got.MemberCount != many || got.MerkleRoot != status.MerkleRoot {
		t.Errorf("after a restart the last composite has %d members", got.MemberCount)
	}
}

// Whoever may make ConfigMaps could hold a large bundle up by an immutable one, and is named at least.
func TestAManifestThatCannotBeWrittenIsReported(t *testing.T) {
	w := newWorld(t)
	blocked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: ManifestName(redis, 0)}, Immutable: new(true)}
	w.must(w.api.Create(t.Context(), blocked))
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if o.GetName() == blocked.Name { // the fake API knows nothing of immutable
				return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, o.GetName(), nil)
			}
			return c.Update(ctx, o, opts...)
		},
	})
	w.restart()
	for i := range 300 {
		w.put(w.part(w.vendor, "base", fmt.Sprintf("redis-base-%03d-%s", i, strings.Repeat("x", 230)), 1, fmt.Sprintf(`{execs: [{path: /usr/bin/p%d}]}`, i)))
	}
	w.settle()
	if got := w.condition(v1alpha1.ConditionPublished); got != "False BytesChanged" {
		t.Errorf("Published is %s", got)
	}
	w.must(w.api.Delete(t.Context(), blocked))
	w.settle()
	if got := w.condition(v1alpha1.ConditionPublished); got != "True Stored" {
		t.Errorf("once it is gone, Published is %s", got)
	}
}

// A server that stores something else than it was sent is not written to again and again.
func TestACompositeThatIsNotStoredAsWrittenIsReported(t *testing.T) {
	w := newWorld(t)
	c := &composite{ID: ID{shop, redis}, digest: "0"}
	if err := w.composites.stuck(c, c.object("v1"), nil); decision.From(err).Reason != decision.BytesChanged {
		t.Errorf("%v", err)
	}
	if err := w.composites.stuck(c, nil, errors.New("no")); err == nil || client.IgnoreNotFound(err) == nil {
		t.Errorf("%v", err)
	}
}

// A watch that begins later than its list tells nothing of what happened in between.
func TestWhatTheWatchMissedIsFound(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	for name, tt := range map[string]struct {
		do   func(u *unstructured.Unstructured)
		want string
	}{
		"a change":   {func(u *unstructured.Unstructured) { u.SetAnnotations(nil); w.must(w.api.Update(t.Context(), u)) }, "False Unsigned"},
		"a deletion": {func(u *unstructured.Unstructured) { w.must(w.api.Delete(t.Context(), u)) }, honest},
	} {
		w.put(w.part(w.operator, "overlay", "redis-site", 1, `{execs: [{path: /usr/bin/id}]}`))
		w.settle()
		w.wantAssembled(honest)
		w.wantExecs(all)
		tt.do(w.read(t.Context(), profile, shop, "redis-site"))
		w.settle()
		w.wantExecs(all)
		w.must(w.relist(t.Context(), profile))
		w.settle()
		w.wantAssembled(tt.want)
		if name == "a deletion" {
			w.wantExecs("/usr/bin/redis-server")
		}
	}
}

// A namespace could not end while somebody makes its objects again.
func TestNothingIsMadeAgainInANamespaceThatGoes(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}
	w.must(w.api.Delete(t.Context(), namespace)) // it has a finalizer: it is going
	w.delete(profile, redis)
	w.settle()
	w.wantExecs("none")
	if w.knows(ID{shop, redis}) {
		t.Error("the bundle is still looked after")
	}
}

func TestALedgerThatWasLostIsToldOfAndFilledAgain(t *testing.T) {
	w := newWorld(t)
	w.three()
	w.settle()
	w.must(w.api.DeleteAllOf(t.Context(), &v1alpha1.Ledger{}))
	w.said()
	w.restart()
	w.settle()
	w.wantAssembled(honest)
	if got := w.said(); !slices.Equal(got, []string{"Warning ProfileBundle/redis LedgerLost"}) || len(w.Ledger.Slots(shop, redis)) != 3 {
		t.Errorf("events %v, %d slots", got, len(w.Ledger.Slots(shop, redis)))
	}
	w.restart()
	w.settle()
	if got := w.said(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}
