//go:build linux

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// PatchOperation is one step of a JSON patch (RFC 6902).
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Edit says what a foreign webhook changes of an object.
type Edit func(object map[string]any) []PatchOperation

// Foreign is somebody else's mutating webhook for SSHJoinProfiles and SSHHosts.
type Foreign struct {
	*hook
	asked atomic.Int64
	edit  Edit
}

// StartForeign installs one under the given name, which decides whether it is asked before or after
// others: the API server goes by the names of the configurations.
func StartForeign(ctx context.Context, cp *lab.ControlPlane, name string, edit Edit) (*Foreign, error) {
	f := &Foreign{edit: edit}
	var ca []byte
	var err error
	if f.hook, ca, err = startHook(ctx, cp, name, f.answer); err != nil {
		return nil, err
	}
	return f, f.configure(ctx, ca)
}

// Asked is how often it was called.
func (f *Foreign) Asked() int64 { return f.asked.Load() }

// Close takes configuration, Service and server away.
func (f *Foreign) Close(ctx context.Context) error {
	client := f.cp.Client().AdmissionregistrationV1().MutatingWebhookConfigurations()
	return errors.Join(gone(client.Delete(ctx, f.name, metav1.DeleteOptions{})), f.close(ctx))
}

func (f *Foreign) configure(ctx context.Context, ca []byte) error {
	none, fail, again := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, admissionregistrationv1.IfNeededReinvocationPolicy
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: f.name + ".example.com", SideEffects: &none, FailurePolicy: &fail, ReinvocationPolicy: &again, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca, Service: &admissionregistrationv1.ServiceReference{Namespace: foreignNamespace, Name: f.name},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{Profiles().Group}, APIVersions: []string{"*"}, Resources: []string{Profiles().Resource, Hosts().Resource},
				},
			}},
		}},
	}
	_, err := f.cp.Client().AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, configuration, metav1.CreateOptions{})
	return err
}

func (f *Foreign) answer(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	object := map[string]any{}
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return nil, err
	}
	f.asked.Add(1)
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if operations := f.edit(object); len(operations) > 0 {
		patch, err := json.Marshal(operations)
		if err != nil {
			return nil, err
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &kind
	}
	return response, nil
}
