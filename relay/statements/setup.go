package statements

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

const (
	// visitors is how many hosts are visited at once, within the limit over all hosts.
	visitors = 32
	// tallyEvery is how often it is counted how far statements got.
	tallyEvery = 10 * time.Second
	// kindsWait is how long a cluster may take to get the kinds; runs need not wait for them.
	kindsWait = 24 * time.Hour
	// Retries after the API server gave no answer.
	minErrorDelay, maxErrorDelay = time.Second, time.Minute
)

// Setup registers the controller of SSHHosts, and the count. Both run where the relay leads.
func (c *Courier) Setup(m ctrl.Manager) error {
	all := make(chan event.GenericEvent)
	everyHost := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return c.everyHost(ctx) })
	stale := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		c.Source.Stale()
		return c.everyHost(ctx)
	})
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
	err := ctrl.NewControllerManagedBy(m).
		Named("statements").
		For(hostMetadata(), builder.OnlyMetadata, builder.WithPredicates(changed)).
		Watches(&v1alpha1.HostStatement{}, stale, builder.OnlyMetadata, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(all, everyHost)).
		WatchesRawSource(source.Channel(c.heard, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: visitors,
			CacheSyncTimeout:        kindsWait,
			RateLimiter:             jittered{workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minErrorDelay, maxErrorDelay)},
		}).
		Complete(c)
	if err != nil {
		return err
	}
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error { return c.count(ctx, all) }))
}

// jittered spreads the retries of many after one fault that met all.
type jittered struct {
	workqueue.TypedRateLimiter[reconcile.Request]
}

func (j jittered) When(r reconcile.Request) time.Duration {
	return wait.Jitter(j.TypedRateLimiter.When(r), 0.5)
}

// everyHost is asked for when the roots' words changed: who knows them costs a look into memory.
func (c *Courier) everyHost(ctx context.Context) []reconcile.Request {
	hosts := hostList()
	if err := c.Client.List(ctx, hosts); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing SSHHosts; those without runs hear the news at their next look")
		return nil
	}
	var all []reconcile.Request
	for i := range hosts.Items {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: hosts.Items[i].Namespace, Name: hosts.Items[i].Name}})
	}
	return all
}

// count counts until ctx ends, and sends for every host where a new policy made other words of what is stored.
func (c *Courier) count(ctx context.Context, all chan<- event.GenericEvent) error {
	ticker := time.NewTicker(tallyEvery)
	defer ticker.Stop()
	var seen uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := c.Tally(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).WithName("statements").Info("counting how far statements got", "error", err.Error())
			continue
		}
		_, version, err := c.Source.Words(ctx)
		if err != nil || version == seen {
			continue
		}
		seen = version
		select {
		case <-ctx.Done():
		case all <- event.GenericEvent{Object: &v1alpha1.HostStatement{}}:
		}
	}
}
