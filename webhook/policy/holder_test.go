package policy

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// observer remembers what it was told.
type observer struct {
	loaded  []int
	refused []decision.Reason
}

func (o *observer) PolicyLoaded(p *trustpolicy.Policy) { o.loaded = append(o.loaded, p.Version) }
func (o *observer) PolicyRefused(r decision.Reason)    { o.refused = append(o.refused, r) }

type fixture struct {
	root, signer testkit.Signer
	observer     *observer
	holder       *Holder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519"), observer: &observer{}}
	anchor := Anchor{Anchor: verify.Anchor{Roots: testkit.Roots(t, f.root), ClusterID: trustpolicy.AnyCluster}, Digest: "sha256:test"}
	f.holder = New(anchor, f.observer, slog.New(slog.NewTextHandler(io.Discard, nil)))
	f.holder.Synced()
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
	if p := f.holder.Snapshot(testkit.Now()).Policy; p != nil {
		return p.Version
	}
	return 0
}

func TestABadPolicyIsRefusedOnceAndTheOldOneStays(t *testing.T) {
	f := newFixture(t)
	f.offer(t, "cluster", f.object(t, f.document(), f.root), decision.Verified)
	for name, c := range map[string]struct {
		raw  []byte
		want decision.Reason
	}{
		"unsigned":                          {f.object(t, f.document("version: 3", "version: 4")), decision.PolicyUnsigned},
		"by another root":                   {f.object(t, f.document("version: 3", "version: 4"), f.signer), decision.PolicyUnsigned},
		"a lower version":                   {f.object(t, f.document("version: 3", "version: 2"), f.root), decision.PolicyRollback},
		"the same version with other bytes": {f.object(t, f.document("maxValidity: 90d", "maxValidity: 91d"), f.root), decision.PolicyEquivocation},
		"expired":                           {f.object(t, f.document("version: 3", "version: 4", "2027-05-29", "2026-11-30"), f.root), decision.PolicyExpired},
		"another cluster":                   {f.object(t, f.document("version: 3", "version: 4", "any: {}", "prod: {}"), f.root), decision.PolicyWrongCluster},
		"no JSON":                           {[]byte("{"), decision.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(f.observer.refused)
			f.offer(t, "cluster", c.raw, c.want)
			f.offer(t, "cluster", c.raw, c.want) // as an informer does when it lists again
			f.holder.Retry(testkit.Now())
			if n := len(f.observer.refused) - before; n != 1 {
				t.Errorf("reported %d times; want once", n)
			}
			if f.inForce() != 3 {
				t.Errorf("version %d in force; want 3", f.inForce())
			}
			if r := f.holder.Report(testkit.Now()).LastRefusal; r == nil || r.Reason != c.want || !strings.Contains(r.Message, string(c.want)) {
				t.Errorf("last refusal %+v; want %s", r, c.want)
			}
		})
	}
	f.offer(t, "cluster", f.object(t, f.document("version: 3", "version: 5"), f.root), decision.Verified)
	if f.inForce() != 5 || f.holder.Report(testkit.Now()).LastRefusal != nil {
		t.Errorf("version %d in force, last refusal %+v; want 5 and none", f.inForce(), f.holder.Report(testkit.Now()).LastRefusal)
	}
	if diff := cmp.Diff([]int{3, 5}, f.observer.loaded); diff != "" {
		t.Error(diff)
	}
}

func TestAPolicyThatBecomesValidLaterIsTakenWithoutAnotherOffer(t *testing.T) {
	f := newFixture(t)
	f.offer(t, "file", f.object(t, f.document("2026-11-29", "2026-12-05"), f.root), decision.NotYetValid)
	f.holder.Retry(testkit.Now().Add(24 * time.Hour))
	if f.inForce() != 0 {
		t.Fatal("taken too early")
	}
	f.holder.Retry(time.Date(2026, 12, 5, 0, 0, 0, 0, time.UTC))
	if f.inForce() != 3 || len(f.observer.refused) != 1 {
		t.Fatalf("version %d in force, refused %v", f.inForce(), f.observer.refused)
	}
}

// After a restart the stored policy may have expired. It then grants nothing, and keeps an older
// one out that has not.
func TestAnExpiredPolicyIsAFloorAfterARestart(t *testing.T) {
	f := newFixture(t)
	expired := f.object(t, f.document("version: 3", "version: 4", "2027-05-29", "2026-11-30"), f.root)
	if d := f.holder.Offer("cluster", expired, testkit.Now()); d.Reason != decision.PolicyExpired {
		t.Fatalf("got %s", d.Message())
	}
	if err := f.holder.Ready(testkit.Now()); err == nil || !strings.Contains(err.Error(), "PolicyExpired") {
		t.Errorf("Ready says %v", err)
	}
	if d := f.holder.Offer("cluster", f.object(t, f.document(), f.root), testkit.Now()); d.Reason != decision.PolicyRollback {
		t.Errorf("an older policy: %s", d.Message())
	}
	if d := f.holder.Offer("cluster", f.object(t, f.document("version: 3", "version: 5"), f.root), testkit.Now()); !d.Allowed() {
		t.Errorf("a newer policy: %s", d.Message())
	}
	if err := f.holder.Ready(testkit.Now()); err != nil {
		t.Errorf("Ready says %v", err)
	}
}

