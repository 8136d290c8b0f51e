package bundles

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// tell reports a result: status, metrics, and events where it is another than the one that was reported.
func (c *Controller) tell(ctx context.Context, st *state, r *result) error {
	c.count(st, r)
	if err := c.ensureReport(ctx, st); err != nil {
		return err
	}
	was := st.report.Status
	next := statusOf(was, st, r, c.Now())
	if equality.Semantic.DeepEqual(was, next) {
		return nil
	}
	if err := c.report(ctx, st, next); err != nil {
		return err
	}
	c.events(ctx, st, r, was, next)
	return nil
}

// report writes the status. Where somebody else wrote the object, it is read again and written over.
func (c *Controller) report(ctx context.Context, st *state, next v1alpha1.ProfileBundleStatus) error {
	report := st.report.DeepCopy()
	report.Status = next
	err := c.Client.Status().Update(ctx, report, client.FieldOwner(FieldManager))
	if err == nil {
		st.report = report
		return nil
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		st.report = nil
		if err := c.ensureReport(ctx, st); err != nil {
			return err
		}
		report = st.report.DeepCopy()
		report.Status = next
		err = c.Client.Status().Update(ctx, report, client.FieldOwner(FieldManager))
	}
	if err != nil {
		return fmt.Errorf("writing ProfileBundle: %w", err)
	}
	st.report = report
	return nil
}

// ensureReport makes the ProfileBundle where there is none.
func (c *Controller) ensureReport(ctx context.Context, st *state) error {
	if st.report != nil && c.index.get(Key{kindBundle, st.Namespace, st.Name}) != nil {
		return nil
	}
	report := &v1alpha1.ProfileBundle{ObjectMeta: metav1.ObjectMeta{Namespace: st.Namespace, Name: st.Name}}
	err := c.Client.Create(ctx, report, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) {
		err = c.Reader.Get(ctx, client.ObjectKeyFromObject(report), report)
	}
	if err != nil {
		return fmt.Errorf("writing ProfileBundle: %w", err)
	}
	st.report = report
	return nil
}

// dissolve takes away what is left of a bundle of which the policy buried every member.
func (c *Controller) dissolve(ctx context.Context, st *state) error {
	if st.report != nil {
		c.Events.Normal(ctx, c.about(st), "Dissolved", "the trust policy took out every member of this bundle: its composite and this report are removed")
		if err := c.Client.Delete(ctx, st.report); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing ProfileBundle: %w", err)
		}
	}
	c.forget(st)
	return nil
}

// unjudged says that nothing can be judged. What is stored of the last composite is still looked after.
func (c *Controller) unjudged(ctx context.Context, i item, reason *decision.Error) error {
	if i.rules {
		return nil
	}
	st, err := c.open(ctx, i.ID)
	if err != nil {
		return err
	}
	if st.report == nil {
		c.forget(st)
		return nil
	}
	r := &result{Outcome: bundle.Outcome{Composite: st.last}}
	if st.want != nil && !c.current(st) {
		stored, err := c.composites.stored(ctx, st.ID)
		if err != nil {
			return fmt.Errorf("reading the composite: %w", err)
		}
		if err := c.store(ctx, st, r, st.want, stored); err != nil {
			return err
		}
	}
	next := *st.report.Status.DeepCopy()
	if r.drift != nil {
		r.drift.note(&next)
		c.Events.Warning(ctx, c.about(st), "DriftRepaired", r.drift.words())
	}
	apimeta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAssembled, Status: metav1.ConditionUnknown, Reason: string(reason.Reason), Message: decision.OneLine(reason.Error(), maxMessage),
		LastTransitionTime: metav1.NewTime(c.Now()),
	})
	if equality.Semantic.DeepEqual(st.report.Status, next) {
		return nil
	}
	return c.report(ctx, st, next)
}

func (c *Controller) about(st *state) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: kindBundle, Namespace: st.Namespace, Name: st.Name, UID: st.report.UID}
}

// events tells what changed between two reports.
func (c *Controller) events(ctx context.Context, st *state, r *result, was, next v1alpha1.ProfileBundleStatus) {
	about := c.about(st)
	for _, name := range []string{v1alpha1.ConditionAssembled, v1alpha1.ConditionPublished} {
		c.transition(ctx, about, name, was.Conditions, next.Conditions)
	}
	if r.Verdict == bundle.Accepted && was.MerkleRoot != "" && was.MerkleRoot != next.MerkleRoot {
		c.Events.Normal(ctx, about, "RootChanged", fmt.Sprintf("the composite is made of %s under Merkle root %s", fragments(int(next.MemberCount)), next.MerkleRoot))
	}
	if len(r.Left) > 0 {
		c.Events.Warning(ctx, about, "MembersLeft", fmt.Sprintf("no longer members: %s, %s", fragments(len(r.Left)), names(r.Left)))
	}
	if r.replaced {
		c.Events.Warning(ctx, about, "ProfileReplaced", "a ContainerProfile of this name was written over: the trust policy gives the name to this bundle")
	}
	if r.drift != nil {
		c.Events.Warning(ctx, about, "DriftRepaired", r.drift.words())
	}
	if said := divergenceWords(next.Divergences); said != "" && said != divergenceWords(was.Divergences) {
		c.Events.Warning(ctx, about, "SpecDiverges", fmt.Sprintf("%d members have another stored spec than the signed one, which counts: %s", next.DivergenceCount, said))
	}
}

func (d *drift) words() string {
	what := "a foreign change of the composite"
	if d.gone {
		what = "the deletion of the composite"
	}
	if d.manager != "" {
		what += fmt.Sprintf(" by field manager %q", d.manager)
	}
	return fmt.Sprintf("%s was undone %d ms after it was seen", what, d.took.Milliseconds())
}

// divergenceWords names objects and paths, never values.
func divergenceWords(all []v1alpha1.BundleDivergence) string {
	var parts []string
	for _, d := range all {
		parts = append(parts, d.Name+" ("+strings.Join(d.Paths, " ")+")")
	}
	return strings.Join(parts, ", ")
}

// transition tells of a condition whose status or reason changed. One that is first reported, and is
// as it should be, is told of too: from then on the bundle is guarded.
func (c *Controller) transition(ctx context.Context, about corev1.ObjectReference, name string, was, next []metav1.Condition) {
	old, now := apimeta.FindStatusCondition(was, name), apimeta.FindStatusCondition(next, name)
	if now == nil || old != nil && old.Status == now.Status && old.Reason == now.Reason {
		return
	}
	if now.Status == metav1.ConditionTrue {
		c.Events.Normal(ctx, about, now.Reason, now.Message)
		return
	}
	if now.Reason != reasonNone || old != nil { // what was never assembled is told of by the other condition
		c.Events.Warning(ctx, about, now.Reason, now.Message)
	}
}
