//go:build linux

package join

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// attempt is something that an account of ours tries with kubectl, or a patch.
type attempt struct {
	stdin string
	args  []string
	says  string // of RBAC, what it may not; of admission, the policy's message

	part, patch string // of the claim's run, in place of args
}

// tries is an attempt with kubectl.
func tries(stdin string, args []string, says string) attempt {
	return attempt{stdin: stdin, args: args, says: says}
}

// patches is an attempt to change a claim's run, or a part of it.
func patches(part, patch, says string) attempt { return attempt{part: part, patch: patch, says: says} }

// try makes an attempt, and gives what it was answered; "" is that it went through.
func (c *claim) try(t *testing.T, account string, a attempt) string {
	t.Helper()
	if a.patch != "" {
		err := c.world.patch(t, account, c.run, a.part, a.patch)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	r := c.as(t, account, a.stdin, a.args...)
	if r.Code == 0 {
		return ""
	}
	return r.Stderr
}

// mayNotDo is RBAC's refusal.
func mayNotDo(verb, resource string) string {
	return fmt.Sprintf("cannot %s resource %q", verb, resource)
}

// accounts: what the accounts of relay and minter try in earnest, with the rights that the manifests give them. Nothing of it counts.
func (w *world) accounts(t *testing.T) {
	c := w.claims(t, nobodys(t), "accounts")["accounts"]
	request, err := c.asks(t, newKey(t), nil)
	must(t, err)
	w.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: default}\nstringData: {a: b}\n")
	tries := map[string]map[string]attempt{"hostwarrant-relay": w.relayTries(t, c, request), "hostwarrant-minter": w.minterTries(t, c)}
	before := w.settledState(t, c, request)
	for account, all := range tries {
		for name, a := range all {
			t.Run(account+" "+name, func(t *testing.T) {
				if said := c.try(t, account, a); !strings.Contains(said, a.says) {
					t.Errorf("answered %q, want %q", said, a.says)
				}
			})
		}
	}
	if after := w.settledState(t, c, request); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	w.kubectl(t, "-n", "kube-system", "delete", "secret", "bootstrap-token-abcdef")
	w.remove(t, "accounts")
	w.nothingLeft(t)
}

// settledState is what the attempts are to leave as it is.
func (w *world) settledState(t *testing.T, c *claim, request string) string {
	t.Helper()
	run := c.isAsked(t)
	csr := w.Request(t, request)
	conditions := ""
	for _, kind := range run.Status.Conditions {
		if kind.Type == "Joined" {
			conditions += kind.Type + kind.Reason
		}
	}
	return fmt.Sprint(run.Status.TokenID, run.Status.Proof, run.Finalizers, conditions, csr.Status, w.tokens(t), w.kubectl(t, "-n", "hostwarrant-system", "get", "configmap", "hostwarrant-host-keys", "-o", "jsonpath={.data}"))
}

// approvalOf is the body of an approval of a stored request.
func (w *world) approvalOf(t *testing.T, request, reason string) string {
	t.Helper()
	var csr map[string]any
	must(t, json.Unmarshal([]byte(w.kubectl(t, "get", "csr", request, "-o", "json")), &csr))
	csr["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True", "reason": reason}}}
	text, err := json.Marshal(csr)
	must(t, err)
	return string(text)
}

func approve(request string) []string {
	return []string{"replace", "-f", "-", "--raw", "/apis/certificates.k8s.io/v1/certificatesigningrequests/" + request + "/approval"}
}

