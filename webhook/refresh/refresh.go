package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// FieldManager owns what is refreshed.
const FieldManager = "hostwarrant"

// maxTold bounds the hosts that are remembered as told of.
const maxTold = 100_000

// Refresher refreshes lists. All fields are required.
type Refresher struct {
	Client client.Client
	// Rendered reports whether a list is one that a policy in force rendered.
	Rendered func(lines []string) bool
	Warning  func(ctx context.Context, about corev1.ObjectReference, reason, message string) bool
	// Counts is by result: refreshed, or owned for lists that are somebody else's.
	Counts *prometheus.CounterVec

	mu   sync.Mutex
	told map[types.UID]string // what was said last of a host's list
}

// NewCounts makes and registers the metric.
func NewCounts(registry prometheus.Registerer) (*prometheus.CounterVec, error) {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hostwarrant_trusted_signers_total",
		Help: "Lists of trusted signers in hosts that an earlier policy had rendered, by result: refreshed, or owned by somebody else and left.",
	}, []string{"result"})
	return counts, registry.Register(counts)
}

// Refresh renews the list of a stored host, where it is ours and out of date, and reports whether it wrote.
func (r *Refresher) Refresh(ctx context.Context, s verify.Snapshot, raw json.RawMessage, h *object.Host) (bool, error) {
	if h.ExecMode != object.ExecVerified || len(h.TrustedSigners) == 0 || h.Deleting || !r.Rendered(h.TrustedSigners) {
		return false, nil
	}
	empty := *h
	empty.TrustedSigners = nil
	want, _ := verify.FillSigners(s, &empty)
	if len(want) == 0 || slices.Equal(want, h.TrustedSigners) {
		return false, nil
	}
	var stored struct {
		APIVersion string            `json:"apiVersion"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return false, fmt.Errorf("reading metadata: %v", err)
	}
	if owner, foreign := ownedBySomebody(stored.Metadata.ManagedFields); foreign {
		r.tell(ctx, stored.APIVersion, &stored.Metadata, owner)
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": stored.Metadata.ResourceVersion}, // what was looked at is what is changed
		"spec":     map[string]any{"trustedSigners": want},
	})
	if err != nil {
		return false, err
	}
	host := &unstructured.Unstructured{}
	host.SetAPIVersion(stored.APIVersion)
	host.SetKind(object.KindHost)
	host.SetNamespace(h.Namespace)
	host.SetName(h.Name)
	if err := r.Client.Patch(ctx, host, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return false, err
	}
	r.Counts.WithLabelValues("refreshed").Inc()
	return true, nil
}

// ownedBySomebody names a field manager, other than ours, that owns trustedSigners. What cannot be
// read is somebody's.
func ownedBySomebody(entries []metav1.ManagedFieldsEntry) (string, bool) {
	for _, e := range entries {
		if e.Manager == FieldManager || e.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned); err != nil {
			return e.Manager, true
		}
		if _, ok := owned.Spec["f:trustedSigners"]; ok {
			return e.Manager, true
		}
	}
	return "", false
}

// tell reports, once for a list, that it is out of date and not ours to change.
func (r *Refresher) tell(ctx context.Context, apiVersion string, m *metav1.ObjectMeta, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told == nil || len(r.told) > maxTold {
		r.told = map[types.UID]string{}
	}
	generation := fmt.Sprint(m.Generation)
	if r.told[m.UID] == generation {
		return
	}
	r.told[m.UID] = generation
	r.Counts.WithLabelValues("owned").Inc()
	r.Warning(ctx, corev1.ObjectReference{APIVersion: apiVersion, Kind: object.KindHost, Namespace: m.Namespace, Name: m.Name, UID: m.UID},
		"TrustedSignersOutdated", fmt.Sprintf("spec.trustedSigners is a list of an earlier trust policy, and %q owns it; leave the field out to have it filled, or list the present signers", owner))
}
