//go:build linux

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
)

// certificateRequest is a CertificateSigningRequest, without one of a kubelet's usages: the approver of kube-controller-manager, which would
// take whatever system:masters asks for, leaves it alone.
func certificateRequest(t *testing.T, name, signer, subject string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject, Organization: []string{"system:nodes"}}}, key)
	must(t, err)
	return encode(t, certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	})
}

// certificateRequests makes one of each kind of requester and signer.
func (w *guardWorld) certificateRequests(t *testing.T) {
	t.Helper()
	const signer, group = kubeletcsr.SignerName, kubeletcsr.Group
	for name, by := range map[string]struct {
		signer, user string
		groups       []string
	}{
		"ours":       {signer, "system:bootstrap:hwab12", []string{"system:bootstrappers", group}},
		"kubeadms":   {signer, "system:bootstrap:abcdef", []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"}},
		"in-group":   {signer, "system:bootstrap:abcdef", []string{"system:bootstrappers", group}},
		"regrouped":  {signer, "system:bootstrap:hwab12", []string{"system:bootstrappers", "system:bootstrappers:hostwarrant2"}},
		"longer":     {signer, "system:bootstrap:hwab123", []string{group}},
		"a-node":     {signer, "system:node:pool-1", []string{"system:nodes"}},
		"node-group": {signer, "system:node:pool-1", []string{"system:nodes", group}},
		"an-admin":   {signer, "admin", []string{group}},
		"serving":    {"kubernetes.io/kubelet-serving", "system:bootstrap:hwab12", []string{group}},
		"clients":    {"kubernetes.io/kube-apiserver-client", "system:bootstrap:hwab12", []string{group}},
		"elsewhere":  {"example.com/signer", "system:bootstrap:hwab12", []string{group}},
	} {
		w.allowed(t, certificateRequest(t, name, by.signer, by.user), append(as(by.user, by.groups...), "create", "-f", "-")...)
	}
}

// change is one of a request.
type change = func(*certificatesv1.CertificateSigningRequest)

// word is a condition as the minter's approver writes it.
func word(kind certificatesv1.RequestConditionType, reason string) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: "True", Reason: reason, Message: "m"}
}

// decide writes what change makes of a stored request to its sub-resource approval, as the minter.
func (w *guardWorld) decide(t *testing.T, name string, change change) (text []byte, args []string) {
	t.Helper()
	var csr certificatesv1.CertificateSigningRequest
	must(t, json.Unmarshal([]byte(w.allowed(t, nil, "get", "csr", name, "-o", "json").Stdout), &csr))
	change(&csr)
	return encode(t, csr), slices.Concat(as(account("hostwarrant-minter")), []string{"replace", "-f", "-", "--raw", "/apis/certificates.k8s.io/v1/certificatesigningrequests/" + name + "/approval"})
}