// mint is a Secret by which its maker would be a bootstrapper.
func mint(id, group string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-%[1]s, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData: {token-id: %[1]s, token-secret: 0123456789abcdef, usage-bootstrap-authentication: "true", auth-extra-groups: %[2]q, expiration: %[3]q}
`, id, group, time.Now().Add(5*time.Minute).UTC().Format(time.RFC3339))
}

const joinedTrue = `{"status":{"conditions":[{"type":"Joined","status":"True","reason":"Approved","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

func (w *world) relayTries(t *testing.T, c *claim, request string) map[string]attempt {
	t.Helper()
	run := w.Read(t, c.run)
	system := []string{"-n", "hostwarrant-system"}
	in := func(namespace []string, args ...string) []string {
		return append(append([]string{}, namespace...), args...)
	}
	return map[string]attempt{
		"mints":                          tries(mint("hwzzzz", token.Group), []string{"create", "-f", "-"}, mayNotDo("create", "secrets")),
		"deletes the token":              tries("", []string{"-n", "kube-system", "delete", "secret", token.BootstrapName(run.Status.TokenID)}, mayNotDo("delete", "secrets")),
		"reads the token of kube-system": tries("", []string{"-n", "kube-system", "get", "secret", token.BootstrapName(run.Status.TokenID)}, mayNotDo("get", "secrets")),
		"reads a Secret elsewhere":       tries("", []string{"-n", "default", "get", "secret", "theirs"}, mayNotDo("get", "secrets")),
		"lists the pool's Secrets":       tries("", []string{"-n", pool, "get", "secrets"}, mayNotDo("list", "secrets")),
		"changes a host's pin":           tries("", []string{"-n", pool, "patch", "secret", "host-accounts-ssh", "--type=merge", "-p", `{"data":{"knownHost":"eA=="}}`}, mayNotDo("patch", "secrets")),
		"approves":                       tries(w.approvalOf(t, request, "HostwarrantApproved"), approve(request), mayNotDo("update", "certificatesigningrequests/approval")),
		"reads requests":                 tries("", []string{"get", "csr", request}, mayNotDo("get", "certificatesigningrequests")),
		"asks another nonce":             patches("status", `{"status":{"proof":{"nonce":"`+strings.Repeat("0", 64)+`","text":"x","signature":"y"}}}`, "hostwarrant-relay writes no nonce"),
		"takes the question back":        patches("status", `{"status":{"proof":null}}`, "hostwarrant-relay writes no nonce"),
		"takes another token":            patches("status", `{"status":{"tokenID":"hwzzzz"}}`, "hostwarrant-relay writes no tokenID"),
		"forgets the token":              patches("status", `{"status":{"tokenID":null}}`, "hostwarrant-relay writes no tokenID"),
		"calls the run joined":           patches("status", joinedTrue, "hostwarrant-relay does not write the condition Joined"),
		"lets the run go":                patches("", `{"metadata":{"finalizers":null}}`, mayNotDo("patch", "hostruns")),
		"makes a run":                    tries(fmt.Sprintf("{apiVersion: hostwarrant.dev/v1alpha1, kind: HostRun, metadata: {name: x, namespace: %s}, spec: {hostRef: {name: a}, profileRef: {name: a}, phase: join, nodeName: pool-x}}", pool), []string{"create", "-f", "-"}, mayNotDo("create", "hostruns")),
		"lists keys as hosts'":           tries("", in(system, "patch", "configmap", "hostwarrant-host-keys", "--type=merge", "-p", `{"data":{"pool.host-accounts":"x"}}`), mayNotDo("patch", "configmaps")),
		"deletes the hosts' keys":        tries("", in(system, "delete", "configmap", "hostwarrant-host-keys"), mayNotDo("delete", "configmaps")),
		"makes a list of its own":        tries("{apiVersion: v1, kind: ConfigMap, metadata: {name: hostwarrant-host-keys, namespace: hostwarrant-system}}", []string{"create", "-f", "-"}, mayNotDo("create", "configmaps")),
		"asks for the minter's account":  tries("", in(system, "create", "token", "hostwarrant-minter"), mayNotDo("create", "serviceaccounts/token")),
		"acts as the minter":             tries("", in(system, "--as=system:serviceaccount:hostwarrant-system:hostwarrant-minter", "get", "pods"), "cannot impersonate"),
	}
}

// minterTries: with its own rights the minter, too, is held to what it is for.
func (w *world) minterTries(t *testing.T, c *claim) map[string]attempt {
	t.Helper()
	run := w.Read(t, c.run)
	w.Apply(t, mint("abcdef", "system:bootstrappers:kubeadm:default-node-token"))
	w.Apply(t, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubeadm-bootstrappers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-bootstrapper"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:kubeadm:default-node-token"}]
`)
	theirs := asks(t, w.bearer(t, "abcdef.0123456789abcdef"), "another-1", newKey(t))
	return map[string]attempt{
		"approves somebody else's token": tries(w.approvalOf(t, theirs, "HostwarrantApproved"), approve(theirs), "hostwarrant-minter decides only about what was asked for with a token hw"),
		"mints for another group":        tries(mint("hwzzzz", "system:masters"), []string{"create", "-f", "-"}, "hostwarrant-minter gives its tokens the group"),
		"reads the token":                tries("", []string{"-n", "kube-system", "get", "secret", token.BootstrapName(run.Status.TokenID)}, mayNotDo("get", "secrets")),
		"reads what it handed over":      tries("", []string{"-n", pool, "get", "secret", token.HandoverName(run.UID)}, mayNotDo("get", "secrets")),
		"deletes a host's login key":     tries("", []string{"-n", pool, "delete", "secret", "host-accounts-ssh"}, "hostwarrant-minter writes and deletes only bootstrap-token-hw"),
		"answers its own question":       patches("status", `{"status":{"proof":{"text":"x","signature":"y"}}}`, "hostwarrant-minter writes no proof"),
		"calls the run done":             patches("status", `{"status":{"attempts":4711}}`, "hostwarrant-minter writes of a HostRun's status only"),
		"asks as a kubelet":              tries(fmt.Sprintf("{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: its-own}, spec: {request: eA==, signerName: %q, usages: [client auth]}}", kubeletcsr.SignerName), []string{"create", "-f", "-"}, mayNotDo("create", "certificatesigningrequests")),
		"lists keys as hosts'":           tries("", []string{"-n", "hostwarrant-system", "patch", "configmap", "hostwarrant-host-keys", "--type=merge", "-p", `{"data":{"a":"x"}}`}, mayNotDo("patch", "configmaps")),
	}
}
