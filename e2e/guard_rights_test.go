//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/product"
)

// tenants are users of one namespace with the built-in roles, and an agent that installs applications
// everywhere, as GitOps agents do where they are not made cluster administrators.
const tenants = `
apiVersion: v1
kind: Namespace
metadata: {name: tenant}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant-admin, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: User, name: tenant-admin}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant-edit, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, name: tenant-edit}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant-view, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: User, name: tenant-view}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gitops-applications}
rules:
- {apiGroups: [apps, batch], resources: ["*"], verbs: ["*"]}
- {apiGroups: [karpenter.dklesev.github.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [hostwarrant.dev], resources: [hostruns], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gitops-applications}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gitops-applications}
subjects: [{kind: User, name: gitops-agent}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: someone-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, name: cluster-admin}]
`

// guardedThing is what would take a guard away if it were written.
type guardedThing struct {
	name  string
	verbs []string
	attrs authorizationv1.ResourceAttributes
}

func guardedThings() []guardedThing {
	change := []string{"update", "patch", "delete", "deletecollection"}
	thing := func(name, group, resource, namespace, object string) guardedThing {
		return guardedThing{name, change, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Namespace: namespace, Name: object}}
	}
	const admission = "admissionregistration.k8s.io"
	return []guardedThing{
		thing("anchor", "", "configmaps", product.Namespace, "hostwarrant-anchor"),
		thing("trust policy", "hostwarrant.dev", "trustpolicies", "", "cluster"),
		thing("validating configuration", admission, "validatingwebhookconfigurations", "", "hostwarrant"),
		thing("mutating configuration", admission, "mutatingwebhookconfigurations", "", "hostwarrant"),
		thing("policies of the API", admission, "validatingadmissionpolicies", "", "hostwarrant-ledger"),
		thing("their bindings", admission, "validatingadmissionpolicybindings", "", "hostwarrant-ledger"),
		thing("root statements", "hostwarrant.dev", "hoststatements", "", "revoke-5"),
		thing("ledger", "hostwarrant.dev", "ledgers", "", "policy"),
		thing("kinds", "apiextensions.k8s.io", "customresourcedefinitions", "", "sshjoinprofiles.karpenter.dklesev.github.io"),
		thing("serving CA", "", "secrets", product.Namespace, "hostwarrant-webhook-ca"),
		{"break-glass", []string{"impersonate"}, authorizationv1.ResourceAttributes{Resource: "groups", Name: breakGlass}},
		{"tokens of our accounts", []string{"create"}, authorizationv1.ResourceAttributes{Resource: "serviceaccounts", Subresource: "token", Namespace: product.Namespace, Name: "hostwarrant-controller"}},
	}
}

// rightly are the writes that are a program's work, "who: thing: verb".
var rightly = map[string]bool{
	account("hostwarrant-controller") + ": validating configuration: patch": true, // caBundle
	account("hostwarrant-controller") + ": mutating configuration: patch":   true,
	account("hostwarrant-controller") + ": ledger: update":                  true,
	// a canary that was stored by mistake: hostwarrant-canary holds the account to those
	account("hostwarrant-controller") + ": root statements: delete": true,
	// ConfigMaps, for manifests: the anchor is immutable, and hostwarrant-composites holds the account to manifests
	account("hostwarrant-controller") + ": anchor: update":  true,
	account("hostwarrant-controller") + ": ledger: patch":   true,
	account("hostwarrant-webhook") + ": serving CA: update": true,
}

// Only a cluster administrator can take away what guards; each cell is the API server's own answer.
func TestWhoCanTakeTheGuardsAway(t *testing.T) {
	i := install(t)
	i.succeeds(t, []byte(tenants), "apply", "--server-side", "-f", "-")
	t.Cleanup(func() { i.succeeds(t, []byte(tenants), "delete", "-f", "-", "--ignore-not-found") })
	who := []string{"tenant-admin", "tenant-edit", "tenant-view", "gitops-agent"}
	for _, name := range []string{"hostwarrant-webhook", "hostwarrant-controller", "hostwarrant-relay", "hostwarrant-minter", "hostwarrant-canary"} {
		who = append(who, account(name))
	}
	eventually(t, "the bindings to count", func() bool {
		return i.may(t, "cluster-admin", "delete", guardedThings()[0].attrs) && i.may(t, "gitops-agent", "delete", authorizationv1.ResourceAttributes{Group: "apps", Resource: "deployments", Namespace: "x"})
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 1, 2, ' ', 0)
	fmt.Fprint(w, "can change or delete\tcluster-admin")
	for _, name := range who {
		fmt.Fprint(w, "\t", name[strings.LastIndexByte(name, ':')+1:])
	}
	fmt.Fprintln(w)
	for _, thing := range guardedThings() {
		fmt.Fprint(w, thing.name)
		for n, user := range append([]string{"cluster-admin"}, who...) {
			var can []string
			for _, verb := range thing.verbs {
				yes := i.may(t, user, verb, thing.attrs)
				if yes {
					can = append(can, verb)
				}
				if n == 0 && !yes {
					t.Errorf("the cluster administrator cannot %s %s", verb, thing.name)
				}
				if n > 0 && yes && !rightly[user+": "+thing.name+": "+verb] {
					t.Errorf("%s can %s %s", user, verb, thing.name)
				}
			}
			switch {
			case len(can) == len(thing.verbs):
				fmt.Fprint(w, "\tall")
			case len(can) == 0:
				fmt.Fprint(w, "\t-")
			default:
				fmt.Fprint(w, "\t", strings.Join(can, ","))
			}
		}
		fmt.Fprintln(w)
	}
	must(t, w.Flush())
	t.Logf("\n%s", table.String())
	// A right that is listed as a program's work and is not there is no longer its work.
	for _, right := range []struct{ user, verb, group, resource, name string }{
		{account("hostwarrant-controller"), "patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "hostwarrant"},
		{account("hostwarrant-webhook"), "get", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "hostwarrant"},
	} {
		attrs := authorizationv1.ResourceAttributes{Group: right.group, Resource: right.resource, Name: right.name}
		if !i.may(t, right.user, right.verb, attrs) {
			t.Errorf("%s cannot %s %s/%s", right.user, right.verb, right.resource, right.name)
		}
		attrs.Name = "other"
		if i.may(t, right.user, right.verb, attrs) {
			t.Errorf("%s can %s %s/other", right.user, right.verb, right.resource)
		}
	}
}

// may asks the API server whether a user may do something.
func (i *installation) may(t *testing.T, user, verb string, attrs authorizationv1.ResourceAttributes) bool {
	t.Helper()
	attrs.Verb = verb
	if verb == "deletecollection" {
		attrs.Name = ""
	}
	groups := []string{"system:authenticated"}
	if strings.HasPrefix(user, "system:serviceaccount:") {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+product.Namespace)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &attrs}}
	got, err := i.cp.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	must(t, err)
	return got.Status.Allowed
}
