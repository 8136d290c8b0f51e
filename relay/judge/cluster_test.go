package judge

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

func TestOnlyThePolicySaysWhichClusterToJoin(t *testing.T) {
	ca := []byte("-----BEGIN CERTIFICATE-----\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(ca))
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
