//go:build linux

package join

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// isNext says of runs, as the relay's account can, that they wait for tokens.
func (w *world) isNext(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		said := fmt.Sprintf(`{"status":{"conditions":[{"type":"Delivered","status":"False","reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, token.Pending)
		must(t, w.patch(t, "hostwarrant-relay", name, "status", said))
	}
}

// neverAdmitted: the webhook is gone, and a relay that was taken over says of every run that it is next. The minter judges by itself.
func (w *world) neverAdmitted(t *testing.T) {
	w.WithoutWebhook(t)
	must(t, w.Programs.Relay.Kill())
	w.registers(t, "pool-living", "kpssh://"+pool+"/another")
	w.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: farm}}")
	w.away(t, "host-past", "192.0.2.77")
	t.Run("alone", func(t *testing.T) {
		for name, c := range map[string]struct{ host, node, profile, reason string }{
			"past-living":  {"host-past", "pool-living", profile, "NodeNameTaken"},
			"past-profile": {"host-past", "pool-x", "another", "ProfileNotFound"},
			"past-host":    {"host-of-farm", "pool-x", profile, "HostNotFound"},
			"past-honest":  {"host-past", "pool-past", profile, token.Issued},
		} {
			t.Run(name, func(t *testing.T) {
				w.Run(t, name, c.host, c.profile, func(r *v1alpha1.HostRun) { r.Spec.NodeName = c.node })
				w.isNext(t, name)
				r := w.joined(t, name, c.reason)
				if refused := c.reason != token.Issued; refused != (r.Status.TokenID == "") || refused != (len(w.tokens(t)) == 0) {
					t.Errorf("token %q, Secrets %v", r.Status.TokenID, w.tokens(t))
				}
				w.remove(t, name)
				w.nothingLeft(t)
			})
		}
	})
	t.Run("six at once for one name", func(t *testing.T) { w.sixPastAdmission(t) })
}

// sixPastAdmission: which of them gets a token is a matter of luck. That it is one is not.
func (w *world) sixPastAdmission(t *testing.T) {
	var names []string
	for i := range 6 {
		host := fmt.Sprintf("host-six-%d", i)
		w.away(t, host, fmt.Sprintf("192.0.2.%d", 60+i))
		names = append(names, fmt.Sprintf("past-six-%d", i))
		w.join(t, names[i], host, "pool-past-six")
	}
	w.isNext(t, names...)
	holders := 0
	for _, name := range names {
		r := w.Until(t, name, stepLimit, func(r *v1alpha1.HostRun) bool {
			c := courier.ConditionOf(r, v1alpha1.ConditionJoined)
			return c.Reason == token.Issued || c.Status == metav1.ConditionFalse
		})
		switch c := courier.ConditionOf(r, v1alpha1.ConditionJoined); {
		case c.Reason == token.Issued:
			holders++
		case c.Reason != "NodeNameTaken" || r.Status.TokenID != "":
			t.Errorf("%s is Joined=%s %s: %s, token %q", name, c.Status, c.Reason, c.Message, r.Status.TokenID)
		}
	}
	if all := w.tokens(t); holders != 1 || len(all) != 2 {
		t.Errorf("%d of %d got a token: %v", holders, len(names), all)
	}
	w.remove(t, names...)
	w.nothingLeft(t)
}
