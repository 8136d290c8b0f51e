//go:build linux

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// Gate is a webhook that stands between the relay and the status of HostRuns: it holds a write where a test wants
// the relay to be stopped or killed, just before or just after it is stored. What nobody wants held passes.
type Gate struct {
	*hook
	mu   sync.Mutex
	held []*Held
}

// Held are the writes that a test holds.
type Held struct {
	holds    func(*v1alpha1.HostRun) bool
	arrived  chan struct{}
	once     sync.Once
	released chan struct{}
}

// gateTimeout is the longest that the API server waits for a webhook.
const gateTimeout = 30

// StartGate installs one.
func StartGate(ctx context.Context, cp *lab.ControlPlane, name string) (*Gate, error) {
	g := &Gate{}
	var ca []byte
	var err error
	if g.hook, ca, err = startHook(ctx, cp, name, g.pass); err != nil {
		return nil, err
	}
	none, fail, seconds := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, int32(gateTimeout)
	_, err = cp.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name + ".example.com", SideEffects: &none, FailurePolicy: &fail, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca, Service: &admissionregistrationv1.ServiceReference{Namespace: foreignNamespace, Name: name},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{v1alpha1.GroupVersion().Group}, APIVersions: []string{"*"}, Resources: []string{"hostruns/status"},
				},
			}},
		}},
	}, metav1.CreateOptions{})
	return g, err
}

// Hold holds every write from now on that would store such a run, until Release.
func (g *Gate) Hold(holds func(*v1alpha1.HostRun) bool) *Held {
	h := &Held{holds: holds, arrived: make(chan struct{}), released: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = append(g.held, h)
	return h
}

// Arrived is closed when there is a write that is held.
func (h *Held) Arrived() <-chan struct{} { return h.arrived }

// Release lets what is held pass, if whoever wrote it still waits, and holds nothing more.
func (h *Held) Release() { close(h.released) }

// Close takes configuration, Service and server away.
func (g *Gate) Close(ctx context.Context) error {
	client := g.cp.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	return errors.Join(gone(client.Delete(ctx, g.name, metav1.DeleteOptions{})), g.close(ctx))
}

func (g *Gate) pass(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	var run v1alpha1.HostRun
	if err := json.Unmarshal(request.Object.Raw, &run); err != nil {
		return nil, err
	}
	g.mu.Lock()
	held := append([]*Held(nil), g.held...)
	g.mu.Unlock()
	for _, h := range held {
		if h.holds(&run) {
			h.once.Do(func() { close(h.arrived) })
			<-h.released
		}
	}
	return &admissionv1.AdmissionResponse{Allowed: true}, nil
}
