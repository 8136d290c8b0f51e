package ledger

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// The lengths of lists, as the CustomResourceDefinition bounds them.
const (
	maxResets   = 512
	maxRendered = 64
)

// policyOf converts what is remembered of policies; nothing where there is no record.
func policyOf(l *v1alpha1.Ledger) ledger.Policy {
	if l == nil {
		return ledger.Policy{}
	}
	return record.Policy(l.Spec.Policy)
}

// recordOf is the record of p, made from the known one.
func recordOf(known *v1alpha1.Ledger, p ledger.Policy, rendered []v1alpha1.SHA256Digest) *v1alpha1.Ledger {
	l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LedgerPolicyName}}
	if known != nil {
		l = known.DeepCopy()
	}
	l.Spec.Policy = &v1alpha1.LedgerPolicy{
		Roots: string(p.Roots), AnchorDigest: v1alpha1.SHA256Digest(p.AnchorDigest),
		RootVersion: int32(p.RootVersion), RootDigest: v1alpha1.SHA256Digest(p.RootDigest),
		Version: int64(p.Version), Digest: v1alpha1.SHA256Digest(p.Digest), RenderedSigners: rendered,
	}
	for _, id := range p.ResetsUsed {
		l.Spec.Policy.ResetsUsed = append(l.Spec.Policy.ResetsUsed, v1alpha1.ResetID(id))
	}
	return l
}

// RecordPolicy remembers a policy that is in force, and at the first start the anchor. Chain is the
// stored policy's. An anchor that is not linked with the pinned one is refused: the error carries
// AnchorChanged, and nothing is written.
func (k *Keeper) RecordPolicy(ctx context.Context, p *trustpolicy.Policy, chain []statement.Signed, now time.Time) error {
	if p == nil || p.Expired(now) {
		return nil
	}
	rendered := RenderedDigest(p.FillSigners(now))
	return k.change(ctx, v1alpha1.LedgerPolicyName, func(known *v1alpha1.Ledger) (*v1alpha1.Ledger, error) {
		was := policyOf(known)
		next, err := k.pinned(was, chain, now)
		if err != nil {
			return nil, err
		}
		if err := next.Check(p); err != nil {
			return nil, err
		}
		next = next.After(p)
		for _, id := range k.profileResets() {
			next = next.Use(id)
		}
		next.ResetsUsed = trimmed(next.ResetsUsed, p)
		lists := addRendered(known, rendered)
		l := recordOf(known, next, lists)
		if known != nil && same(known, l) {
			return nil, nil
		}
		return l, nil
	})
}

// pinned is the record with our anchor as the pin: of the first start, or where the chain leads from
// the pinned roots to ours. Where it leads from ours to the pinned ones, which are newer, they stay.
func (k *Keeper) pinned(was ledger.Policy, chain []statement.Signed, now time.Time) (ledger.Policy, error) {
	if was.AnchorDigest == k.anchor.Digest {
		return was, nil
	}
	err := was.CheckAnchor(k.anchor.Text, chain, k.anchor.ClusterID, now)
	if err == nil {
		return was.Pinned(k.anchor.Text), nil
	}
	// check: AnchorChanged: a pin that gives way to whatever anchor is there pins nothing
	if was.Pinned(k.anchor.Text).CheckAnchor(was.Roots, chain, k.anchor.ClusterID, now) != nil {
		return was, decision.From(err)
	}
	return was, nil
}

// profileResets are those that a profile's own record names.
func (k *Keeper) profileResets() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var ids []string
	for _, l := range k.records {
		if l.Spec.Profile != nil && l.Spec.Profile.Reset != "" {
			ids = append(ids, string(l.Spec.Profile.Reset))
		}
	}
	slices.Sort(ids)
	return ids
}

// trimmed keeps the list within its bound: ids that the policy in force does not name may go, the
// oldest first, because only a policy that names them again, which the roots sign, could use them.
func trimmed(ids []string, p *trustpolicy.Policy) []string {
	for len(ids) > maxResets {
		i := slices.IndexFunc(ids, func(id string) bool {
			return !slices.ContainsFunc(p.Resets, func(r trustpolicy.Reset) bool { return r.ID() == id })
		})
		if i < 0 {
			return ids // the API server refuses the write, and says so
		}
		ids = slices.Delete(ids, i, i+1)
	}
	return ids
}

// RenderedDigest identifies a list of trusted signers; "" for none.
func RenderedDigest(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	text := ""
	for _, line := range lines {
		text += line + "\n"
	}
	return trustpolicy.Digest([]byte(text))
}

// addRendered puts a digest last, and drops the oldest over the bound.
func addRendered(known *v1alpha1.Ledger, digest string) []v1alpha1.SHA256Digest {
	var lists []v1alpha1.SHA256Digest
	if known != nil && known.Spec.Policy != nil {
		lists = slices.Clone(known.Spec.Policy.RenderedSigners)
	}
	if digest == "" || slices.Contains(lists, v1alpha1.SHA256Digest(digest)) {
		return lists
	}
	lists = append(lists, v1alpha1.SHA256Digest(digest))
	return lists[max(0, len(lists)-maxRendered):]
}

// Rendered reports whether a list of trusted signers is one that a policy in force rendered.
func (k *Keeper) Rendered(lines []string) bool {
	l := k.record(v1alpha1.LedgerPolicyName)
	digest := RenderedDigest(lines)
	return l != nil && l.Spec.Policy != nil && digest != "" && slices.Contains(l.Spec.Policy.RenderedSigners, v1alpha1.SHA256Digest(digest))
}

// same reports whether two records of policies say the same.
func same(a, b *v1alpha1.Ledger) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
