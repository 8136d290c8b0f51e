package hostrun

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

// A relay that slept while another one brought the run to its end writes nothing over that, whatever it has to tell.
func TestALateRelayWritesNothingOverAnEnd(t *testing.T) {
	unknown := envelope.Unknown
	for name, told := range map[string]delivery.Report{
		"cut":         failed(delivery.Cut, unknown, unknown),
		"busy":        failed(delivery.Busy, 12, unknown),
		"another end": failed(delivery.ScriptFailed, 10, 1),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.courier.report = told
			w.courier.onDeliver = func() {
				other := w.get()
				applyReport(other, succeeded(), w.now)
				if err := w.client.Status().Update(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			w.start()
			w.reconcile()
			w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
			w.want(v1alpha1.ConditionDelivered, isTrue, "Delivered", "")
			w.wantSent(1)
		})
	}
}
