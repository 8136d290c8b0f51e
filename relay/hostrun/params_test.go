package hostrun

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

func TestOnlyThePolicySaysWhichClusterToJoin(t *testing.T) {
	ca := []byte("-----BEGIN CERTIFICATE-----\n")
	sum := digest(ca)[len("sha256:"):]
	policy := func(endpoints, sums []string) *trustpolicy.Policy {
		return &trustpolicy.Policy{Clusters: map[string]trustpolicy.Cluster{"prod-1": {Endpoints: endpoints, CASHA256: sums}}}
	}
	one := []string{"https://10.0.0.5:6443"}
	cases := map[string]struct {
		policy *trustpolicy.Policy
		id     string
		want   Cluster
	}{
		"one endpoint and our CA":     {policy(one, []string{"ff", sum}), "prod-1", Cluster{one[0], ca}},
		"two endpoints":               {policy([]string{"https://a", "https://b"}, []string{sum}), "prod-1", Cluster{"", ca}},
		"no endpoint":                 {policy(nil, []string{sum}), "prod-1", Cluster{"", ca}},
		"our CA is not the policy's":  {policy(one, []string{"ff"}), "prod-1", Cluster{one[0], nil}},
		"the policy lists no CA":      {policy(one, nil), "prod-1", Cluster{one[0], nil}},
		"another cluster":             {policy(one, []string{sum}), "prod-2", Cluster{}},
		"no policy":                   {nil, "prod-1", Cluster{}},
		"a policy that names nothing": {&trustpolicy.Policy{}, "prod-1", Cluster{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ClusterOf(c.policy, c.id, ca)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestRunTime(t *testing.T) {
	cases := map[string]struct {
		phase  v1alpha1.HostRunPhase
		stated string
		want   time.Duration
	}{
		"join":                    {"join", "", 300 * time.Second},
		"leave":                   {"leave", "", 180 * time.Second},
		"install":                 {"install", "", 600 * time.Second},
		"uninstall":               {"uninstall", "", 600 * time.Second},
		"more":                    {"join", "1h5m", 65 * time.Minute},
		"less changes nothing":    {"join", "10s", 300 * time.Second},
		"too much":                {"join", "100h", maxScriptTime},
		"nonsense":                {"join", "soon", 300 * time.Second},
		"negative":                {"join", "-1h", 300 * time.Second},
		"a phase that nobody has": {"", "", 600 * time.Second},
	}
	for name, c := range cases {
		if got := runTime(c.phase, c.stated, nil); got != c.want+runMargin {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestDelayGrowsWithinBounds(t *testing.T) {
	start := time.Unix(1000, 0)
	for passed, want := range map[time.Duration]time.Duration{0: minDelay, 40 * time.Second: 10 * time.Second, time.Hour: maxDelay} {
		low, high := delay(start, start.Add(passed), 0), delay(start, start.Add(passed), 1)
		if low != want*3/4 || high != want*5/4 {
			t.Errorf("after %s: %s to %s", passed, low, high)
		}
	}
}
