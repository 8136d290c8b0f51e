//go:build linux

package join

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// What somebody gets who has a token of ours, or an account of ours: nothing.
func TestWhatATokenDoesNotBuy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("requests that no kubelet makes", func(t *testing.T) { w.oddRequests(t) })
	t.Run("a second request", func(t *testing.T) { w.secondRequest(t) })
	t.Run("a request when the token is over", func(t *testing.T) { w.lateRequest(t) })
	t.Run("a proof of something else", func(t *testing.T) { w.shownAgain(t) })
	t.Run("the accounts of relay and minter", func(t *testing.T) { w.accounts(t) })
	t.Run("runs that were never admitted", func(t *testing.T) { w.neverAdmitted(t) }) // last: from here on there is no webhook
}

// odd is a request that no kubelet makes.
type odd struct {
	change func(*asking)
	api    string // what the API server itself says to it
	says   string // what the approver says, with CSRMismatch
	alarm  bool   // for another signer: left to that, and the token ends
}

// usages asks for others.
func usages(all ...certificatesv1.KeyUsage) func(*asking) {
	return func(a *asking) { a.csr.Spec.Usages = all }
}

// subject asks with those parts of a name in place of a kubelet's.
func subject(parts ...pkix.AttributeTypeAndValue) func(*asking) {
	return func(a *asking) { a.template.Subject = pkix.Name{ExtraNames: parts} }
}

func commonName(value string) pkix.AttributeTypeAndValue {
	return pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: value}
}

func organisation(value string) pkix.AttributeTypeAndValue {
	return pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: value}
}

// brokenSignature turns one bit of a request's signature.
func brokenSignature(text []byte) []byte {
	block, _ := pem.Decode(text)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}

