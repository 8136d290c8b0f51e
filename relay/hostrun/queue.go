package hostrun

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/relay/schedule"
)

// Request is one HostRun, and what its turn depends on, which no HostRun can change.
type Request struct {
	types.NamespacedName
	Host, Profile string
}

func requestOf(run *v1alpha1.HostRun) Request {
	return Request{NamespacedName: client.ObjectKeyFromObject(run), Host: run.Spec.HostRef.Name, Profile: run.Spec.ProfileRef.Name}
}

func (r Request) claim() schedule.Claim {
	return schedule.Claim{Namespace: r.Namespace, Host: r.Host, Profile: r.Profile}
}

// Line is the queue of runs, in which others may take turns on hosts as well.
type Line = schedule.Line[Request]

// NewLine is a Line for that many hosts at once.
func NewLine(concurrent int) *Line { return schedule.New(concurrent, Request.claim) }

// Retries after the API server gave no answer, or a conflict.
const (
	minErrorDelay = 250 * time.Millisecond
	maxErrorDelay = time.Minute
)

// Setup registers the controller: a worker for each of the line's concurrent slots.
func (r *Reconciler) Setup(m ctrl.Manager, line *Line, concurrent int) error {
	limiter := jittered{workqueue.NewTypedItemExponentialFailureRateLimiter[Request](minErrorDelay, maxErrorDelay)}
	err := builder.TypedControllerManagedBy[Request](m).
		Named("hostrun").
		Watches(&v1alpha1.HostRun{}, handler.TypedEnqueueRequestsFromMapFunc(toRequest), builder.WithPredicates(news{})).
		WithOptions(controller.TypedOptions[Request]{
			MaxConcurrentReconciles: concurrent,
			RateLimiter:             limiter,
			NewQueue: func(name string, limiter workqueue.TypedRateLimiter[Request]) workqueue.TypedRateLimitingInterface[Request] {
				delays := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Request]{Name: name, Queue: line})
				return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[Request]{DelayingQueue: delays})
			},
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of HostRuns: %w", err)
	}
	return nil
}

func toRequest(_ context.Context, o client.Object) []Request {
	run, ok := o.(*v1alpha1.HostRun)
	if !ok || isFinished(run) {
		return nil
	}
	return []Request{requestOf(run)}
}

// jittered spreads the retries of many after one fault that met all.
type jittered struct {
	workqueue.TypedRateLimiter[Request]
}

func (j jittered) When(r Request) time.Duration { return wait.Jitter(j.TypedRateLimiter.When(r), 0.5) }

// news lets through what somebody else did to a run: our own writes of its status are no news.
type news struct{ predicate.Funcs }

// Update is news when the spec changed, the run was deleted, or the minter wrote its part of the status.
func (news) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.HostRun)
	after, ok2 := e.ObjectNew.(*v1alpha1.HostRun)
	if !ok || !ok2 {
		return false
	}
	return before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		mintersOf(before) != mintersOf(after)
}

// Delete is no news: who is gone is no longer run.
func (news) Delete(event.DeleteEvent) bool { return false }
