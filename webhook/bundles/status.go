package bundles

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// Reasons of conditions that are no Decision's.
const (
	reasonAssembled  = "Assembled"
	reasonStored     = "Stored"
	reasonNone       = "NoComposite"
	reasonKept       = "LastCompositeKept"
	reasonUnreadable = "Unreadable"
	reasonSound      = "AsAssembled"
)

// maxMessage bounds the message of a refusal; maxFindings how many there are of each sort, and
// maxUnsigned of what nobody signed: each report carries them, and anybody can make them by the thousand.
const (
	maxMessage  = 512
	maxFindings = v1alpha1.MaxBundleFindings
	maxUnsigned = 10
)

// statusOf is what a ProfileBundle says of a result, and of what it said before.
func statusOf(was v1alpha1.ProfileBundleStatus, st *state, r *result, now time.Time) v1alpha1.ProfileBundleStatus {
	s := v1alpha1.ProfileBundleStatus{
		PolicyDigest: v1alpha1.SHA256Digest(r.policy), DriftCount: was.DriftCount, LastDrift: was.LastDrift,
		Conditions: slices.Clone(was.Conditions), Composite: was.Composite,
	}
	s.Missing = missing(r)
	s.Refusals, s.RefusalCount = refusals(r)
	s.Divergences, s.DivergenceCount = divergences(r)
	if c := r.Composite; c != nil {
		s.MerkleRoot, s.MemberCount, s.Members = v1alpha1.HexDigest(c.Root), int32(len(c.Leaves)), members(c) //nolint:gosec // fewer than there is memory for
		s.Conflicts, s.ConflictCount = conflicts(c)
	}
	if st.published != nil && st.want != nil {
		s.Composite = &v1alpha1.BundleComposite{UID: st.published.uid, Digest: v1alpha1.HexDigest(st.want.digest), Bytes: int64(st.want.bytes)}
	}
	if r.drift != nil {
		r.drift.note(&s)
	}
	for _, condition := range []metav1.Condition{assembled(r), published(r), degraded(r)} {
		condition.Message = decision.OneLine(condition.Message, maxMessage)
		condition.LastTransitionTime = metav1.NewTime(now)
		apimeta.SetStatusCondition(&s.Conditions, condition)
	}
	return s
}

// note counts a drift in a report.
func (d *drift) note(s *v1alpha1.ProfileBundleStatus) {
	s.DriftCount++
	s.LastDrift = &v1alpha1.BundleDrift{Time: metav1.NewTime(d.at), Milliseconds: d.took.Milliseconds(), Manager: d.manager}
}

func members(c *bundle.Composite) []v1alpha1.BundleMember {
	var all []v1alpha1.BundleMember
	for _, leaf := range c.Leaves[:min(len(c.Leaves), v1alpha1.MaxBundleMembers)] {
		all = append(all, v1alpha1.BundleMember{
			Name: leaf.Name, Class: leaf.Class, Signer: leaf.Signer, Version: leaf.Version, Digest: v1alpha1.HexDigest(leaf.Digest),
		})
	}
	return all
}

func missing(r *result) []v1alpha1.BundleMissing {
	var all []v1alpha1.BundleMissing
	for _, m := range r.missing[:min(len(r.missing), maxFindings)] {
		all = append(all, v1alpha1.BundleMissing{Name: m.Name, Class: m.Class})
	}
	return all
}

