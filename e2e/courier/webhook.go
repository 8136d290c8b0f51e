//go:build linux

package courier

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithoutWebhook takes our admission away until the test ends, as a cluster administrator can.
func (w *World) WithoutWebhook(t testing.TB) {
	t.Helper()
	configurations := w.ControlPlane.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	shipped, err := configurations.Get(t.Context(), "hostwarrant", metav1.GetOptions{})
	must(t, err)
	must(t, configurations.Delete(t.Context(), "hostwarrant", metav1.DeleteOptions{}))
	t.Cleanup(func() {
		shipped.ResourceVersion, shipped.UID = "", ""
		_, err := configurations.Create(context.Background(), shipped, metav1.CreateOptions{})
		must(t, err)
	})
}
