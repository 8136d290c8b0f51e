package judge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/fresh"
)

// PolicySource keeps the trust policy in force, by the rules of the webhook: it reads the stored
// policy and what the ledger remembers, live, and lets internal/inforce decide.
type PolicySource struct {
	reader  client.Reader
	anchor  inforce.Anchor
	metrics *Metrics
	log     logr.Logger
	reads   fresh.Reads[string, inForce]

	mu       sync.Mutex // guards what is below
	keeper   *inforce.Keeper
	settled  bool
	differs  bool
	identity bool // the cluster's UID was asked for
}

// inForce is what a look at what is stored came to.
type inForce struct {
	policy *trustpolicy.Policy
	fault  error
}

// sourceCluster names the stored policy in logs.
const sourceCluster = "cluster"

// NewPolicySource reads with reader and trusts the anchor alone.
func NewPolicySource(reader client.Reader, anchor inforce.Anchor, metrics *Metrics, log logr.Logger) *PolicySource {
	metrics.anchor(anchor)
	return &PolicySource{reader: reader, anchor: anchor, metrics: metrics, log: log, keeper: inforce.New(anchor)}
}

// Snapshot looks at the stored policy, together with all who asked meanwhile, and gives what is in force.
// The error carries a Reason where the policy was read and nothing may be decided by it, and none where the
// API server did not answer.
func (s *PolicySource) Snapshot(ctx context.Context, now time.Time) (verify.Snapshot, error) {
	p, err := s.reads.Do(ctx, object.TrustPolicyName, func(ctx context.Context) (inForce, error) { return s.look(ctx, now) })
	if err != nil {
		return verify.Snapshot{}, err
	}
	return verify.Snapshot{Policy: p.policy, ClusterID: s.anchor.ClusterID, Now: now}, p.fault
}

// look reads what is stored and says what is in force by it.
func (s *PolicySource) look(ctx context.Context, now time.Time) (inForce, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.read(ctx, now); err != nil {
		return inForce{}, err
	}
	return inForce{policy: s.keeper.Current(), fault: s.keeper.Fault()}, nil
}

// read hands everything that is stored to the keeper.
func (s *PolicySource) read(ctx context.Context, now time.Time) error {
	if err := s.identify(ctx); err != nil {
		return err
	}
	if err := s.remember(ctx); err != nil {
		return err
	}
	stored := NewObject(object.GroupHostwarrant, "v1alpha1", object.KindTrustPolicy)
	err := s.reader.Get(ctx, client.ObjectKey{Name: object.TrustPolicyName}, stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the trust policy: %w", err)
	}
	if err == nil {
		if err := s.offer(stored, now); err != nil {
			return err
		}
	}
	if !s.settled {
		s.settled = true
		for _, e := range s.keeper.Settle(now) {
			s.report(e)
		}
	}
	return nil
}

func (s *PolicySource) offer(stored *unstructured.Unstructured, now time.Time) error {
	raw, err := stored.MarshalJSON()
	if err != nil {
		return fmt.Errorf("writing the trust policy as JSON: %v", err)
	}
	_, e := s.keeper.Offer(sourceCluster, raw, now)
	s.report(e)
	return nil
}

// identify reads the cluster's UID once; where the relay may not, the cluster's id alone counts.
func (s *PolicySource) identify(ctx context.Context) error {
	if s.identity {
		return nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := s.reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the cluster's UID: %w", err)
	}
	s.keeper.Identify(string(namespace.UID))
	s.identity = true
	return nil
}

// remember reads what the cluster remembers of policies, and alarms when its anchor is another.
func (s *PolicySource) remember(ctx context.Context) error {
	var l v1alpha1.Ledger
	err := s.reader.Get(ctx, client.ObjectKey{Name: v1alpha1.LedgerPolicyName}, &l)
	absent := apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
	if err != nil && !absent {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	if absent || l.Spec.Policy == nil {
		return nil // nothing is remembered; what was read before still is
	}
	s.keeper.Remember(record.Policy(l.Spec.Policy))
	if differs := s.keeper.AnchorDiffers(); differs != s.differs {
		s.differs = differs
		s.metrics.anchorDiffers(differs)
		s.log.Info("ALARM: the anchor and the one in the ledger differ, or do no more", "differ", differs,
			"anchor", s.anchor.Digest, "ledger", l.Spec.Policy.AnchorDigest, "clusterID", s.anchor.ClusterID)
	}
	return nil
}

// report says loudly what became of an offer.
func (s *PolicySource) report(e inforce.Event) {
	if r := e.Refused; r != nil {
		s.log.Info("trust policy refused; what is in force stays", "message", r.Message, "offered", r.Offered, "inForce", r.InForce)
	}
	if p := e.Loaded; p != nil {
		s.metrics.policy(p)
		s.log.Info("trust policy in force", "version", p.Version, "digest", p.Digest, "expires", p.Expires)
	}
	if len(e.Reductions) > 0 {
		s.log.Info("the new trust policy lets less through", "number", len(e.Reductions), "reductions", e.Reductions[:min(len(e.Reductions), maxReductions)])
	}
}

// maxReductions bounds how many reductions one log line lists.
const maxReductions = 64

// Ready says why no run can be judged but to be refused, or nil.
func (s *PolicySource) Ready(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeper.Ready(now)
}

// Keep looks at the stored policy until ctx ends, so that a replica that does not
// lead is ready to.
func (s *PolicySource) Keep(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if _, err := s.Snapshot(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Info("no trust policy to decide by", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