// refusals lists what was judged first, the gravest before others, and then what nobody signed: that
// there is much of it hides nothing.
func refusals(r *result) ([]v1alpha1.BundleRefusal, int32) {
	var all []v1alpha1.BundleRefusal
	for _, refusal := range r.Refusals {
		all = append(all, v1alpha1.BundleRefusal{
			Name: refusal.Name, Reason: reasonOf(refusal.Error), Message: decision.OneLine(refusal.Error.What, maxMessage), Member: refusal.Known,
		})
	}
	sample := slices.SortedFunc(slices.Values(r.sample), func(a, b *facts) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range sample[:min(len(sample), max(0, maxFindings-len(all)))] {
		if !slices.ContainsFunc(all, func(known v1alpha1.BundleRefusal) bool { return known.Name == f.Name }) {
			all = append(all, v1alpha1.BundleRefusal{Name: f.Name, Reason: string(f.unsigned.Reason), Message: decision.OneLine(f.unsigned.What, maxMessage)})
		}
	}
	return all, int32(r.refused()) //nolint:gosec // fewer than there is memory for
}

// refused is how many objects were refused.
func (r *result) refused() int { return len(r.Refusals) + r.MoreRefusals + r.unsigned }

// reasonOf is the Reason of a refusal; what could not be read was not refused for what it is.
func reasonOf(e *decision.Error) string {
	if e.Reason == decision.SnapshotUnavailable {
		return reasonUnreadable
	}
	return string(e.Reason)
}

func conflicts(c *bundle.Composite) ([]v1alpha1.BundleConflict, int32) {
	var all []v1alpha1.BundleConflict
	for _, conflict := range c.Conflicts {
		decided := v1alpha1.ConflictByOrder
		if conflict.ByPolicy {
			decided = v1alpha1.ConflictByPolicy
		}
		all = append(all, v1alpha1.BundleConflict{
			Class: conflict.Class, Path: conflict.Path, Key: conflict.Key, Members: conflict.Members, Winner: conflict.Winner, DecidedBy: decided,
		})
	}
	return all, int32(len(c.Conflicts) + c.MoreConflicts) //nolint:gosec // fewer than there is memory for
}

func divergences(r *result) ([]v1alpha1.BundleDivergence, int32) {
	var all []v1alpha1.BundleDivergence
	for _, f := range r.diverging[:min(len(r.diverging), maxFindings)] {
		all = append(all, v1alpha1.BundleDivergence{Name: f.Name, Paths: f.Diverges[:min(len(f.Diverges), 32)]})
	}
	return all, int32(len(r.diverging)) //nolint:gosec // fewer than there is memory for
}

// effect says what agents are handed.
func (r *result) effect() string {
	if r.Composite == nil {
		return "there is no composite"
	}
	return fmt.Sprintf("the last verified composite of %s is kept", fragments(len(r.Composite.Leaves)))
}

func assembled(r *result) metav1.Condition {
	if r.Verdict != bundle.Refused {
		return metav1.Condition{
			Type: v1alpha1.ConditionAssembled, Status: metav1.ConditionTrue, Reason: reasonAssembled,
			Message: fmt.Sprintf("%s under Merkle root %s", fragments(len(r.Composite.Leaves)), r.Composite.Root),
		}
	}
	message := r.effect() + ": " + r.Refusal.Error()
	if r.Refusal.Hint != "" {
		message += "; hint: " + r.Refusal.Hint
	}
	return metav1.Condition{Type: v1alpha1.ConditionAssembled, Status: metav1.ConditionFalse, Reason: reasonOf(r.Refusal), Message: message}
}

func published(r *result) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionPublished, Status: metav1.ConditionTrue, Reason: reasonStored, Message: "the ContainerProfile of this name is the composite"}
	switch {
	case r.fault != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(r.fault.Reason), r.fault.What+"; hint: "+r.fault.Hint
	case r.Composite == nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonNone, "nothing was assembled"
	}
	return c
}

func degraded(r *result) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}
	switch {
	case r.fault != nil:
		c.Reason, c.Message = string(r.fault.Reason), r.fault.What
	case r.Composite == nil:
		c.Reason, c.Message = reasonNone, "agents have no profile for the pods of this bundle"
	case r.Verdict == bundle.Refused:
		c.Reason, c.Message = reasonKept, r.effect()
	case r.Retry || r.unread:
		c.Reason, c.Message = reasonUnreadable, "some objects could not be read, and are tried again"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonSound, "agents are handed what the members say"
	}
	return c
}

// names tells people of a few members.
func names(leaves []bundle.Leaf) string {
	const most = 5
	text := ""
	for i, leaf := range leaves {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(leaves)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += ledger.Slot{Class: leaf.Class, Name: leaf.Name}.Key()
	}
	return text
}

// fragments counts them in words.
func fragments(n int) string {
	if n == 1 {
		return "1 fragment"
	}
	return fmt.Sprintf("%d fragments", n)
}
