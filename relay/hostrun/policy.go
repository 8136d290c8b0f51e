package hostrun

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// PolicySource keeps the trust policy in force. It verifies what is stored by the
// same engine as the webhook; a stored policy that does not verify, or is gone,
// leaves the one in force as it is.
type PolicySource struct {
	reader client.Reader
	anchor verify.Anchor
	log    logr.Logger

	mu      sync.Mutex
	current *trustpolicy.Policy
	seen    string // of the stored object that was judged last
}

// NewPolicySource reads the TrustPolicy with reader and trusts the anchor alone.
func NewPolicySource(reader client.Reader, anchor verify.Anchor, log logr.Logger) *PolicySource {
	return &PolicySource{reader: reader, anchor: anchor, log: log}
}

// Snapshot looks at the stored policy and gives what is in force.
func (s *PolicySource) Snapshot(ctx context.Context, now time.Time) (verify.Snapshot, error) {
	stored := newObject(object.GroupHostwarrant, "v1alpha1", object.KindTrustPolicy)
	err := s.reader.Get(ctx, client.ObjectKey{Name: object.TrustPolicyName}, stored)
	if client.IgnoreNotFound(err) != nil {
		return verify.Snapshot{}, fmt.Errorf("reading the trust policy: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.take(stored, now)
	}
	return verify.Snapshot{Policy: s.current, ClusterID: s.anchor.ClusterID, Now: now}, nil
}

// take judges a stored policy once for each version of the object.
func (s *PolicySource) take(stored *unstructured.Unstructured, now time.Time) {
	seen := string(stored.GetUID()) + "/" + stored.GetResourceVersion()
	if seen == s.seen {
		return
	}
	next, d := s.judge(stored, now)
	if !d.Allowed() && s.current == nil {
		s.current = s.floor(stored, d)
	}
	if !d.Allowed() {
		// The next look may judge otherwise: a policy can be issued for later.
		s.log.Info("trust policy refused", "reason", d.Reason, "message", d.Message())
		return
	}
	s.seen = seen
	if s.current == nil || s.current.Digest != next.Digest {
		s.log.Info("trust policy in force", "version", next.Version, "digest", next.Digest, "expires", next.Expires, "notEnforced", next.NotEnforced())
	}
	s.current = next
}

func (s *PolicySource) judge(stored *unstructured.Unstructured, now time.Time) (*trustpolicy.Policy, decision.Decision) {
	t, err := parsePolicy(stored)
	if err != nil {
		return nil, decision.From(err).Denied(object.KindTrustPolicy, stored.GetName())
	}
	return verify.TrustPolicy(s.anchor, s.current, t, now)
}

// floor is the stored policy where it has merely expired: everything is refused by
// it, and an older one cannot take its place.
func (s *PolicySource) floor(stored *unstructured.Unstructured, refused decision.Decision) *trustpolicy.Policy {
	t, err := parsePolicy(stored)
	if err != nil {
		return nil
	}
	return verify.Floor(s.anchor, t, refused)
}

func parsePolicy(stored *unstructured.Unstructured) (*object.TrustPolicy, error) {
	raw, err := stored.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return object.ParseTrustPolicy(raw)
}

// Loaded reports whether there is a policy in force at now: one that has expired
// is held, but grants nothing.
func (s *PolicySource) Loaded(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil && !s.current.Expired(now)
}

// Keep looks at the stored policy until ctx ends, so that a replica that does not
// lead is ready to.
func (s *PolicySource) Keep(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if _, err := s.Snapshot(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Info("trust policy not read", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func newObject(group, version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(group + "/" + version)
	u.SetKind(kind)
	return u
}

// isNotFound also holds for a kind that the cluster does not have.
func isNotFound(err error) bool { return apierrors.IsNotFound(err) }
