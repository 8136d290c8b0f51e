package bundles

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// How long the controller waits with a bundle whose objects change, so that many changes are one look;
// a big bundle waits twice as long as a look at it takes, so that it never has more than a third of the
// time. What nobody signed changes a count alone.
const (
	settle     = 100 * time.Millisecond
	settleJunk = 5 * time.Second
)

// How often the controller asks which policy is in force, how often it looks at what is stored of each
// composite though no watch told of a change, and how many bundles it looks at at once.
const (
	lookEvery    = 500 * time.Millisecond
	inspectEvery = time.Minute
	workers      = 4
)

// remembered is how many verdicts about carriers are kept beside those of stored objects.
const remembered = 20_000

// Trust gives what objects are judged by.
type Trust interface {
	// Snapshot is what is trusted at now; the error says why nothing can be judged.
	Snapshot(now time.Time) (verify.Snapshot, error)
}

// Ledger remembers the versions of fragments that were seen stored.
type Ledger interface {
	verify.Ledger
	// Loaded reports whether the ledger has been read.
	Loaded() bool
	// Slots are the marks of one bundle.
	Slots(namespace, bundle string) map[ledger.Slot]ledger.SlotMark
	// RecordSlots writes marks that an accepted set moved.
	RecordSlots(ctx context.Context, s verify.Snapshot, marks map[ledger.Slot]ledger.SlotMark) error
}

// Events are told of transitions; each reports whether it wrote.
type Events interface {
	Normal(ctx context.Context, about corev1.ObjectReference, reason, message string) bool
	Warning(ctx context.Context, about corev1.ObjectReference, reason, message string) bool
}

// Conditions are those of the trust policy.
type Conditions interface {
	Set(ctx context.Context, c metav1.Condition) (changed, wrote bool, err error)
}

// Controller keeps composites. All fields are required.
type Controller struct {
	Cache  cache.Cache
	Client client.Client
	// Reader must not be a cache.
	Reader     client.Reader
	Mapper     meta.RESTMapper
	Get        Getter
	Judge      Judge
	Trust      Trust
	Ledger     Ledger
	Events     Events
	Conditions Conditions
	Metrics    *Metrics
	Log        *slog.Logger
	Now        func() time.Time
	// Interval is how often all metadata is listed again, and how often it is said again that no rules
	// are admitted.
	Interval time.Duration

	index      *index
	reader     *reader
	composites *publisher
	queue      workqueue.TypedRateLimitingInterface[item]
	rules      rulesState

	mu     sync.Mutex
	states map[ID]*state
	// ruleCounts are those of the last look at rules.
	ruleCounts RuleCounts
}

// item is what is looked at: a bundle, or all Rules and bindings together.
type item struct {
	ID
	rules bool
}

// Init prepares a Controller whose fields are set.
func (c *Controller) Init() *Controller {
	c.index, c.states = newIndex(), map[ID]*state{}
	verdicts := bundle.NewVerdicts(remembered)
	c.reader = newReader(c.Get, func(s verify.Snapshot, o *fragment.Object) (*fragment.Fragment, *decision.Error) {
		s.Ledger = nil // versions are judged each time, by Compose
		found := verdicts.Of(bundle.KeyOf(o, s.Policy.Digest), func() bundle.Verified {
			f, refusal := c.Judge(s, o)
			return bundle.Verified{Fragment: f, Refusal: refusal}
		})
		return found.Fragment, found.Refusal
	}, c.Metrics)
	c.composites = &publisher{client: c.Client, reader: c.Reader, mapper: c.Mapper}
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](200*time.Millisecond, time.Minute))
	return c
}

// NeedLeaderElection says that one replica keeps composites.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start keeps composites until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, kind := range kinds() {
		all.Go(func() { c.follow(ctx, kind) })
	}
	all.Go(func() { c.tick(ctx) })
	for range workers {
		all.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	all.Wait()
	return nil
}

// next looks at one item, and reports whether there may be more.
func (c *Controller) next(ctx context.Context) bool {
	i, over := c.queue.Get()
	if over {
		return false
	}
	defer c.queue.Done(i)
	again, err := c.look(ctx, i)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.Log.Warn("looking at a bundle; it is tried again", "namespace", i.Namespace, "bundle", i.Name, "rules", i.rules, "error", err)
		c.queue.AddRateLimited(i)
	case again:
		c.queue.AddRateLimited(i)
	default:
		c.queue.Forget(i)
	}
	return true
}

// look says whether to look again soon although nothing changed.
func (c *Controller) look(ctx context.Context, i item) (again bool, err error) {
	if !c.Ledger.Loaded() || !c.synced() {
		return true, nil // half a picture looks like a cluster that holds the other half no more
	}
	now := c.Now()
	s, err := c.Trust.Snapshot(now)
	if err == nil {
		err = usable(s)
	}
	if err != nil {
		return false, c.unjudged(ctx, i, decision.From(err))
	}
	s.Ledger = c.Ledger
	if i.rules {
		return c.lookAtRules(ctx, s)
	}
	return c.lookAtBundle(ctx, s, i.ID)
}

// usable says why nothing can be judged by s, or nil.
func usable(s verify.Snapshot) error {
	switch {
	case s.Policy == nil:
		return decision.Errorf(decision.PolicyUnavailable, "no trust policy is in force")
	case s.Policy.Expired(s.Now):
		return decision.Errorf(decision.PolicyExpired, "the trust policy expired at %s", s.Policy.Expires.Format(time.RFC3339))
	default:
		return nil
	}
}

// tick looks at everything when what is trusted changes, at what is stored of composites each minute,
// and at what watches may have missed after each Interval.
func (c *Controller) tick(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	start := c.Now()
	was, inspect, relist := "", start.Add(inspectEvery), start.Add(c.Interval)
	for {
		now := c.Now()
		if trusted := c.trusted(now); trusted != was || !now.Before(inspect) {
			was, inspect = trusted, now.Add(inspectEvery)
			c.everything()
		}
		if !now.Before(relist) {
			relist = now.Add(c.Interval)
			for _, kind := range kinds() {
				if err := c.relist(ctx, kind); err != nil && ctx.Err() == nil {
					c.Log.Warn("looking for what watches missed; it is tried again", "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// trusted names what objects are judged by at now.
func (c *Controller) trusted(now time.Time) string {
	s, err := c.Trust.Snapshot(now)
	if err == nil {
		err = usable(s)
	}
	if err != nil {
		return string(decision.From(err).Reason)
	}
	return s.Policy.Digest
}

// everything is looked at, and what is stored of composites too.
func (c *Controller) everything() {
	c.mu.Lock()
	for id, st := range c.states {
		st.inspect.Store(true)
		c.queue.Add(item{ID: id})
	}
	c.mu.Unlock()
	for _, id := range c.index.bundles(fragment.KindContainerProfile) {
		c.queue.Add(item{ID: id})
	}
	c.queue.Add(item{rules: true})
}
