package minter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// Minter gives tokens to HostRuns and takes them back.
type Minter struct {
	Client  client.Client // writes
	Objects judge.Objects
	Policy  *judge.PolicySource
	Book    *Book
	Metrics *Metrics
	Events  events.EventRecorder
	Now     func() time.Time
	// Namespaces are those whose runs are watched; empty: all.
	Namespaces []string

	mu      sync.Mutex // one token at a time is given or taken
	adopted bool
	onStep  func(string) // tests: what has been done
}

// Setup registers the controller. One worker: two runs for one name are judged one after the other.
func (m *Minter) Setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("minter").
		For(&v1alpha1.HostRun{}, builder.WithPredicates(predicate.NewPredicateFuncs(m.concerns))).
		WatchesMetadata(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(m.runsOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(m)
}

// concerns leaves out the runs, most of them, that neither have a token nor wait for one.
func (m *Minter) concerns(o client.Object) bool {
	run, ok := o.(*v1alpha1.HostRun)
	if !ok {
		return false
	}
	_, held := m.Book.of(run.UID)
	return held || hasFinalizer(run) || awaits(run)
}

// runsOf are the runs that hold a token for a node's name.
func (m *Minter) runsOf(_ context.Context, node client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, e := range m.Book.find(func(e Entry) bool { return e.NodeName == node.GetName() }) {
		requests = append(requests, reconcile.Request{NamespacedName: e.Run})
	}
	return requests
}

// Reconcile brings the token of one HostRun one step further.
func (m *Minter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.adopt(ctx); err != nil {
		return ctrl.Result{}, err
	}
	run, err := m.read(ctx, request.NamespacedName)
	if err != nil || run == nil {
		return ctrl.Result{}, err
	}
	err = m.next(ctx, run)
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("the run was changed meanwhile", "error", err.Error())
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return m.later(run), err
}

// read gives a run as it is stored, nil where there is none, and takes what tokens others of its name
// left behind.
func (m *Minter) read(ctx context.Context, key types.NamespacedName) (*v1alpha1.HostRun, error) {
	var run v1alpha1.HostRun
	err := m.Objects.Reader.Get(ctx, key, &run)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the run: %w", err)
	}
	if err := m.orphans(ctx, key, run.UID); err != nil || run.UID == "" {
		return nil, err
	}
	return &run, nil
}

// tidy takes the token of a run away if it is over.
func (m *Minter) tidy(ctx context.Context, key types.NamespacedName) error {
	run, err := m.read(ctx, key)
	if err != nil || run == nil {
		return err
	}
	_, err = m.ended(ctx, run)
	return err
}

// later is when a token's time is over.
func (m *Minter) later(run *v1alpha1.HostRun) ctrl.Result {
	if e, ok := m.Book.of(run.UID); ok {
		return ctrl.Result{RequeueAfter: max(e.Expires.Sub(m.Now()), time.Second)}
	}
	return ctrl.Result{}
}

// next decides: take the token away, give one, or nothing.
func (m *Minter) next(ctx context.Context, run *v1alpha1.HostRun) error {
	if ended, err := m.ended(ctx, run); ended || err != nil {
		return err
	}
	if e, held := m.Book.of(run.UID); held && e.Issued || isFinal(run) || !awaits(run) {
		return nil
	}
	return m.mint(ctx, run)
}

// ended takes the run's token away if it is over, and says whether it was.
func (m *Minter) ended(ctx context.Context, run *v1alpha1.HostRun) (bool, error) {
	if err := m.giveWay(ctx, run); err != nil {
		return false, err
	}
	e, held := m.Book.of(run.UID)
	if !held && !hasFinalizer(run) {
		return false, nil
	}
	why, err := m.over(ctx, run, e)
	if err != nil || why == nil {
		return false, err
	}
	return true, m.end(ctx, run, *why)
}

// giveWay takes over the token that another minter issued while this one was making its own: this one
// was paused, and the run's word is the other's.
func (m *Minter) giveWay(ctx context.Context, run *v1alpha1.HostRun) error {
	e, held := m.Book.of(run.UID)
	// check: InUse: a minter that was paused takes the token away with which the run was sent meanwhile
	if held && issued(run) && e.ID != run.Status.TokenID {
		if err := m.delete(ctx, metav1.NamespaceSystem, token.BootstrapName(e.ID), ""); err != nil {
			return err
		}
		m.Book.put(entryOf(run))
	}
	return nil
}

