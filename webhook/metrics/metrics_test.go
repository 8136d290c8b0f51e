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
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.Decided("SSHHost", "deny", decision.RawRefused, time.Millisecond, false)
	m.Decided("SSHHost", "deny", decision.RawRefused, time.Millisecond, true)
	for i := range 100 {
		m.Decided(fmt.Sprintf("Kind%d", i), "deny", decision.KindMismatch, time.Millisecond, false)
	}
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
	}
	if diff := cmp.Diff(want, values(t, registry)); diff != "" {
		t.Error(diff)
	}
}

func TestMetricsCannotBeRegisteredTwice(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := New(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := New(registry); err == nil {
		t.Error("registered twice")
	}
}