// oddNames ask under other names, or under more than one.
func oddNames() map[string]odd {
	const sans, parts = "the request has subject alternative names", "the subject has 3 parts, not one name and one organisation"
	template := func(change func(*x509.CertificateRequest)) func(*asking) {
		return func(a *asking) { change(a.template) }
	}
	return map[string]odd{
		"dns":     {change: template(func(x *x509.CertificateRequest) { x.DNSNames = []string{"kubernetes.default.svc"} }), says: sans},
		"address": {change: template(func(x *x509.CertificateRequest) { x.IPAddresses = []net.IP{{10, 0, 0, 1}} }), says: sans},
		"uri":     {change: template(func(x *x509.CertificateRequest) { x.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }), says: sans},
		"mail":    {change: template(func(x *x509.CertificateRequest) { x.EmailAddresses = []string{"root@example.com"} }), says: sans},
		"masters": {change: template(func(x *x509.CertificateRequest) { x.Subject.Organization = []string{"system:masters"} }), says: `the organisations are ["system:masters"], not "system:nodes" alone`},
		"also": {change: template(func(x *x509.CertificateRequest) {
			x.Subject.Organization = append(x.Subject.Organization, "system:masters")
		}), says: `the organisations are ["system:nodes" "system:masters"], not`},
		"unit":       {change: template(func(x *x509.CertificateRequest) { x.Subject.OrganizationalUnit = []string{"x"} }), says: parts},
		"capitals":   {change: template(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:POOL-capitals" }), says: `the request is for "system:node:POOL-capitals", the run for the node "pool-capitals"`},
		"prefix":     {change: template(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:pool-prefix.x" }), says: `the request is for "system:node:pool-prefix.x"`},
		"admin":      {change: template(func(x *x509.CertificateRequest) { x.Subject.CommonName = "admin" }), says: `the request is for "admin"`},
		"names-own":  {change: subject(organisation("system:nodes"), commonName("admin"), commonName("system:node:pool-names-own")), says: parts},
		"names-last": {change: subject(organisation("system:nodes"), commonName("system:node:pool-names-last"), commonName("admin")), says: `the request is for "admin"`},
		"ca": {change: template(func(x *x509.CertificateRequest) {
			x.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}), says: "the request has the extension 2.5.29.19"},
	}
}

// oddUses ask for another use, or are no request.
func oddUses(t *testing.T) map[string]odd {
	t.Helper()
	const signature, client, server = certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth
	signer := func(name string) func(*asking) { return func(a *asking) { a.csr.Spec.SignerName = name } }
	edit := func(change func([]byte) []byte) func(*asking) { return func(a *asking) { a.edit = change } }
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	return map[string]odd{
		"serves":      {change: usages(signature, server), says: "the usages are"},
		"serves-too":  {change: usages(signature, client, server), says: "the usages are"},
		"signs":       {change: usages(signature, client, certificatesv1.UsageCertSign), says: "the usages are"},
		"client-only": {change: usages(client), says: "the usages are"},
		"encipher":    {change: usages(signature, client, certificatesv1.UsageKeyEncipherment), says: "the usages are"},
		"no-usages":   {change: usages(), api: "spec.usages: Required value"},
		"twice":       {change: usages(signature, client, client), api: "spec.usages[2]: Duplicate value"},
		"unknown":     {change: usages(signature, client, "anything"), api: `spec.usages[2]: Unsupported value: "anything"`},
		"weak":        {change: func(a *asking) { a.key = crypto.Signer(weak) }, says: "RSA key of 2048 bits"},
		"broken":      {change: edit(brokenSignature), api: "x509: ECDSA verification failure"},
		"blocks":      {change: edit(func(text []byte) []byte { return append(bytes.Clone(text), text...) }), says: "the request is not one PEM block"},
		"text":        {change: edit(func([]byte) []byte { return []byte("x") }), api: "spec.request: Invalid value"},
		"serving":     {change: signer(certificatesv1.KubeletServingSignerName), alarm: true},
		"any-client":  {change: signer(certificatesv1.KubeAPIServerClientSignerName), alarm: true},
		"foreign":     {change: signer("example.com/signer"), alarm: true},
	}
}

// oddRequests: each with a token of its own, for a token is good for one request.
func (w *world) oddRequests(t *testing.T) {
	names, uses := oddNames(), oddUses(t)
	all := map[string]odd{"honest": {}}
	for _, table := range []map[string]odd{names, uses} {
		for name, o := range table {
			all[name] = o
		}
	}
	var each []string
	for name := range all {
		each = append(each, name)
	}
	claims := w.claims(t, nobodys(t), each...)
	for name, o := range all {
		t.Run(name, func(t *testing.T) { w.oddRequest(t, claims[name], o) })
	}
	// Together: the API server goes on believing in a token that it has just seen for ten seconds.
	for name, o := range all {
		if o.says != "" || o.alarm {
			w.refused(t, claims[name].value)
		}
	}
	w.remove(t, each...)
	w.nothingLeft(t)
}

func (w *world) oddRequest(t *testing.T, c *claim, o odd) {
	name, err := c.asks(t, newKey(t), o.change)
	switch {
	case o.api != "":
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), o.api) {
			t.Errorf("the API server says %v, want %q", err, o.api)
		}
		if r := w.Read(t, c.run); courier.ConditionOf(r, v1alpha1.ConditionJoined).Reason != token.Issued {
			t.Errorf("a request that was not made ended the token: %+v", r.Status)
		}
		return
	case err != nil:
		t.Fatal(err)
	case o.alarm:
		w.otherSigner(t, c, name)
	case o.says != "":
		c.isDenied(t, name, "CSRMismatch", o.says)
		if p := w.Read(t, c.run).Status.Proof; p != nil {
			t.Errorf("the host is asked %+v", p)
		}
	default: // the near miss: all that is left is the proof
		c.isAsked(t)
	}
}

// otherSigner: whoever decides about that signer's certificates is left to it, and the token is over.
func (w *world) otherSigner(t *testing.T, c *claim, name string) {
	if j := courier.ConditionOf(w.joined(t, c.run, "OtherSigner"), v1alpha1.ConditionJoined); j.Status != metav1.ConditionFalse || !strings.Contains(j.Message, name) {
		t.Errorf("Joined is %s: %s", j.Status, j.Message)
	}
	csr := w.Request(t, name)
	if len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0 {
		t.Errorf("the request is %+v", csr.Status)
	}
	if log := w.minter.Tail(200); !strings.Contains(log, "ALARM: a join token was used to ask") {
		t.Errorf("the minter says\n%s", log)
	}
}

// secondRequest: with the same key it is the same kubelet, with another it is a thief, and whose the token was is not known any more.
func (w *world) secondRequest(t *testing.T) {
	claims := w.claims(t, nobodys(t), "again", "thief")
	own := newKey(t)
	first, _ := claims["again"].asksAndIsAsked(t, own)
	same, err := claims["again"].asks(t, own, nil)
	must(t, err)

	victim, _ := claims["thief"].asksAndIsAsked(t, newKey(t))
	stolen, err := claims["thief"].asks(t, newKey(t), nil)
	must(t, err)
	claims["thief"].isDenied(t, stolen, "CSRMismatch", fmt.Sprintf("another request, %q, used the token first, with another key", victim))
	third, err := claims["thief"].asks(t, newKey(t), nil)
	if err == nil { // while the API server still believes in the token
		id, _, _ := strings.Cut(claims["thief"].value, ".")
		if said, want := w.decided(t, third), "Denied HostwarrantCSRMismatch: no run has the token "+id; said != want {
			t.Errorf("a third request is %q, want %q", said, want)
		}
	} else if !apierrors.IsUnauthorized(err) {
		t.Fatal(err)
	}
	w.refused(t, claims["thief"].value)

	for _, name := range []string{first, same} {
		csr := w.Request(t, name)
		if len(csr.Status.Conditions) > 0 {
			t.Errorf("the kubelet's own request %s is %+v", name, csr.Status.Conditions)
		}
	}
	w.remove(t, "again", "thief")
	w.nothingLeft(t)
}

// lateRequest: by the API server a token that is over asks for nothing; whoever could all the same, in its name, is denied.
func (w *world) lateRequest(t *testing.T) {
	c := w.claims(t, nobodys(t), "late")["late"]
	id, _, _ := strings.Cut(c.value, ".")
	w.remove(t, "late")
	w.refused(t, c.value)
	if _, err := c.asks(t, newKey(t), nil); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a token that is over: %v", err)
	}
	config := rest.CopyConfig(w.ControlPlane.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: token.UserPrefix + id, Groups: []string{token.Bootstrappers, token.Group, "system:authenticated"}}
	for name, by := range map[string]string{"of a token that is over": id, "of a token that never was": "hwzzzz"} {
		config.Impersonate.UserName = token.UserPrefix + by
		bearer, err := kubernetes.NewForConfig(config)
		must(t, err)
		made, err := request(t, bearer, c.node)
		must(t, err)
		if said, want := w.decided(t, made.Name), "Denied HostwarrantCSRMismatch: no run has the token "+by; said != want {
			t.Errorf("%s: the request is %q, want %q", name, said, want)
		}
	}
	w.nothingLeft(t)
}

// nobodys is the key of a host that does not exist.
func nobodys(t *testing.T) ssh.PublicKey {
	t.Helper()
	return testkit.NewSigner(t, "ed25519").PublicKey()
}
