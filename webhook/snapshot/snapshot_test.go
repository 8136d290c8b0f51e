package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// cluster is a fake of an API server behind controller-runtime's cache: which kinds it serves, and
// what its informers say.
type cluster struct {
	cache.Cache
	meta.RESTMapper

	mu        sync.Mutex
	served    map[string][]string // versions by kind, the preferred one first
	down      error
	informers map[string]*controllertest.FakeInformer // by kind
	versions  map[string]string                       // that were asked for
}

func newCluster() *cluster {
	return &cluster{
		served: map[string][]string{
			"SSHJoinProfile": {"v1", "v1beta1"}, "SSHHost": {"v1beta1"}, "SSHNodeClass": {"v1beta1"},
			"HostRun": {"v1alpha1"}, "Ledger": {"v1alpha1"}, "Node": {"v1"},
		},
		informers: map[string]*controllertest.FakeInformer{}, versions: map[string]string{},
	}
}

func (c *cluster) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil {
		return nil, c.down
	}
	for _, v := range c.served[gk.Kind] {
		if len(versions) == 0 || versions[0] == v {
			return &meta.RESTMapping{GroupVersionKind: gk.WithVersion(v)}, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
}

func (c *cluster) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind, version := "Node", "v1"
	if u, ok := o.(*unstructured.Unstructured); ok {
		kind, version = u.GetKind(), u.GroupVersionKind().Version
	}
	c.versions[kind] = version
	return c.informer(kind), nil
}

func (c *cluster) informer(kind string) *controllertest.FakeInformer {
	if c.informers[kind] == nil {
		c.informers[kind] = controllertest.NewFakeInformer()
	}
	return c.informers[kind]
}

// sync says that the stored objects of these kinds were handed over.
func (c *cluster) sync(kinds ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range kinds {
		c.informer(kind).Synced()
	}
}

func allKinds() []string {
	return []string{"SSHJoinProfile", "SSHHost", "SSHNodeClass", "HostRun", "Ledger", "Node"}
}

// world is a store beside a cluster.
type world struct {
	t       *testing.T
	cluster *cluster
	store   *Store
	log     *locked

	mu         sync.Mutex
	remembered []ledger.Policy
}

// locked is a buffer for more than one writer.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, c *cluster) *world {
	t.Helper()
	w := &world{t: t, cluster: c, log: &locked{}}
	w.store = New(c, c, func(p ledger.Policy) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.remembered = append(w.remembered, p)
	}, slog.New(slog.NewTextHandler(w.log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.store.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// ready waits until the store has a snapshot.
func (w *world) ready() {
	w.t.Helper()
	w.eventually("a snapshot", func() bool { return w.store.Ready() == nil })
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s does not come; ready: %v; log:\n%s", what, w.store.Ready(), w.log)
		}
	}
}

// slim is an object as the cache stores it.
func (w *world) slim(o any) metav1.Object {
	w.t.Helper()
	s, err := Slim(o)
	if err != nil {
		w.t.Fatal(err)
	}
	m, ok := s.(metav1.Object)
	if !ok {
		w.t.Fatalf("slimmed to a %T", s)
	}
	return m
}

// add stores an object, and drop deletes it.
func (w *world) add(kind string, o any)  { w.cluster.informers[kind].Add(w.slim(o)) }
func (w *world) drop(kind string, o any) { w.cluster.informers[kind].Delete(w.slim(o)) }

func thing(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	group := object.GroupKPSSH + "/v1beta1"
	if kind == "HostRun" || kind == "Ledger" {
		group = object.GroupHostwarrant + "/v1alpha1"
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group, "kind": kind, "spec": spec}}
	u.SetName(name)
	u.SetNamespace(namespace)
	u.SetUID("u-1")
	return u
}

