//go:build linux

package e2e

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/product"
)

// powers are what somebody would want who has taken over one of our programs, a node or a token: to run something on
// a host, to read or make what opens one, or to become somebody else. Each is "VERB GROUP/RESOURCE NAMESPACE NAME".
func powers() []string {
	return []string{
		"create hostwarrant.dev/hostruns pool -", "update hostwarrant.dev/hostruns pool -", "patch hostwarrant.dev/hostruns pool -", "delete hostwarrant.dev/hostruns pool -",
		"update hostwarrant.dev/hostruns/status pool -", "patch hostwarrant.dev/hostruns/status pool -",
		"create hostwarrant.dev/trustpolicies - -", "update hostwarrant.dev/trustpolicies - cluster", "create hostwarrant.dev/hoststatements - -", "update hostwarrant.dev/hoststatements - -",
		"create hostwarrant.dev/ledgers - -", "update hostwarrant.dev/ledgers - policy",
		"create hostwarrant.dev/hoststates pool -", "update hostwarrant.dev/hoststates/status pool -",
		"create karpenter.dklesev.github.io/sshhosts pool -", "update karpenter.dklesev.github.io/sshhosts pool -", "patch karpenter.dklesev.github.io/sshhosts pool -", "update karpenter.dklesev.github.io/sshhosts/status pool -",
		"delete karpenter.dklesev.github.io/sshhosts pool -",
		"create karpenter.dklesev.github.io/sshjoinprofiles - -", "update karpenter.dklesev.github.io/sshjoinprofiles - -", "patch karpenter.dklesev.github.io/sshjoinprofiles - -",
		"decommission karpenter.dklesev.github.io/sshhosts pool -",
		"get /secrets pool host-a-ssh", "list /secrets pool -", "create /secrets pool -", "update /secrets pool -", "delete /secrets pool -",
		"get /secrets kube-system -", "list /secrets kube-system -", "create /secrets kube-system -", "update /secrets kube-system -", "delete /secrets kube-system -",
		"get /secrets hostwarrant-system hostwarrant-webhook-ca", "get /secrets hostwarrant-system other", "update /secrets hostwarrant-system hostwarrant-webhook-ca", "create /secrets hostwarrant-system -",
		"get /secrets default -", "create /secrets default -",
		"get /configmaps hostwarrant-system hostwarrant-host-keys", "update /configmaps hostwarrant-system hostwarrant-host-keys", "create /configmaps hostwarrant-system -",
		"create certificates.k8s.io/certificatesigningrequests - -", "get certificates.k8s.io/certificatesigningrequests - -",
		"update certificates.k8s.io/certificatesigningrequests/approval - -", "update certificates.k8s.io/certificatesigningrequests/status - -",
		"approve certificates.k8s.io/signers - kubernetes.io/kube-apiserver-client-kubelet", "approve certificates.k8s.io/signers - kubernetes.io/kube-apiserver-client",
		"sign certificates.k8s.io/signers - kubernetes.io/kube-apiserver-client-kubelet",
		"create coordination.k8s.io/leases hostwarrant-system -", "update coordination.k8s.io/leases hostwarrant-system hostwarrant-relay", "update coordination.k8s.io/leases hostwarrant-system hostwarrant-minter",
		"create /pods hostwarrant-system -", "create /pods/exec hostwarrant-system -", "create /pods pool -", "patch apps/deployments hostwarrant-system hostwarrant-relay",
		"create /serviceaccounts/token hostwarrant-system hostwarrant-relay", "create /serviceaccounts/token hostwarrant-system hostwarrant-minter", "create /serviceaccounts/token hostwarrant-system hostwarrant-canary",
		"impersonate /users - -", "impersonate /groups - system:masters", "impersonate /serviceaccounts hostwarrant-system hostwarrant-minter",
		"create rbac.authorization.k8s.io/rolebindings pool -", "create rbac.authorization.k8s.io/clusterrolebindings - -", "bind rbac.authorization.k8s.io/clusterroles - -", "escalate rbac.authorization.k8s.io/clusterroles - -",
		"create /nodes - -", "patch /nodes - -", "delete /nodes - -",
	}
}

