package minter

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// maxIDs bounds how many ids are tried: of a million, a few hundred may be in use.
const maxIDs = 4

// judge says whether the run may have a token, by nothing that its status says.
func (m *Minter) judge(ctx context.Context, run *v1alpha1.HostRun) (*judge.Refusal, error) {
	c, err := m.Objects.Judge(ctx, m.Policy, run, m.Now())
	if err != nil || c.Refused != nil {
		return c.Refused, err
	}
	// check: ParamUndeclared: a token for a script whose author did not ask for one
	if !judge.TakesToken(run, c.Warrant) {
		return judge.Refuse(string(decision.ParamUndeclared), "the script's warrant does not declare "+judge.BootstrapToken+" secret; declare it with a param line and sign again"), nil
	}
	return m.taken(ctx, run)
}

// taken refuses a name for which another run has a token, unless that is over by now.
func (m *Minter) taken(ctx context.Context, run *v1alpha1.HostRun) (*judge.Refusal, error) {
	rivals := func() []Entry {
		return m.Book.find(func(e Entry) bool { return e.UID != run.UID && e.NodeName == run.Spec.NodeName })
	}
	for _, e := range rivals() {
		if err := m.tidy(ctx, e.Run); err != nil {
			return nil, err
		}
	}
	left := rivals()
	if len(left) == 0 {
		return nil, nil
	}
	r := judge.Refuse(string(decision.NodeNameTaken), fmt.Sprintf("HostRun %s has a token for the node name %q; wait until that run is over", left[0].Run, run.Spec.NodeName))
	r.Waiting = left[0].Host == run.Spec.HostRef.Name && left[0].Run.Namespace == run.Namespace // its own host's: one after the other
	return r, nil
}

// mint judges the run and gives it a token: it is written down before it exists, so that whoever comes
// next can take it away.
func (m *Minter) mint(ctx context.Context, run *v1alpha1.HostRun) error {
	refused, err := m.judge(ctx, run)
	if err != nil {
		return err
	}
	one := token.New()
	if refused == nil {
		refused, err = m.access(ctx, one.ID)
	}
	if err != nil {
		return err
	}
	// check: NodeNameTaken: a token for a run that the policy, what is stored or the cluster's own approver forbids
	if refused != nil {
		return m.refuse(ctx, run, refused)
	}
	if err := m.finalize(ctx, run, true); err != nil {
		return err
	}
	g, err := m.create(ctx, run, one)
	if err != nil {
		return err
	}
	if err := m.handOver(ctx, run, g); err != nil {
		return err
	}
	m.Metrics.issued.Inc()
	m.tell(run, corev1.EventTypeNormal, token.Issued, fmt.Sprintf("token %s for node %s", g.token, g.entry.NodeName))
	return nil
}

// access refuses a token whose bearer the cluster would make a node of without asking the approver.
func (m *Minter) access(ctx context.Context, id string) (*judge.Refusal, error) {
	by, err := m.autoApproved(ctx, id)
	// check: NodeNameTaken: the built-in approver gives the bearer of any token any node's name
	if err == nil && by != "" {
		return judge.Refuse(token.AutoApproverBound, fmt.Sprintf("no token: whoever shows one %s; delete that binding: docs/operations/join.md", by)), nil
	}
	return nil, err
}

// given is a token with its record.
type given struct {
	entry Entry
	token token.Token
}

// create records a token and creates it. An id that somebody has gives way to another.
func (m *Minter) create(ctx context.Context, run *v1alpha1.HostRun, one token.Token) (given, error) {
	for range maxIDs {
		g := given{token: one, entry: Entry{
			ID: one.ID, Run: client.ObjectKeyFromObject(run), UID: run.UID, Host: run.Spec.HostRef.Name, NodeName: run.Spec.NodeName, Expires: m.Now().Add(token.Life),
		}}
		if err := m.record(ctx, run, g.entry); err != nil {
			return given{}, err
		}
		m.step("recorded")
		err := m.Client.Create(ctx, one.Bootstrap(g.entry.Expires))
		if !apierrors.IsAlreadyExists(err) {
			m.step("created")
			return g, wrap(err, "creating the token")
		}
		one = token.New()
	}
	return given{}, fmt.Errorf("finding a token id that nobody has: none of %d tried", maxIDs)
}

// record writes the id into book and status.
func (m *Minter) record(ctx context.Context, run *v1alpha1.HostRun, e Entry) error {
	if !m.Book.put(e) {
		return errors.New("another run has the token id or the node name")
	}
	return m.write(ctx, run, func(s *v1alpha1.HostRunStatus) {
		s.TokenID = e.ID
		// check: ProofFailed: an answer that was given while the run held an earlier token
		if s.Proof != nil {
			s.Proof = nil
		}
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionJoined)
		say(s, run.Generation, metav1.ConditionUnknown, token.Recorded, "the token is being made", e.minted())
	})
}

// handOver puts the token where the relay takes it from, and says so. Whatever stands in its way ends
// the token: somebody else is minting for this run.
func (m *Minter) handOver(ctx context.Context, run *v1alpha1.HostRun, g given) error {
	s := g.token.Handover(run, g.entry.Expires)
	// check: InUse: a token of which the run was handed nothing lives on, and another minter's is taken for it
	if err := m.Client.Create(ctx, s); err != nil {
		return errors.Join(wrap(err, "handing the token over"), m.delete(ctx, metav1.NamespaceSystem, token.BootstrapName(g.entry.ID), ""))
	}
	m.step("handed over")
	err := m.write(ctx, run, func(status *v1alpha1.HostRunStatus) {
		say(status, run.Generation, metav1.ConditionUnknown, token.Issued, "token "+g.entry.ID+" until "+g.entry.Expires.UTC().Format("15:04:05 UTC"), m.Now())
	})
	// check: InUse: a token that no status tells of is handed to the run, beside another minter's
	if err != nil {
		return errors.Join(err, m.delete(ctx, metav1.NamespaceSystem, token.BootstrapName(g.entry.ID), ""), m.delete(ctx, s.Namespace, s.Name, s.UID))
	}
	g.entry.Issued = true
	m.Book.put(g.entry)
	m.Metrics.living.Set(float64(m.Book.size()))
	return nil
}

// refuse says why there is no token; what can still come by itself is waited for.
func (m *Minter) refuse(ctx context.Context, run *v1alpha1.HostRun, why *judge.Refusal) error {
	if why.Waiting {
		return fmt.Errorf("waiting: %s: %s", why.Reason, why.Message)
	}
	err := m.write(ctx, run, func(s *v1alpha1.HostRunStatus) {
		say(s, run.Generation, metav1.ConditionFalse, why.Reason, why.Message, m.Now())
	})
	if err != nil {
		return err
	}
	m.Metrics.refused.WithLabelValues(why.Reason).Inc()
	m.tell(run, corev1.EventTypeWarning, why.Reason, why.Message)
	return m.finalize(ctx, run, false)
}

// delete deletes a Secret by its name, and only the one of that UID where there is one.
func (m *Minter) delete(ctx context.Context, namespace, name string, uid types.UID) error {
	var options []client.DeleteOption
	if uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := m.Client.Delete(ctx, s, options...)
	if apierrors.IsConflict(err) && uid != "" {
		return nil // another one by now
	}
	return wrap(client.IgnoreNotFound(err), "deleting the Secret "+namespace+"/"+name)
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