func profileOf(name, filler string) *unstructured.Unstructured {
	scripts, signatures := map[string]any{}, map[string]any{}
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		scripts[phase] = "#!/usr/bin/env bash\necho " + phase + "\n" + filler
		signatures[phase] = "-----BEGIN SSH SIGNATURE-----\n" + filler
	}
	return thing("SSHJoinProfile", "", name, map[string]any{"version": "7", "scripts": scripts, "signatures": signatures})
}

func TestTheSnapshotFollowsWhatIsStored(t *testing.T) {
	c := newCluster()
	w := start(t, c)
	c.sync(allKinds()...)
	w.ready()
	w.add("SSHJoinProfile", profileOf("tls", ""))
	w.add("SSHHost", thing("SSHHost", "pool", "a", map[string]any{"address": "10.0.0.1", "execMode": "Verified"}))
	w.add("SSHHost", thing("SSHHost", "other", "a", map[string]any{"address": "10.0.0.2"}))
	w.add("SSHNodeClass", thing("SSHNodeClass", "", "bm", map[string]any{"joinProfileRef": map[string]any{"name": "tls"}}))
	run := map[string]any{"hostRef": map[string]any{"name": "a"}, "profileRef": map[string]any{"name": "tls"}, "phase": "join", "nodeName": "pool-1"}
	w.add("HostRun", thing("HostRun", "pool", "r", run))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "pool-1", Annotations: map[string]string{"a": "b"}}, Spec: corev1.NodeSpec{ProviderID: "kpssh://pool/a"}}
	w.add("Node", node)
	s := w.store
	p := s.Profile("tls")
	whole, err := object.ParseJoinProfile(encode(t, profileOf("tls", "")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(verify.FactsOf(whole), p); diff != "" {
		t.Error(diff)
	}
	if h := s.Host("pool", "a"); h == nil || h.Address != "10.0.0.1" || s.Host("other", "a").Address != "10.0.0.2" || len(s.Hosts()) != 2 {
		t.Errorf("hosts %v", s.Hosts())
	}
	if n := s.NodeClasses(); len(n) != 1 || n[0].Profile != "tls" {
		t.Errorf("node classes %v", n)
	}
	if r := s.HostRuns(); len(r) != 1 || r[0].Host != "a" || r[0].NodeName != "pool-1" {
		t.Errorf("runs %v", r)
	}
	if r := s.HostRunsFor("pool-1"); len(r) != 1 || r[0].Host != "a" || len(s.HostRunsFor("pool-2")) != 0 {
		t.Errorf("runs for pool-1 %v, for pool-2 %v", r, s.HostRunsFor("pool-2"))
	}
	if id, ok := s.NodeProviderID("pool-1"); id != "kpssh://pool/a" || !ok {
		t.Errorf("node %q %v", id, ok)
	}
	changed := thing("SSHHost", "pool", "a", map[string]any{"address": "10.0.0.9"})
	c.informers["SSHHost"].Update(nil, w.slim(changed))
	if s.Host("pool", "a").Address != "10.0.0.9" || len(s.Hosts()) != 2 {
		t.Errorf("after a change: %v", s.Hosts())
	}
	w.drop("SSHHost", changed)
	w.drop("Node", node)
	s.forget(s.kinds[3], toolscache.DeletedFinalStateUnknown{Key: "bm"})
	if _, ok := s.NodeProviderID("pool-1"); ok || s.Host("pool", "a") != nil || len(s.Hosts()) != 1 || len(s.NodeClasses()) != 0 {
		t.Errorf("after deletions: %v, %v", s.Hosts(), s.NodeClasses())
	}
}

func encode(t *testing.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// unavailable says whether nothing can be judged.
func unavailable(err error) bool {
	return err != nil && decision.From(err).Reason == decision.SnapshotUnavailable
}

func TestThereIsNoSnapshotBeforeEveryKindWasRead(t *testing.T) {
	for _, last := range allKinds() {
		t.Run(last, func(t *testing.T) {
			c := newCluster()
			w := start(t, c)
			for _, kind := range allKinds() {
				if kind != last {
					c.sync(kind)
				}
			}
			w.eventually("all but one", func() bool {
				n := 0
				for _, k := range w.store.Kinds() {
					if k.State == "watched" {
						n++
					}
				}
				return n == len(allKinds())-1
			})
			if err := w.store.Ready(); !unavailable(err) || !strings.Contains(err.Error(), last) {
				t.Errorf("ready: %v", err)
			}
			if err := w.store.For("SSHHost"); !unavailable(err) {
				t.Errorf("for a host: %v", err)
			}
			c.sync(last)
			w.ready()
			if err := w.store.For("SSHHost"); err != nil {
				t.Errorf("for a host: %v", err)
			}
		})
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNoEmptyCluster(t *testing.T) {
	c := newCluster()
	c.down = errors.New("connection refused")
	w := start(t, c)
	c.sync(allKinds()...)
	w.eventually("a look", func() bool { return strings.Contains(w.log.String(), "connection refused") })
	if err := w.store.Ready(); !unavailable(err) {
		t.Errorf("ready: %v", err)
	}
	c.mu.Lock()
	c.down = nil
	c.mu.Unlock()
	for _, k := range w.store.kinds {
		k.look()
	}
	w.ready()
}

func TestAKindThatIsNotServedKeepsNobodyWaitingAndIsFoundLater(t *testing.T) {
	c := newCluster()
	delete(c.served, "SSHNodeClass")
	w := start(t, c)
	c.sync(allKinds()...)
	w.ready()
	if got := w.store.Kinds()["SSHNodeClass"]; got.State != "absent" {
		t.Errorf("%+v", got)
	}
	if err := w.store.For("SSHHost"); err != nil {
		t.Errorf("for a host: %v", err)
	}
	if err := w.store.For("SSHNodeClass"); !unavailable(err) {
		t.Errorf("for a node class: %v", err)
	}
	c.mu.Lock()
	c.served["SSHNodeClass"] = []string{"v1beta1"}
	c.mu.Unlock()
	if err := w.store.For("SSHNodeClass"); !unavailable(err) { // which asks for a look
		t.Errorf("for a node class: %v", err)
	}
	w.eventually("the new kind", func() bool { return w.store.For("SSHNodeClass") == nil })
	w.add("SSHNodeClass", thing("SSHNodeClass", "", "bm", map[string]any{"joinProfileRef": map[string]any{"name": "tls"}}))
	if n := w.store.NodeClasses(); len(n) != 1 {
		t.Errorf("node classes %v", n)
	}
}

func TestTheVersionWeKnowIsReadElseTheOneThatIsServed(t *testing.T) {
	c := newCluster()
	c.served["SSHHost"] = []string{"v1", "v2"}
	w := start(t, c)
	c.sync(allKinds()...)
	w.ready()
	want := map[string]string{
		"SSHJoinProfile": "v1beta1", "SSHHost": "v1", "SSHNodeClass": "v1beta1", "HostRun": "v1alpha1", "Ledger": "v1alpha1", "Node": "v1",
	}
	if diff := cmp.Diff(want, c.versions); diff != "" {
		t.Error(diff)
	}
	if k := w.store.Kinds()["SSHHost"]; k.Version != "v1" || k.State != "watched" {
		t.Errorf("%+v", k)
	}
}

func TestTheLedgerIsRead(t *testing.T) {
	c := newCluster()
	w := start(t, c)
	digest := "sha256:" + strings.Repeat("a", 64)
	policy := thing("Ledger", "", "policy", map[string]any{"policy": map[string]any{
		"roots": "ssh-ed25519 AAAA", "anchorDigest": digest, "rootVersion": int64(2), "rootDigest": digest, "version": int64(5), "digest": digest,
		"resetsUsed": []any{"r-1"},
	}})
	mark := thing("Ledger", "", "profile.tls", map[string]any{"profile": map[string]any{"serial": int64(41), "digest": digest, "reset": "r-2"}})
	reading, cancel := context.WithCancel(t.Context())
	cancel()
	if w.store.LedgerRead(reading) {
		t.Error("read before it was")
	}
	w.eventually("the informer", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.versions["Ledger"] != "" })
	time.Sleep(10 * time.Millisecond)
	w.add("Ledger", policy)
	w.add("Ledger", mark)
	c.sync("Ledger")
	if !w.store.LedgerRead(t.Context()) {
		t.Error("not read")
	}
	want := []ledger.Policy{{
		Roots: []byte("ssh-ed25519 AAAA"), AnchorDigest: digest, RootVersion: 2, RootDigest: digest, Version: 5, Digest: digest, ResetsUsed: []string{"r-1"},
	}}
	w.mu.Lock()
	if diff := cmp.Diff(want, w.remembered); diff != "" {
		t.Error(diff)
	}
	w.mu.Unlock()
	if m, ok := w.store.Mark("tls"); !ok || m != (ledger.Mark{Serial: 41, Digest: digest}) {
		t.Errorf("%+v %v", m, ok)
	}
	if _, ok := w.store.Mark("other"); ok {
		t.Error("a mark of nothing")
	}
	for id, used := range map[string]bool{"r-1": true, "r-2": true, "r-3": false, "": false} {
		if w.store.ResetUsed(id) != used {
			t.Errorf("reset %q used: %v", id, !used)
		}
	}
	w.drop("Ledger", mark)
	if _, ok := w.store.Mark("tls"); ok {
		t.Error("the mark outlives its record")
	}
	w.drop("Ledger", policy)
	if !w.store.ResetUsed("r-1") || !strings.Contains(w.log.String(), "was deleted") {
		t.Error("a used reset is forgotten with its record")
	}
}

func TestSlotsOfFragmentsAreRead(t *testing.T) {
	c := newCluster()
	w := start(t, c)
	c.sync(allKinds()...)
	w.ready()
	hex := strings.Repeat("a", 64)
	record := func(n int, namespace, bundle, key string, version int64, reset string) *unstructured.Unstructured {
		mark := map[string]any{"version": version, "digest": hex, "bytes": hex}
		if reset != "" {
			mark["reset"] = reset
		}
		return thing("Ledger", "", ledger.SlotsName(namespace, bundle, n), map[string]any{"slots": map[string]any{
			"namespace": namespace, "bundle": bundle, "marks": map[string]any{key: mark},
		}})
	}
	base := ledger.Slot{Namespace: "pay", Bundle: "redis", Class: "base", Name: "redis-base"}
	first := record(0, "pay", "redis", "base/redis-base", 3, "r-1")
	w.add("Ledger", first)
	w.add("Ledger", record(1, "pay", "redis", "overlay/x", 9, ""))
	w.add("Ledger", record(0, "", "", "rules/base/r", 1, ""))
	want := ledger.SlotMark{Version: 3, Digest: hex, Bytes: hex}
	if m, ok := w.store.Slot(base); !ok || m != want {
		t.Errorf("%+v %v", m, ok)
	}
	for _, other := range []ledger.Slot{
		{Namespace: "shop", Bundle: "redis", Class: "base", Name: "redis-base"},
		{Namespace: "pay", Bundle: "mysql", Class: "base", Name: "redis-base"},
		{Namespace: "pay", Bundle: "redis", Class: "rules/base", Name: "redis-base"},
		{Namespace: "pay", Bundle: "redis", Class: "base", Name: "x"},
	} {
		if m, ok := w.store.Slot(other); ok {
			t.Errorf("%s: %+v", other, m)
		}
	}
	for place, known := range map[[2]string]bool{{"pay", "redis"}: true, {"shop", "redis"}: false, {"pay", "mysql"}: false, {"", ""}: false} {
		if w.store.Bundle(place[0], place[1]) != known {
			t.Errorf("a bundle of %q is known: %v", place, !known)
		}
	}
	if !w.store.ResetUsed("r-1") || w.store.ResetUsed("r-2") {
		t.Error("a reset that a slot names counts as unused, or another one as used")
	}
	if _, ok := w.store.Slot(ledger.Slot{Class: "rules/base", Name: "r"}); !ok {
		t.Error("a slot without a namespace is not known")
	}
	w.drop("Ledger", first)
	if _, ok := w.store.Slot(base); ok || !w.store.Bundle("pay", "redis") {
		t.Error("the mark outlives its record, or its neighbour goes with it")
	}
}

func TestWhatCannotBeReadVouchesForNothing(t *testing.T) {
	c := newCluster()
	w := start(t, c)
	c.sync(allKinds()...)
	w.ready()
	w.add("SSHHost", thing("SSHHost", "pool", "a", map[string]any{"address": "10.0.0.1"}))
	c.informers["SSHHost"].Update(nil, w.slim(thing("SSHHost", "pool", "a", map[string]any{"port": "many"})))
	if h := w.store.Host("pool", "a"); h != nil || len(w.store.Hosts()) != 0 {
		t.Errorf("%+v", h)
	}
	w.add("SSHJoinProfile", thing("SSHJoinProfile", "", "tls", map[string]any{"scripts": "all"}))
	if p := w.store.Profile("tls"); p == nil || p.Name != "tls" || p.Warrants != nil {
		t.Errorf("%+v", p)
	}
	w.add("Ledger", thing("Ledger", "", "profile.tls", map[string]any{"profile": "x"}))
	if _, ok := w.store.Mark("tls"); ok || w.store.ResetUsed("x") {
		t.Error("a record that cannot be read says something")
	}
	before := w.store.Profile("tls")
	c.informers["SSHJoinProfile"].Add(profileOf("tls", "")) // as if the cache had no Transform
	if w.store.Profile("tls") != before || !strings.Contains(w.log.String(), "not slimmed") {
		t.Error("an object that was not slimmed is taken")
	}
}

func TestSlimIsSafeToRepeatAndLeavesOtherKindsAlone(t *testing.T) {
	once, err := Slim(profileOf("tls", ""))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Slim(once); err != nil || again != once {
		t.Errorf("%v, %v", again, err)
	}
	k, ok := once.(*kept)
	if !ok || k.Name != "tls" || k.UID != "u-1" {
		t.Fatalf("%+v", once)
	}
	if c, ok := k.DeepCopyObject().(*kept); !ok || c == k || c.value != k.value {
		t.Error("a copy is not one")
	}
	policy := thing("Ledger", "", "cluster", nil)
	policy.SetKind("TrustPolicy")
	for _, o := range []any{policy, &corev1.Secret{}, toolscache.DeletedFinalStateUnknown{Key: "x"}} {
		if same, err := Slim(o); err != nil || fmt.Sprintf("%p", same) != fmt.Sprintf("%p", o) && same != o {
			t.Errorf("%T became %T, %v", o, same, err)
		}
	}
}

// 1,000 profiles of four scripts of 16 KiB, and as many signatures, are 128 MiB as they are stored.
func TestNoScriptStaysInMemory(t *testing.T) {
	const profiles, bound = 1000, 4 << 20
	filler := strings.Repeat("x", 16<<10)
	var all []any
	before := heap()
	for i := range profiles {
		slim, err := Slim(profileOf(fmt.Sprintf("p-%04d", i), filler))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, slim)
	}
	took := int64(heap()) - int64(before)
	t.Logf("%d profiles take %d KiB", len(all), took>>10)
	if took > bound {
		t.Errorf("%d profiles take %d bytes; want no more than %d", profiles, took, bound)
	}
	runtime.KeepAlive(all)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