// granted are those that each is given. An admission policy holds some of them to less, which TestGuards shows.
func granted() map[string][]string {
	return map[string][]string{
		account("hostwarrant-webhook"): {"get /secrets hostwarrant-system hostwarrant-webhook-ca", "update /secrets hostwarrant-system hostwarrant-webhook-ca"},
		account("hostwarrant-controller"): {
			"delete hostwarrant.dev/hostruns pool -", "delete karpenter.dklesev.github.io/sshhosts pool -", // canaries: hostwarrant-canary
			"create hostwarrant.dev/ledgers - -", "update hostwarrant.dev/ledgers - policy", // hostwarrant-ledger
			"patch karpenter.dklesev.github.io/sshhosts pool -", // hostwarrant-controller-hosts
			"get /secrets hostwarrant-system hostwarrant-webhook-ca",
			"get /configmaps hostwarrant-system hostwarrant-host-keys", "update /configmaps hostwarrant-system hostwarrant-host-keys", "create /configmaps hostwarrant-system -", // hostwarrant-composites
			"create coordination.k8s.io/leases hostwarrant-system -", // hostwarrant-leases
			"create /serviceaccounts/token hostwarrant-system hostwarrant-canary",
		},
		account("hostwarrant-relay"): {
			"delete hostwarrant.dev/hostruns pool -", "update hostwarrant.dev/hostruns/status pool -", "patch hostwarrant.dev/hostruns/status pool -", // hostwarrant-hostrun-status
			"create hostwarrant.dev/hoststates pool -", "update hostwarrant.dev/hoststates/status pool -",
			"get /secrets pool host-a-ssh", "get /configmaps hostwarrant-system hostwarrant-host-keys",
			"create coordination.k8s.io/leases hostwarrant-system -", "update coordination.k8s.io/leases hostwarrant-system hostwarrant-relay",
		},
		account("hostwarrant-minter"): {
			"patch hostwarrant.dev/hostruns pool -", "patch hostwarrant.dev/hostruns/status pool -", // hostwarrant-hostrun-status
			"create /secrets pool -", "delete /secrets pool -", "create /secrets kube-system -", "delete /secrets kube-system -", // hostwarrant-minter-secrets
			"get /configmaps hostwarrant-system hostwarrant-host-keys", "get certificates.k8s.io/certificatesigningrequests - -",
			"update certificates.k8s.io/certificatesigningrequests/approval - -", "approve certificates.k8s.io/signers - kubernetes.io/kube-apiserver-client-kubelet", // hostwarrant-minter-approvals
			"create coordination.k8s.io/leases hostwarrant-system -", "update coordination.k8s.io/leases hostwarrant-system hostwarrant-minter",
		},
		account("hostwarrant-canary"): {
			"create hostwarrant.dev/trustpolicies - -", "create hostwarrant.dev/hoststatements - -", "create karpenter.dklesev.github.io/sshjoinprofiles - -", // dry runs: hostwarrant-canary
		},
		// What becomes of a host that was taken over: its kubelet, and whoever bears a token that it was given.
		"system:node:pool-1": { // its own Node, and mirror pods of its own without Secrets and accounts: NodeRestriction
			"create certificates.k8s.io/certificatesigningrequests - -", "get certificates.k8s.io/certificatesigningrequests - -",
			"create /nodes - -", "patch /nodes - -", "create /pods hostwarrant-system -", "create /pods pool -",
		},
		"system:bootstrap:hwab12": nil, // docs/operations/join.md binds the right to ask
	}
}

// What each of our accounts, a node and a token may do of that, by the API server's own answers: what is granted and nothing else.
func TestWhatEachAccountMayDo(t *testing.T) {
	i := install(t)
	for who, may := range granted() {
		for _, power := range powers() {
			got := i.reviewed(t, who, power)
			if want := slices.Contains(may, power); got != want {
				t.Errorf("%s: %s: %v, want %v", who, power, got, want)
			}
		}
		for _, power := range may {
			if !slices.Contains(powers(), power) {
				t.Errorf("%s is granted %q, which is asked of nobody", who, power)
			}
		}
	}
	// The answers of an API server that lets anybody do anything, or nobody, say nothing.
	administrator := slices.DeleteFunc(powers(), func(power string) bool { return i.reviewed(t, "an-administrator", power) })
	if len(administrator) > 0 {
		t.Errorf("an administrator may not %q", administrator)
	}
}

// reviewed asks the API server whether somebody has a power.
func (i *installation) reviewed(t *testing.T, who, power string) bool {
	t.Helper()
	groups := map[string][]string{
		"system:node:pool-1":      {"system:nodes"},
		"system:bootstrap:hwab12": {"system:bootstrappers", "system:bootstrappers:hostwarrant"},
		"an-administrator":        {"system:masters"},
	}[who]
	if groups == nil {
		groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + product.Namespace}
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who, Groups: append(groups, "system:authenticated"), ResourceAttributes: attributes(power),
	}}
	got, err := i.cp.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	must(t, err)
	return got.Status.Allowed
}

func attributes(power string) *authorizationv1.ResourceAttributes {
	field := strings.Fields(strings.ReplaceAll(power, " -", " \x00"))
	for n := range field {
		field[n] = strings.Trim(field[n], "\x00")
	}
	group, resource, _ := strings.Cut(field[1], "/")
	resource, sub, _ := strings.Cut(resource, "/")
	return &authorizationv1.ResourceAttributes{Verb: field[0], Group: group, Resource: resource, Subresource: sub, Namespace: field[2], Name: field[3]}
}
