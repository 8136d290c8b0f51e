package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// values gathers every sample of counters and gauges by name and labels.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestDecisionsAreCountedInBoundedSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := New(registry, testkit.Now)
	if err != nil {
		t.Fatal(err)
	}
	m.Decided("SSHHost", "deny", decision.RawRefused, time.Millisecond, false)
	m.Decided("SSHHost", "deny", decision.RawRefused, time.Millisecond, true)
	for i := range 100 {
		m.Decided(fmt.Sprintf("Kind%d", i), "deny", decision.KindMismatch, time.Millisecond, false)
	}
	m.Canary("SSHHost")
	m.Canary("Kind1")
	m.Unread(decision.TooLarge)
	m.AnchorDiffers(true)
	m.PolicyRefused(decision.PolicyUnsigned)
	signer, root := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	m.PolicyLoaded(testkit.Policy(t, testkit.PolicyDocument(signer), root))
	want := map[string]float64{
		"hostwarrant_decisions_total kind=SSHHost outcome=deny reason=RawRefused": 1,
		"hostwarrant_decisions_total kind=other outcome=deny reason=KindMismatch": 100,
		"hostwarrant_decision_seconds":                                            102,
		"hostwarrant_policy_version":                                              3,
		"hostwarrant_policy_expiry_timestamp_seconds":                             float64(time.Date(2027, 5, 29, 0, 0, 0, 0, time.UTC).Unix()),
		"hostwarrant_policy_reload_refused_total":                                 1,
		"hostwarrant_policy_expires_in_seconds":                                   float64(time.Date(2027, 5, 29, 0, 0, 0, 0, time.UTC).Unix() - testkit.Now().Unix()),
		"hostwarrant_canary_total kind=SSHHost":                                   1,
		"hostwarrant_canary_total kind=other":                                     1,
		"hostwarrant_reviews_unread_total reason=TooLarge":                        1,
		"hostwarrant_anchor_differs":                                              1,
	}
	if diff := cmp.Diff(want, values(t, registry)); diff != "" {
		t.Error(diff)
	}
}

func TestTheCountdownIsTakenWhenItIsRead(t *testing.T) {
	registry, now := prometheus.NewRegistry(), testkit.Now()
	m, err := New(registry, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	const name = "hostwarrant_policy_expires_in_seconds"
	if got := values(t, registry)[name]; got != 0 {
		t.Errorf("without a policy: %v", got)
	}
	p := testkit.Policy(t, testkit.PolicyDocument(testkit.NewSigner(t, "ed25519")), testkit.NewSigner(t, "ed25519"))
	m.PolicyLoaded(p)
	for _, left := range []time.Duration{time.Hour, 0, -time.Minute} {
		if now = p.Expires.Add(-left); values(t, registry)[name] != left.Seconds() {
			t.Errorf("%s before the end: %v", left, values(t, registry)[name])
		}
	}
	m.AnchorDiffers(true)
	m.AnchorDiffers(false)
	if values(t, registry)["hostwarrant_anchor_differs"] != 0 {
		t.Error("the alarm does not end")
	}
}

func TestMetricsCannotBeRegisteredTwice(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := New(registry, testkit.Now); err != nil {
		t.Fatal(err)
	}
	if _, err := New(registry, testkit.Now); err == nil {
		t.Error("registered twice")
	}
}
