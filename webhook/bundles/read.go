package bundles

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/webhook/rejudge"
)

// readers bounds how many objects of one bundle are read at once.
const readers = 8

// judges bounds how many objects are judged at once, over all bundles: a few KiB of an annotation unpack
// to 8 MiB, with half a million values that are hashed before anybody vouched for them, which takes
// some 60 MiB. A certificate of a known key, which lets an object be read at all, anybody can copy.
const judges = 2

// Getter reads one stored object; rejudge.API is one.
type Getter interface {
	// Get returns nil where there is no such object.
	Get(ctx context.Context, k rejudge.Kind, namespace, name string) (json.RawMessage, error)
}

// Judge says what was signed in an object, and why it may not take effect; the engine is one.
type Judge func(s verify.Snapshot, o *fragment.Object) (*fragment.Fragment, *decision.Error)

// reading is what the last look at a stored object found. It is good as long as the object, and the
// policy by which it was judged, are the same.
type reading struct {
	uid, version, policy string
	fragment             *fragment.Fragment
	refusal              *decision.Error
	gone                 bool
}

// reader reads and judges stored objects, each once in each version.
type reader struct {
	get     Getter
	judge   Judge
	metrics *Metrics
	judging chan struct{} // room for judges

	mu    sync.Mutex
	known map[Key]*reading
}

func newReader(get Getter, judge Judge, metrics *Metrics) *reader {
	return &reader{get: get, judge: judge, metrics: metrics, judging: make(chan struct{}, judges), known: map[Key]*reading{}}
}

// dropped says why an object need not be read, by its metadata alone: no policy could admit it. A
// signer and a class are only claimed there, so that it can be refused by them and never admitted.
func dropped(p *trustpolicy.Policy, f *facts) *decision.Error {
	switch {
	case f.unsigned != nil:
		return f.unsigned
	case !signs(p, f.Kind, f.signer):
		return decision.Errorf(decision.SignerUnknown, "no class of the trust policy has the signer %s", f.signer)
	case f.Kind == fragment.KindContainerProfile && !known(p.FragmentClasses, f.class):
		return decision.Errorf(decision.ClassUnknown, "the trust policy has no class %.63q", f.class)
	default:
		return nil
	}
}

func known[V any](classes map[string]V, name string) bool {
	_, ok := classes[name]
	return ok
}

// signs reports whether some class of a kind has the signer.
func signs(p *trustpolicy.Policy, kind, signer string) bool {
	switch kind {
	case fragment.KindContainerProfile, fragment.KindSeccompProfile:
		return among(p.FragmentClasses, signer, func(c trustpolicy.FragmentClass) []string { return c.Signers })
	case fragment.KindRules:
		return among(p.RuleClasses, signer, func(c trustpolicy.RuleClass) []string { return c.Signers })
	case fragment.KindRuleBinding:
		return among(p.BindingClasses, signer, func(c trustpolicy.BindingClass) []string { return c.Signers })
	default:
		return false
	}
}

func among[C any](classes map[string]C, signer string, signers func(C) []string) bool {
	for _, c := range classes {
		if slices.Contains(signers(c), signer) {
			return true
		}
	}
	return false
}

// candidates reads and judges objects, in their order, each where it changed or the policy did. Failed
// says that some could not be read: such a one is as it was read last, or is refused as
// SnapshotUnavailable. One that is gone is left out.
func (r *reader) candidates(ctx context.Context, s verify.Snapshot, objects []*facts) (all []bundle.Candidate, failed bool) {
	found := make([]*reading, len(objects))
	fails := make([]bool, len(objects))
	work := make(chan int)
	var group sync.WaitGroup
	for range min(readers, len(objects)) {
		group.Go(func() {
			for i := range work {
				found[i], fails[i] = r.look(ctx, s, objects[i])
			}
		})
	}
	for i := range objects {
		work <- i
	}
	close(work)
	group.Wait()
	for i, f := range objects {
		if !found[i].gone {
			all = append(all, bundle.Candidate{Namespace: f.Namespace, Name: f.Name, Fragment: found[i].fragment, Refusal: found[i].refusal})
		}
		failed = failed || fails[i]
	}
	return all, failed
}

// look gives what is known of an object, and reads it where that is not of its present version.
func (r *reader) look(ctx context.Context, s verify.Snapshot, f *facts) (now *reading, failed bool) {
	old := r.recall(f.Key)
	if old != nil && old.uid == f.uid && old.version == f.version && old.policy == s.Policy.Digest {
		return old, false
	}
	raw, err := r.get.Get(ctx, kindOf(f.Kind), f.Namespace, f.Name)
	if err != nil {
		r.metrics.read("failed")
		return unread(s, old, err), true
	}
	r.metrics.read("read")
	now = r.judged(s, raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[f.Key] = now
	return now, false
}

// unread is what a known object counts as while it cannot be read: what it was, judged anew where the
// policy is another one. Whoever can make a Get fail must not keep in effect what the policy took away.
func unread(s verify.Snapshot, old *reading, err error) *reading {
	switch {
	case old == nil || old.gone:
	case old.policy == s.Policy.Digest:
		return old
	case old.fragment != nil:
		return &reading{fragment: old.fragment, refusal: verify.Permitted(s, old.fragment)}
	}
	refusal := decision.Errorf(decision.SnapshotUnavailable, "it could not be read: %.200v", err).Try("it is tried again by itself; look at the API server that holds it")
	return &reading{refusal: refusal}
}

// judged judges an object as the API server sent it.
func (r *reader) judged(s verify.Snapshot, raw json.RawMessage) *reading {
	now := &reading{policy: s.Policy.Digest, gone: raw == nil}
	if now.gone {
		return now
	}
	o, err := fragment.Parse(raw)
	if err != nil {
		now.refusal = decision.From(err)
		return now
	}
	now.uid, now.version, now.gone = o.UID, resourceVersion(raw), o.Deleting
	r.judging <- struct{}{}
	defer func() { <-r.judging }()
	now.fragment, now.refusal = r.judge(s, o)
	return now
}

func resourceVersion(raw json.RawMessage) string {
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}

func (r *reader) recall(k Key) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[k]
}

func (r *reader) forget(k Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, k)
}

// kindOf is how a kind of the format is asked for.
func kindOf(kind string) rejudge.Kind {
	gv, err := schema.ParseGroupVersion(fragment.APIVersionOf(kind))
	if err != nil {
		return rejudge.Kind{}
	}
	return rejudge.Kind{GroupKind: gv.WithKind(kind).GroupKind(), Prefer: gv.Version}
}