// entryOf is the record of a token that the run itself tells of.
func entryOf(run *v1alpha1.HostRun) Entry {
	return Entry{
		ID: run.Status.TokenID, Run: client.ObjectKeyFromObject(run), UID: run.UID, Host: run.Spec.HostRef.Name, NodeName: run.Spec.NodeName,
		Expires: joined(run).LastTransitionTime.Add(token.Life), Issued: true,
	}
}

// over says why the run's token is over, nil where it is not.
func (m *Minter) over(ctx context.Context, run *v1alpha1.HostRun, e Entry) (*ending, error) {
	switch {
	case isOver(run):
		return &ending{metav1.ConditionFalse, token.RunEnded, "the run is over"}, nil
	case run.DeletionTimestamp != nil:
		return &ending{metav1.ConditionFalse, token.RunEnded, "the run was deleted"}, nil
	case isFinal(run) && joined(run).Status == metav1.ConditionFalse:
		return &ending{metav1.ConditionFalse, joined(run).Reason, joined(run).Message}, nil
	case e.UID == "" && wasSent(run):
		return &ending{metav1.ConditionFalse, token.Lost, "nothing is known of the token with which the run was sent"}, nil
	case !e.Issued:
		return &ending{metav1.ConditionUnknown, token.Lost, "the minter was interrupted: the run gets another token"}, nil
	case !m.Now().Before(e.Expires):
		return m.expired(run), nil
	}
	registered, err := m.registered(ctx, run)
	if err != nil || !registered {
		return nil, err
	}
	return &ending{metav1.ConditionTrue, token.NodeRegistered, "node " + run.Spec.NodeName + " has registered"}, nil
}

// expired: a run that was not sent can have another token; of one that was, the host has this one.
func (m *Minter) expired(run *v1alpha1.HostRun) *ending {
	switch {
	case token.Unproved(run):
		return &ending{metav1.ConditionFalse, string(decision.ProofFailed), token.NoProof(run)}
	case wasSent(run):
		return &ending{metav1.ConditionFalse, token.Expired, "no node of that name registered in time"}
	default:
		return &ending{metav1.ConditionUnknown, token.Expired, "the token's time is over; the run gets another one"}
	}
}

// registered reports whether the run's node is there, as this host's.
func (m *Minter) registered(ctx context.Context, run *v1alpha1.HostRun) (bool, error) {
	var node corev1.Node
	err := m.Objects.Reader.Get(ctx, client.ObjectKey{Name: run.Spec.NodeName}, &node)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the run's Node: %w", err)
	}
	return node.Spec.ProviderID == "kpssh://"+run.Namespace+"/"+run.Spec.HostRef.Name && !node.CreationTimestamp.Time.Before(run.CreationTimestamp.Time), nil
}

// adopt takes over, once, what an earlier minter issued. What it only recorded is taken away when its
// run comes by.
func (m *Minter) adopt(ctx context.Context) error {
	if m.adopted {
		return nil
	}
	var all v1alpha1.HostRunList
	// Not from a cache, which may lack what was written just before the last minter died.
	if err := m.Objects.Reader.List(ctx, &all); err != nil {
		return fmt.Errorf("listing HostRuns: %w", err)
	}
	for i := range all.Items {
		run := &all.Items[i]
		if !issued(run) || len(m.Namespaces) > 0 && !slices.Contains(m.Namespaces, run.Namespace) {
			continue
		}
		if !m.Book.put(entryOf(run)) {
			log.FromContext(ctx).Info("ALARM: two runs claim one token or node name; the second is not taken over", "run", client.ObjectKeyFromObject(run), "token", run.Status.TokenID)
		}
	}
	m.adopted = true
	m.Metrics.living.Set(float64(m.Book.size()))
	return nil
}

// tell writes an event. What comes from outside is short by then.
func (m *Minter) tell(run *v1alpha1.HostRun, kind, reason, message string) {
	if m.Events != nil {
		m.Events.Eventf(run, nil, kind, reason, "Join", "%.900s", message)
	}
}

func (m *Minter) step(name string) {
	if m.onStep != nil {
		m.onStep(name)
	}
}
