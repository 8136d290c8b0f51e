package notice

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// maxCondition is the limit of a condition's message (metav1.Condition).
const maxCondition = 4096

// Conditions writes conditions of the trust policy, each by its own field manager, so that none takes
// another away.
type Conditions struct {
	Client client.Client
	// Reader must not be a cache: what was written a moment ago would be written again.
	Reader client.Reader
	Now    func() time.Time
}

// Set writes a condition if it says something new, and reports whether status or reason changed and
// whether it wrote. Without a trust policy there is nowhere to write.
func (c *Conditions) Set(ctx context.Context, condition metav1.Condition) (changed, wrote bool, err error) {
	var policy v1alpha1.TrustPolicy
	if err := c.Reader.Get(ctx, types.NamespacedName{Name: v1alpha1.TrustPolicyName}, &policy); err != nil {
		return false, false, client.IgnoreNotFound(err)
	}
	condition.Message = decision.OneLine(condition.Message, maxCondition)
	condition.ObservedGeneration = policy.Generation
	condition.LastTransitionTime = metav1.NewTime(c.Now())
	was := apimeta.FindStatusCondition(policy.Status.Conditions, condition.Type)
	changed = was == nil || was.Status != condition.Status || was.Reason != condition.Reason
	if !changed && was.Message == condition.Message {
		return false, false, nil
	}
	if was != nil && was.Status == condition.Status {
		condition.LastTransitionTime = was.LastTransitionTime
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "TrustPolicy",
		"metadata": map[string]any{"name": v1alpha1.TrustPolicyName},
		"status":   map[string]any{"conditions": []metav1.Condition{condition}},
	})
	if err != nil {
		return false, false, err
	}
	err = c.Client.Status().Patch(ctx, &policy, client.RawPatch(types.ApplyPatchType, body),
		client.FieldOwner("hostwarrant-"+strings.ToLower(condition.Type)), client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	return changed, err == nil, err
}
