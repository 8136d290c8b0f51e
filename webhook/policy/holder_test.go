package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// observer remembers what it was told.
type observer struct {
	loaded  []int
	refused []decision.Reason
	differs []bool
}

func (o *observer) AnchorDiffers(differs bool) { o.differs = append(o.differs, differs) }

func (o *observer) PolicyLoaded(p *trustpolicy.Policy) { o.loaded = append(o.loaded, p.Version) }
func (o *observer) PolicyRefused(r decision.Reason)    { o.refused = append(o.refused, r) }

type fixture struct {
	root, signer testkit.Signer
	observer     *observer
	holder       *Holder
	log          *bytes.Buffer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519"), observer: &observer{}}
	anchor, err := inforce.ParseAnchor([]byte(f.root.Line), []byte(trustpolicy.AnyCluster))
	if err != nil {
		t.Fatal(err)
	}
	f.log = &bytes.Buffer{}
	f.holder = New(anchor, f.observer, slog.New(slog.NewTextHandler(f.log, nil)))
	f.holder.Settle(testkit.Now())
	return f
}

// document is the tests' policy with some text replaced.
func (f *fixture) document(edits ...string) string {
	return strings.NewReplacer(edits...).Replace(testkit.PolicyDocument(f.signer))
}

// object is the JSON of a TrustPolicy signed by the root, or by nobody.
func (f *fixture) object(t *testing.T, document string, by ...testkit.Signer) []byte {
	t.Helper()
	var signatures []string
	for _, s := range by {
		signatures = append(signatures, testkit.Sign(t, s, trustpolicy.Namespace, []byte(document)))
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"document": document, "signatures": signatures},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (f *fixture) offer(t *testing.T, source string, raw []byte, want decision.Reason) {
	t.Helper()
	if d := f.holder.Offer(source, raw, testkit.Now()); d.Reason != want {
		t.Fatalf("%s; want %s", d.Message(), want)
	}
}

func (f *fixture) inForce() int {
	if s, err := f.holder.Snapshot(testkit.Now()); err == nil && s.Policy != nil {
		return s.Policy.Version
	}
	return 0
}

func TestWhatBecameOfOffersIsSaidOnce(t *testing.T) {
	f := newFixture(t)
	f.offer(t, "cluster", f.object(t, f.document(), f.root), decision.Verified)
	bad := f.object(t, f.document("version: 3", "version: 4"), f.signer)
	for range 3 {
		f.offer(t, "cluster", bad, decision.PolicyUnsigned)
		f.holder.Retry(testkit.Now())
	}
	if n := strings.Count(f.log.String(), "trust policy refused"); n != 1 || len(f.observer.refused) != 1 {
		t.Errorf("said %d times, counted %d times", n, len(f.observer.refused))
	}
	for _, document := range []string{f.document(), f.document("version: 3", "version: 4")} {
		if digest := trustpolicy.Digest([]byte(document)); !strings.Contains(f.log.String(), digest) {
			t.Errorf("the log does not name %s:\n%s", digest, f.log)
		}
	}
	narrow := f.document("version: 3", "version: 5", "users: [kpssh]", "users: []")
	f.offer(t, "cluster", f.object(t, narrow, f.root), decision.Verified)
	if !strings.Contains(f.log.String(), "lets less through") || !strings.Contains(f.log.String(), "users: removes kpssh") {
		t.Errorf("the reduction is not said:\n%s", f.log)
	}
	if diff := cmp.Diff([]int{3, 5}, f.observer.loaded); diff != "" || f.inForce() != 5 {
		t.Errorf("version %d in force: %s", f.inForce(), diff)
	}
}

func TestAnotherAnchorInTheLedgerIsAlarmed(t *testing.T) {
	f := newFixture(t)
	own, foreign := ledger.Policy{}.Pinned(f.holder.anchor.Text), ledger.Policy{}.Pinned([]byte(f.signer.Line))
	for _, r := range []ledger.Policy{{}, own, foreign, foreign, own} {
		f.holder.Remember(r)
	}
	if diff := cmp.Diff([]bool{true, false}, f.observer.differs); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(f.log.String(), foreign.AnchorDigest) || !strings.Contains(f.log.String(), own.AnchorDigest) {
		t.Errorf("the log does not name both:\n%s", f.log)
	}
}

func TestOffersOfBeforeEverythingWasReadAreJudgedThen(t *testing.T) {
	f := newFixture(t)
	f.holder = New(f.holder.anchor, f.observer, slog.New(slog.NewTextHandler(io.Discard, nil)))
	f.offer(t, "file", f.object(t, f.document(), f.root), decision.SnapshotUnavailable)
	if _, err := f.holder.Snapshot(testkit.Now()); err == nil || decision.From(err).Reason != decision.SnapshotUnavailable {
		t.Errorf("%v", err)
	}
	if err := f.holder.Ready(testkit.Now()); err == nil || !strings.HasPrefix(err.Error(), "SnapshotUnavailable: ") {
		t.Errorf("ready: %v", err)
	}
	f.holder.Settle(testkit.Now())
	if f.inForce() != 3 || f.holder.Ready(testkit.Now()) != nil {
		t.Errorf("version %d in force, ready: %v", f.inForce(), f.holder.Ready(testkit.Now()))
	}
}

func TestPolicyzShowsNoBodyAndNoKeys(t *testing.T) {
	f := newFixture(t)
	f.offer(t, "cluster", f.object(t, f.document(), f.root), decision.Verified)
	w := httptest.NewRecorder()
	f.holder.Remember(ledger.Policy{}.Pinned([]byte("x")).Pinned(f.holder.anchor.Text))
	f.holder.Serve(func(r *Report) { r.Snapshot = map[string]int{"SSHHost": 7} })(w, httptest.NewRequest("GET", "/policyz", nil))
	body := w.Body.String()
	for _, secret := range []string{"ssh-ed25519", "kpssh-shim", "SHA256:", "maxValidity"} {
		if strings.Contains(body, secret) {
			t.Errorf("/policyz holds %q:\n%s", secret, body)
		}
	}
	var r Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	digest := trustpolicy.Digest([]byte(f.document()))
	if r.Digest != digest || r.Version != 3 || r.RootVersion != 1 || r.Signers != 1 || r.Anchor.ClusterID != "any" || r.Mode != "enforce" || !r.InForce ||
		r.NotReady != "" || r.Ledger == nil || r.Ledger.AnchorDigest != r.Anchor.Digest || !strings.Contains(body, `"SSHHost": 7`) {
		t.Errorf("/policyz: %s", body)
	}
}

func TestAnchorIsReadStrictly(t *testing.T) {
	root := testkit.NewSigner(t, "ed25519")
	for name, c := range map[string]struct {
		roots, id string
		says      string
	}{
		"as it should be":          {root.Line + "\n", "prod-1\n", ""},
		"without a final newline":  {root.Line, "prod-1", ""},
		"no keys":                  {"# none\n", "prod-1\n", "the roots hold 0 keys"},
		"something that is no key": {"hello\n", "prod-1\n", "root key on line 1"},
		"no id":                    {root.Line, "\n", "no cluster id"},
		"an id with a space":       {root.Line, "prod 1\n", "no cluster id"},
		"two ids":                  {root.Line, "prod-1\nprod-2\n", "no cluster id"},
		"an id in capitals":        {root.Line, "PROD\n", "no cluster id"},
		"larger than any roots":    {strings.Repeat("#\n", inforce.MaxAnchorFile), "prod-1\n", "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.WriteFile(t, dir, "roots", []byte(c.roots))
			testkit.WriteFile(t, dir, "cluster-id", []byte(c.id))
			a, err := LoadAnchor(dir)
			if c.says == "" {
				if err != nil || a.ClusterID != "prod-1" || len(a.Roots.Keys) != 1 {
					t.Fatalf("%+v, %v", a, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v; want %q", err, c.says)
			}
		})
	}
	t.Run("no directory", func(t *testing.T) {
		if _, err := LoadAnchor(filepath.Join(t.TempDir(), "missing")); !os.IsNotExist(err) && !strings.Contains(err.Error(), "no such file") {
			t.Fatal(err)
		}
	})
}

func TestPolicyFileIsReadAgainWhenItChanges(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	feed := &Feed{Holder: f.holder, File: filepath.Join(dir, "policy.yaml"), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	feed.readFile() // not there yet
	if f.inForce() != 0 {
		t.Fatal("a policy from nowhere")
	}
	for i, c := range []struct {
		text []byte
		want int
	}{
		{f.object(t, f.document(), f.root), 3},
		{[]byte("a: b\na: c\n"), 3},
		{nil, 3},
		{f.object(t, f.document("version: 3", "version: 4"), f.root), 4},
	} {
		testkit.WriteFile(t, dir, "policy.yaml", c.text)
		feed.readFile()
		f.holder.Retry(testkit.Now())
		if f.inForce() != c.want {
			t.Fatalf("step %d: version %d in force; want %d", i, f.inForce(), c.want)
		}
	}
}

// informers is a fake of a cache: it hands over one stored policy.
type informers struct {
	cache.Cache
	informer *controllertest.FakeInformer
	asked    chan struct{}
}

func (i *informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	close(i.asked)
	return i.informer, nil
}

func TestTheFeedSettlesWhenClusterLedgerAndPolicyWereRead(t *testing.T) {
	f := newFixture(t)
	f.holder = New(f.holder.anchor, f.observer, slog.New(slog.NewTextHandler(io.Discard, nil)))
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON(f.object(t, f.document(), f.root)); err != nil {
		t.Fatal(err)
	}
	fake := &informers{informer: controllertest.NewFakeInformer(), asked: make(chan struct{})}
	ledgerRead, answers := make(chan struct{}), make(chan error)
	feed := &Feed{
		Holder: f.holder, Cache: fake, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Identify:   func(context.Context) (string, error) { return "u-1", <-answers },
		LedgerRead: func(context.Context) bool { <-ledgerRead; return true },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- feed.Start(ctx) }()
	unread := func(when string) {
		t.Helper()
		if err := f.holder.Ready(testkit.Now()); err == nil || decision.From(err).Reason != decision.SnapshotUnavailable {
			t.Fatalf("%s: ready: %v", when, err)
		}
	}
	unread("at first")
	answers <- errors.New("connection refused")
	unread("while the API server does not answer")
	answers <- nil
	<-fake.asked
	unread("before the ledger was read")
	close(ledgerRead)
	unread("before the policy was read")
	time.Sleep(10 * time.Millisecond) // until the handler is registered
	fake.informer.Add(stored)
	unread("before every policy was handed over")
	fake.informer.Synced()
	for end := time.Now().Add(10 * time.Second); f.holder.Ready(time.Now()) != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if err := f.holder.Ready(testkit.Now()); err != nil {
		t.Errorf("in the end: %v", err)
	}
	fake.informer.Delete(stored)
	next := stored.DeepCopy()
	if err := next.UnmarshalJSON(f.object(t, f.document("version: 3", "version: 4"), f.root)); err != nil {
		t.Fatal(err)
	}
	fake.informer.Update(stored, next)
	if f.inForce() != 4 {
		t.Errorf("version %d in force; want 4", f.inForce())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
