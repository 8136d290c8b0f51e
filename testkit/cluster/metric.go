package cluster

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is the value of a gauge or counter, by its name and labels: "name label=value …".
func Metric(t testing.TB, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			full := f.GetName()
			for _, l := range m.GetLabel() {
				full += " " + l.GetName() + "=" + l.GetValue()
			}
			if full == name {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %q", name)
	return 0
}
