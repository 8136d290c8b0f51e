package policy

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestConditionSaysWhetherTheStoredPolicyMayBeInForce(t *testing.T) {
	f := newFixture(t)
	r := &StatusReconciler{Anchor: f.holder.anchor, Now: testkit.Now}
	for name, c := range map[string]struct {
		raw    []byte
		status metav1.ConditionStatus
		reason decision.Reason
		again  time.Duration
	}{
		"in force":              {f.object(t, f.document(), f.root), metav1.ConditionTrue, decision.Verified, time.Hour},
		"in force for a minute": {f.object(t, f.document("2027-05-29T00:00:00Z", "2026-11-30T12:01:00Z"), f.root), metav1.ConditionTrue, decision.Verified, 61 * time.Second},
		"warning for a minute":  {f.object(t, f.document("mode: enforce", "mode: warn\nwarnUntil: \"2026-11-30T12:01:00Z\""), f.root), metav1.ConditionTrue, decision.Verified, 61 * time.Second},
		"not yet valid":         {f.object(t, f.document("2026-11-29", "2026-12-05"), f.root), metav1.ConditionFalse, decision.NotYetValid, time.Minute},
		"unsigned":              {f.object(t, f.document()), metav1.ConditionFalse, decision.PolicyUnsigned, time.Minute},
		"unreadable":            {[]byte("{"), metav1.ConditionFalse, decision.Malformed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			condition, again := r.judge(c.raw)
			if condition.Status != c.status || condition.Reason != string(c.reason) || again != c.again || condition.Message == "" {
				t.Errorf("%+v, again in %s; want %s %s, %s", condition, again, c.status, c.reason, c.again)
			}
		})
	}
}

func TestConditionSaysUntilWhenThePolicyOnlyWarns(t *testing.T) {
	f := newFixture(t)
	raw := f.object(t, f.document("mode: enforce", "mode: warn\nwarnUntil: \"2026-12-02T00:00:00Z\""), f.root)
	for now, want := range map[time.Time]string{
		testkit.Now(): "version 3, mode warn until 2026-12-02T00:00:00Z, expires ",
		time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC): "version 3, mode enforce, expires ",
	} {
		r := &StatusReconciler{Anchor: f.holder.anchor, Now: func() time.Time { return now }}
		if condition, _ := r.judge(raw); !strings.HasPrefix(condition.Message, want) {
			t.Errorf("%s: %s; want %s…", now, condition.Message, want)
		}
	}
}