func TestOfTwoSourcesTheHigherVersionIsInForce(t *testing.T) {
	f := newFixture(t)
	newer, older := f.object(t, f.document("version: 3", "version: 4"), f.root), f.object(t, f.document(), f.root)
	f.offer(t, "file", newer, decision.Verified)
	f.offer(t, "cluster", older, decision.PolicyRollback)
	f.holder.Retry(testkit.Now())
	if f.inForce() != 4 {
		t.Fatalf("version %d in force; want 4", f.inForce())
	}
}

func TestReadyOnlyWithAPolicyThatIsInForce(t *testing.T) {
	f := newFixture(t)
	says := func(now time.Time, want string) {
		t.Helper()
		if err := f.holder.Ready(now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ready: %v; want %q", err, want)
		}
	}
	says(testkit.Now(), "PolicyUnavailable: no trust policy was found")
	f.offer(t, "cluster", f.object(t, f.document()), decision.PolicyUnsigned)
	says(testkit.Now(), "last refusal: TrustPolicy/cluster: PolicyUnsigned")
	f.offer(t, "cluster", f.object(t, f.document(), f.root), decision.Verified)
	expires := time.Date(2027, 5, 29, 0, 0, 0, 0, time.UTC)
	if err := f.holder.Ready(expires.Add(-time.Second)); err != nil {
		t.Errorf("in force: %v", err)
	}
	says(expires, "PolicyExpired")
}

func TestNothingIsDecidedBeforeTheStoredPolicyWasRead(t *testing.T) {
	f := newFixture(t)
	f.holder = New(f.holder.anchor, f.observer, slog.New(slog.NewTextHandler(io.Discard, nil)))
	raw := f.object(t, f.document(), f.root)
	f.offer(t, "file", raw, decision.Verified)
	o, err := object.ParseTrustPolicy(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, synced := range []bool{false, true} {
		if synced {
			f.holder.Synced()
		}
		if err := f.holder.Ready(testkit.Now()); (err == nil) != synced || !synced && !strings.HasPrefix(err.Error(), "SnapshotUnavailable") {
			t.Errorf("synced %v: ready: %v", synced, err)
		}
		if p := f.holder.Snapshot(testkit.Now()).Policy; (p != nil) != synced {
			t.Errorf("synced %v: snapshot holds %v", synced, p)
		}
		want := decision.SnapshotUnavailable
		if synced {
			want = decision.Verified
		}
		if d := f.holder.Judge(o, testkit.Now()); d.Reason != want {
			t.Errorf("synced %v: %s; want %s", synced, d.Message(), want)
		}
	}
}

func TestPolicyzShowsNoBodyAndNoKeys(t *testing.T) {
	f := newFixture(t)
	f.offer(t, "cluster", f.object(t, f.document(), f.root), decision.Verified)
	w := httptest.NewRecorder()
	f.holder.ServeHTTP(w, httptest.NewRequest("GET", "/policyz", nil))
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
	if r.Digest != digest || r.Version != 3 || r.RootVersion != 1 || r.Signers != 1 || r.Anchor.ClusterID != "any" || r.Mode != "enforce" {
		t.Errorf("/policyz: %s", body)
	}
}

func TestRemovedSignersAreNamed(t *testing.T) {
	f := newFixture(t)
	other := testkit.NewSigner(t, "ed25519")
	policyOf := func(document string) *trustpolicy.Policy { return testkit.Policy(t, document, f.root) }
	both := policyOf(testkit.PolicyDocument(f.signer, other))
	revoking := policyOf(testkit.PolicyDocument(f.signer, other) + "revoked: {signers: [\"" + other.Fingerprint + "\"]}\n")
	for name, c := range map[string]struct {
		old, next *trustpolicy.Policy
		want      []string
	}{
		"the first policy":  {nil, both, nil},
		"the same again":    {both, both, nil},
		"one is left out":   {both, policyOf(testkit.PolicyDocument(f.signer)), []string{"signer-1"}},
		"one is revoked":    {both, revoking, []string{"signer-1"}},
		"one stays revoked": {revoking, revoking, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, removed(c.old, c.next)); diff != "" {
				t.Error(diff)
			}
		})
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
		"larger than any roots":    {strings.Repeat("#\n", maxAnchorFile), "prod-1\n", "larger than"},
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