// guardMinterApprovals: a minter that was taken over decides about requests that were made with tokens of our group, in its own
// words, once, and about no others.
func guardMinterApprovals(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-minter-approvals"
	const kubelets, tokens, words, nothing = "hostwarrant-minter decides about kubelets' client certificates alone",
		"hostwarrant-minter decides only about what was asked for with a token hw",
		"hostwarrant-minter writes one condition, Approved or Denied", "hostwarrant-minter changes nothing of a certificate request but its condition"
	w.certificateRequests(t)
	say := func(kind certificatesv1.RequestConditionType, reason string) change {
		return func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = append(csr.Status.Conditions, word(kind, reason))
		}
	}
	approve, deny := say(certificatesv1.CertificateApproved, "HostwarrantApproved"), say(certificatesv1.CertificateDenied, "HostwarrantCSRMismatch")
	also := func(first change, then change) change {
		return func(csr *certificatesv1.CertificateSigningRequest) { first(csr); then(csr) }
	}
	eventually(t, policy+" to be in force", func() bool {
		text, args := w.decide(t, "kubeadms", approve)
		return deniedBy(w.kubectl(t, text, dry(args)...), policy, tokens)
	})
	for name, c := range map[string]struct {
		request string
		change  change
		says    string
	}{
		"approve kubeadm's token":                       {"kubeadms", approve, tokens},
		"deny kubeadm's token":                          {"kubeadms", deny, tokens},
		"approve another's token in our group":          {"in-group", approve, tokens},
		"near miss: deny it":                            {"in-group", deny, ""},
		"approve a token of ours in another group":      {"regrouped", approve, tokens},
		"near miss: deny that":                          {"regrouped", deny, ""},
		"approve a token with a longer id":              {"longer", approve, tokens},
		"approve a node's renewal":                      {"a-node", approve, tokens},
		"deny a node's renewal":                         {"a-node", deny, tokens},
		"approve a node in our group":                   {"node-group", approve, tokens},
		"deny a node in our group":                      {"node-group", deny, tokens},
		"approve an administrator":                      {"an-admin", approve, tokens},
		"approve a serving certificate":                 {"serving", approve, kubelets},
		"approve any client":                            {"clients", approve, kubelets},
		"approve for a signer of somebody's":            {"elsewhere", approve, kubelets},
		"deny for a signer of somebody's":               {"elsewhere", deny, kubelets},
		"approve in another's name":                     {"ours", say(certificatesv1.CertificateApproved, "AutoApproved"), words},
		"approve with a reason that denies":             {"ours", say(certificatesv1.CertificateApproved, "HostwarrantCSRMismatch"), words},
		"deny in another's name":                        {"ours", say(certificatesv1.CertificateDenied, "KubectlDeny"), words},
		"deny with half a reason":                       {"ours", say(certificatesv1.CertificateDenied, "Hostwarrant"), words},
		"deny with more than a word":                    {"ours", say(certificatesv1.CertificateDenied, "HostwarrantNo: really"), words},
		"call it failed":                                {"ours", say(certificatesv1.CertificateFailed, "HostwarrantApproved"), words},
		"say nothing":                                   {"ours", func(*certificatesv1.CertificateSigningRequest) {}, words},
		"say more beside":                               {"ours", also(approve, say("Other", "HostwarrantApproved")), words},
		"a label beside":                                {"ours", also(approve, func(csr *certificatesv1.CertificateSigningRequest) { csr.Labels["a"] = "c" }), nothing},
		"an annotation beside":                          {"ours", also(approve, func(csr *certificatesv1.CertificateSigningRequest) { csr.Annotations = map[string]string{"a": "b"} }), nothing},
		"a finalizer beside":                            {"ours", also(approve, func(csr *certificatesv1.CertificateSigningRequest) { csr.Finalizers = []string{"example.com/x"} }), nothing},
		"an owner beside":                               {"ours", also(approve, func(csr *certificatesv1.CertificateSigningRequest) { csr.OwnerReferences = owned() }), nothing},
		"near miss: approve its own":                    {"ours", approve, ""},
		"near miss: approve its own without a proof":    {"ours", say(certificatesv1.CertificateApproved, "HostwarrantProofSkipped"), ""},
		"near miss: deny its own":                       {"ours", deny, ""},
		"near miss: deny its own, the verifier refused": {"ours", say(certificatesv1.CertificateDenied, "HostwarrantVerifierRefused"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, args := w.decide(t, c.request, c.change)
			if c.says == "" {
				w.allowed(t, text, dry(args)...)
				return
			}
			w.denied(t, policy, c.says, text, args...)
		})
	}
	guardWhatIsDecided(t, w, policy, deny)
}

// guardWhatIsDecided: a word is not taken back, and there is nothing else to write.
func guardWhatIsDecided(t *testing.T, w *guardWorld, policy string, deny change) {
	const only, once = "hostwarrant-minter only approves and denies certificate requests", "hostwarrant-minter decides once"
	t.Run("a second word", func(t *testing.T) {
		text, args := w.decide(t, "ours", deny)
		w.allowed(t, text, args...)
		text, args = w.decide(t, "ours", func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Conditions[0].Message = "another" })
		w.denied(t, policy, once, text, args...)
	})
	t.Run("anything but a word", func(t *testing.T) {
		minter := as(account("hostwarrant-minter"))
		w.denied(t, policy, only, certificateRequest(t, "its-own", kubeletcsr.SignerName, "system:node:pool-1"), append(minter, "create", "-f", "-")...)
		w.denied(t, policy, only, nil, append(minter, "label", "csr", "kubeadms", "c=d")...)
		w.denied(t, policy, only, nil, append(minter, "delete", "csr", "kubeadms")...)
		w.denied(t, policy, only, nil, append(minter, "patch", "csr", "kubeadms", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Failed","status":"True","reason":"X"}]}}`)...)
	})
	t.Run("near miss: somebody who may approve anything", func(t *testing.T) {
		w.allowed(t, nil, append(as("somebody"), "certificate", "deny", "kubeadms")...)
	})
}

// dry is a write that is judged and not kept.
func dry(args []string) []string {
	args = slices.Clone(args)
	args[len(args)-1] += "?dryRun=All"
	return args
}

func owned() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: someUID}}
}
