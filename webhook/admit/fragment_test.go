package admit

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const agentAccount = "system:serviceaccount:kubescape:node-agent"

// fragments is a world whose policy has a class of fragments, and the key that signs for it.
func fragments(t *testing.T) (*world, testkit.FragmentSigner) {
	t.Helper()
	signer, by := testkit.NewSigner(t, "ed25519"), testkit.NewFragmentSigner(t)
	w := worldWith(t, signer, testkit.PolicyDocument(signer)+fmt.Sprintf(`fragmentClasses: {base: {signers: [%[1]q], allowedSpecPaths: [execs]}}
ruleClasses: {base: {signers: [%[1]q], allowedRuleIDs: ["*"]}}
learners: [%[2]q]
bundles: {redis: {required: [{class: base, name: redis-base}]}}
`, by.Fingerprint, agentAccount))
	w.validator.Unpacking = NewUnpacking()
	return w, by
}

// containerProfile is one of the namespace pool.
func containerProfile(name string, annotations fields) fields {
	return fields{
		"apiVersion": "spdx.softwarecomposition.kubescape.io/v1beta1", "kind": object.KindContainerProfile,
		"metadata": fields{"name": name, "namespace": "pool", "annotations": annotations},
		"spec":     fields{"execs": []fields{{"path": "/usr/bin/redis-server"}}},
	}
}

func decoded(t *testing.T, raw []byte) fields {
	t.Helper()
	var o fields
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// Who writes decides about learned profiles and composites alone.
func TestReviewsOfFragmentsKnowWhoWrites(t *testing.T) {
	w, by := fragments(t)
	w.trust.controller = "system:serviceaccount:hostwarrant-system:hostwarrant-controller"
	signed := decoded(t, by.Sign(t, `
apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1
kind: ContainerProfile
metadata: {name: redis-base, namespace: pool, labels: {signature.kubescape.io/bundle: redis, signature.kubescape.io/fragment-class: base}}
spec: {execs: [{path: /usr/bin/redis-server}]}
`, true))
	composite := containerProfile("redis", fields{verify.RootAnnotation: strings.Repeat("a", 64), object.ManagedByAnnotation: "User"})
	rules := fields{"apiVersion": "kubescape.io/v1", "kind": object.KindRules, "metadata": fields{"name": "r", "namespace": "pool"}, "spec": fields{"rules": []fields{}}}
	binding := fields{"apiVersion": "kubescape.io/v1", "kind": object.KindRuleBinding, "metadata": fields{"name": "r"}, "spec": fields{}}
	for name, c := range map[string]struct {
		user   string
		object fields
		want   decision.Reason
	}{
		"signed, by anybody":           {"alice", signed, decision.Verified},
		"unsigned":                     {"alice", containerProfile("nginx", nil), decision.Unsigned},
		"learned":                      {agentAccount, containerProfile("nginx", nil), decision.Verified},
		"a composite":                  {w.trust.controller, composite, decision.Verified},
		"a composite by somebody else": {"alice", composite, decision.CompositeForeign},
		"unsigned rules":               {"alice", rules, decision.Unsigned},
		"a kind without classes":       {"alice", binding, decision.Unguarded},
	} {
		t.Run(name, func(t *testing.T) {
			req := create(t, c.object)
			req.UserInfo.Username = c.user
			r := w.handle(t, req)
			if allowed := c.want == decision.Verified || c.want == decision.Unguarded; reason(r) != c.want || r.Allowed != allowed {
				t.Fatalf("allowed %v, %s: %s; want %s", r.Allowed, reason(r), r.Result.Message, c.want)
			}
		})
	}
	if keys := w.handle(t, create(t, signed)).AuditAnnotations["keys"]; keys != by.Fingerprint {
		t.Errorf("keys %q", keys)
	}
	m := &Mutator{Trust: w.trust, Annotate: true, Log: silent(), Now: testkit.Now}
	if r := m.Handle(context.Background(), create(t, signed)); !r.Allowed || r.Patch != nil {
		t.Errorf("what is signed is patched: %s", r.Patch)
	}
}

// bomb is an annotation of a few KiB that unpacks to 8 MiB of values.
func bomb(t *testing.T) string {
	t.Helper()
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	text := []byte(`{"a":[` + strings.Repeat("0,", (fragment.MaxContent-16)/2) + "0]}")
	if _, err := g.Write(text); err != nil || g.Close() != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// As TestFloodsOfReviewsStaySmall, with what an annotation unpacks to.
func TestFloodsOfEmbeddedContentStaySmall(t *testing.T) {
	const bound = 224 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(200 << 20))
	w, by := fragments(t)
	w.validator.Recorder = uncounted{}
	annotations := fields{}
	for name, value := range by.Annotations(t, []byte("{}"), false) {
		annotations[name] = value
	}
	annotations[fragment.AnnotationContent] = bomb(t)
	body := review(t, create(t, containerProfile("nginx", annotations)))
	e := &Endpoint{Reviewer: w.validator, Limits: NewLimits(), Recorder: uncounted{}, Log: silent()}
	e.Limits.judging = make(chan struct{}, maxJudged)
	var bodies []posted
	for range 3 * maxJudged {
		bodies = append(bodies, posted{body, decision.TooLarge})
	}
	peak, before := peakHeap(func() {
		allAtOnce(e, bodies, func(p posted, answer string) {
			if !strings.Contains(answer, `"reason":"`+string(p.want)+`"`) {
				t.Errorf("%.300s; want %s", answer, p.want)
			}
		})
	})
	t.Logf("at most %d MiB, %d before", peak>>20, before>>20)
	if peak > bound {
		t.Errorf("the heap had %d MiB; want no more than %d", peak>>20, bound>>20)
	}
}

// held is a Trust that waits before it tells anything.
type held struct {
	*trust
	asked   chan struct{}
	proceed chan struct{}
}

func (h held) Snapshot(kind string, now time.Time) (verify.Snapshot, error) {
	h.asked <- struct{}{}
	<-h.proceed
	return h.trust.Snapshot(kind, now)
}

func TestOnlyAFewObjectsAreUnpackedAtOnce(t *testing.T) {
	w, _ := fragments(t)
	h := held{w.trust, make(chan struct{}, 8), make(chan struct{})}
	w.validator.Trust, w.validator.Recorder = h, uncounted{}
	req := create(t, containerProfile("nginx", nil))
	var all sync.WaitGroup
	for range maxUnpacked {
		all.Go(func() { w.validator.Handle(context.Background(), req) })
		<-h.asked
	}
	late, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if a, _ := w.validator.judge(late, req, testkit.Now()); a.Decision.Reason != decision.Internal || a.Admits() {
		t.Errorf("one more: %s", a.Decision.Message())
	}
	all.Go(func() { w.validator.Handle(context.Background(), create(t, w.host())) })
	<-h.asked // other kinds do not wait
	close(h.proceed)
	all.Wait()
	if a, _ := w.validator.judge(context.Background(), req, testkit.Now()); a.Decision.Reason != decision.Unsigned {
		t.Errorf("with room: %s", a.Decision.Message())
	}
}
