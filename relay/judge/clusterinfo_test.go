package judge

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// The ConfigMap chooses among what the policy lists; it never adds to that.
func TestClusterInfoChoosesAmongWhatThePolicyLists(t *testing.T) {
	const a, b = "https://a:6443", "https://b:6443"
	own, other := []byte("own"), []byte("other")
	sum := func(ca []byte) string { return fmt.Sprintf("%x", sha256.Sum256(ca)) }
	info := func(server string, ca []byte) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster: {server: %q, certificate-authority-data: %s}\n", server, base64.StdEncoding.EncodeToString(ca))
	}
	both := []string{a, b}
	for name, c := range map[string]struct {
		endpoints, sums []string
		info            string
		want            Cluster
	}{
		"one of the endpoints":         {both, []string{sum(own)}, info(b, other), Cluster{b, own}},
		"an endpoint of nobody":        {both, []string{sum(own)}, info("https://evil:6443", other), Cluster{"", own}},
		"a CA of the policy":           {both, []string{sum(other)}, info(a, other), Cluster{a, other}},
		"a CA of nobody":               {both, []string{sum(other)}, info(a, []byte("evil")), Cluster{a, nil}},
		"both CAs: our own":            {both, []string{sum(own), sum(other)}, info(a, other), Cluster{a, own}},
		"one endpoint needs no choice": {[]string{a}, []string{sum(own)}, info(b, other), Cluster{a, own}},
		"one endpoint, and not our CA": {[]string{a}, []string{sum(other)}, info(b, other), Cluster{a, other}},
		"no kubeconfig":                {both, []string{sum(own)}, "{", Cluster{"", own}},
		"a kubeconfig of two clusters": {both, []string{sum(own)}, info(a, other) + "- name: two\n  cluster: {server: \"" + b + "\"}\n", Cluster{"", own}},
		"no ConfigMap":                 {both, []string{sum(own)}, "", Cluster{"", own}},
		"a policy that lists nothing":  {nil, nil, info(a, own), Cluster{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &trustpolicy.Policy{Clusters: map[string]trustpolicy.Cluster{"prod": {Endpoints: c.endpoints, CASHA256: c.sums}}}
			builder := fake.NewClientBuilder().WithScheme(coreScheme(t))
			if c.info != "" {
				builder = builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{"kubeconfig": c.info}})
			}
			got, err := Objects{Reader: builder.Build()}.Cluster(t.Context(), p, "prod", own)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestClusterInfoThatCannotBeReadIsNoAnswer(t *testing.T) {
	p := &trustpolicy.Policy{Clusters: map[string]trustpolicy.Cluster{"prod": {}}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, clusterInfo, errors.New("no role"))
	for _, c := range []struct {
		fault error
		fails bool
	}{{forbidden, false}, {errors.New("away"), true}} {
		reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(coreScheme(t)).Build(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return c.fault
			},
		})
		got, err := Objects{Reader: reader}.Cluster(t.Context(), p, "prod", nil)
		if (err != nil) != c.fails || got.Endpoint != "" || got.CA != nil {
			t.Errorf("%v: %+v, %v", c.fault, got, err)
		}
	}
	if got, err := (Objects{}).Cluster(t.Context(), nil, "prod", nil); err != nil || got.Endpoint != "" {
		t.Errorf("without a policy %+v, %v", got, err)
	}
	if got, err := (Objects{}).Cluster(t.Context(), p, "another", nil); err != nil || got.Endpoint != "" {
		t.Errorf("for another cluster %+v, %v", got, err)
	}
}

func coreScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}
