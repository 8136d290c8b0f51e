package kubeletcsr_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const token, node = "hwab12", "pool-1"

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func p256() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func request(key crypto.Signer, change func(*x509.CertificateRequest)) []byte {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
	if change != nil {
		change(template)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: must(x509.CreateCertificateRequest(rand.Reader, template, key))})
}

// honest is what a kubelet makes.
func honest(key crypto.Signer) kubeletcsr.Request {
	return kubeletcsr.Request{
		PEM: request(key, nil), Signer: "kubernetes.io/kube-apiserver-client-kubelet", Username: "system:bootstrap:" + token,
		Groups: []string{"system:bootstrappers", "system:bootstrappers:hostwarrant", "system:authenticated"},
		Usages: []string{"digital signature", "client auth"},
	}
}

func TestTheRequestOfAKubelet(t *testing.T) {
	for name, key := range map[string]crypto.Signer{
		"P-256":   p256(),
		"P-384":   must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"RSA":     must(rsa.GenerateKey(rand.Reader, 3072)),
		"Ed25519": must2(ed25519.GenerateKey(rand.Reader)),
	} {
		t.Run(name, func(t *testing.T) {
			r := honest(key)
			if name == "RSA" {
				r.Usages = append(r.Usages, "key encipherment")
			}
			got, err := r.Check(token, node)
			if err != nil {
				t.Fatal(err)
			}
			if want := must(ssh.NewPublicKey(key.Public())); ssh.FingerprintSHA256(got) != ssh.FingerprintSHA256(want) {
				t.Errorf("gave the key %s, want %s", ssh.FingerprintSHA256(got), ssh.FingerprintSHA256(want))
			}
		})
	}
}

func must2(_ ed25519.PublicKey, key ed25519.PrivateKey, err error) crypto.Signer {
	return must(key, err)
}

// TestNothingButTheRequestOfThatKubelet: what a thief with the token could ask for.
func TestNothingButTheRequestOfThatKubelet(t *testing.T) {
	key := p256()
	with := func(change func(*kubeletcsr.Request)) kubeletcsr.Request {
		r := honest(key)
		change(&r)
		return r
	}
	asking := func(change func(*x509.CertificateRequest)) kubeletcsr.Request {
		return with(func(r *kubeletcsr.Request) { r.PEM = request(key, change) })
	}
	extension := func(id asn1.ObjectIdentifier, value []byte) kubeletcsr.Request {
		return asking(func(x *x509.CertificateRequest) { x.ExtraExtensions = []pkix.Extension{{Id: id, Value: value}} })
	}
	subject := func(names ...pkix.AttributeTypeAndValue) kubeletcsr.Request {
		return asking(func(x *x509.CertificateRequest) { x.Subject.ExtraNames = names })
	}
	unit := pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "x"}
	name := pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:node:" + node}
	good := string(request(key, nil))
	foreign := slices.Clone(must2block(good))
	foreign[len(foreign)-1] ^= 1 // the last byte of the signature
	for name, r := range map[string]kubeletcsr.Request{
		"by another token":                with(func(r *kubeletcsr.Request) { r.Username = "system:bootstrap:hwab13" }),
		"by a kubelet":                    with(func(r *kubeletcsr.Request) { r.Username = "system:node:" + node }),
		"by nobody":                       with(func(r *kubeletcsr.Request) { r.Username = "" }),
		"by a token of another group":     with(func(r *kubeletcsr.Request) { r.Groups = []string{"system:bootstrappers", "system:authenticated"} }),
		"without groups":                  with(func(r *kubeletcsr.Request) { r.Groups = nil }),
		"for a serving certificate":       with(func(r *kubeletcsr.Request) { r.Signer = "kubernetes.io/kubelet-serving" }),
		"for any client's certificate":    with(func(r *kubeletcsr.Request) { r.Signer = "kubernetes.io/kube-apiserver-client" }),
		"for another node":                asking(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:pool-2" }),
		"for a node whose name is longer": asking(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:pool-11" }),
		"for a node in capitals":          asking(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:POOL-1" }),
		"for an administrator":            asking(func(x *x509.CertificateRequest) { x.Subject.CommonName = "admin" }),
		"without a name":                  asking(func(x *x509.CertificateRequest) { x.Subject.CommonName = "" }),
		"of system:masters":               asking(func(x *x509.CertificateRequest) { x.Subject.Organization = []string{"system:masters"} }),
		"of one more organisation":        asking(func(x *x509.CertificateRequest) { x.Subject.Organization = []string{"system:nodes", "system:masters"} }),
		"of its organisation twice":       asking(func(x *x509.CertificateRequest) { x.Subject.Organization = []string{"system:nodes", "system:nodes"} }),
		"of no organisation":              asking(func(x *x509.CertificateRequest) { x.Subject.Organization = nil }),
		"with a unit":                     subject(unit),
		"with its name twice":             subject(name, name),
		"with a country":                  asking(func(x *x509.CertificateRequest) { x.Subject.Country = []string{"DE"} }),
		"with a serial number":            asking(func(x *x509.CertificateRequest) { x.Subject.SerialNumber = "1" }),
		"with a DNS name":                 asking(func(x *x509.CertificateRequest) { x.DNSNames = []string{"kubernetes.default"} }),
		"with an address":                 asking(func(x *x509.CertificateRequest) { x.IPAddresses = []net.IP{{10, 0, 0, 1}} }),
		"with a mail address":             asking(func(x *x509.CertificateRequest) { x.EmailAddresses = []string{"a@b.c"} }),
		"with a URI":                      asking(func(x *x509.CertificateRequest) { x.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }),
		"of a CA":                         extension(asn1.ObjectIdentifier{2, 5, 29, 19}, []byte{0x30, 3, 1, 1, 0xff}),
		"with a key usage of its own":     extension(asn1.ObjectIdentifier{2, 5, 29, 15}, []byte{3, 2, 5, 0xa0}),
		"with an unknown extension":       extension(asn1.ObjectIdentifier{1, 2, 3, 4}, []byte{5, 0}),
		"with an empty SAN":               extension(asn1.ObjectIdentifier{2, 5, 29, 17}, []byte{0x30, 0}),
		"to serve":                        with(func(r *kubeletcsr.Request) { r.Usages = append(r.Usages, "server auth") }),
		"to sign certificates":            with(func(r *kubeletcsr.Request) { r.Usages = append(r.Usages, "cert sign") }),
		"without digital signature":       with(func(r *kubeletcsr.Request) { r.Usages = []string{"client auth"} }),
		"without client auth":             with(func(r *kubeletcsr.Request) { r.Usages = []string{"digital signature"} }),
		"without usages":                  with(func(r *kubeletcsr.Request) { r.Usages = nil }),
		"with a usage twice":              with(func(r *kubeletcsr.Request) { r.Usages = append(r.Usages, "client auth") }),
		"with a usage for another key":    with(func(r *kubeletcsr.Request) { r.Usages = append(r.Usages, "key encipherment") }),
		"of nothing":                      with(func(r *kubeletcsr.Request) { r.PEM = nil }),
		"of text":                         with(func(r *kubeletcsr.Request) { r.PEM = []byte("x") }),
		"of two blocks":                   with(func(r *kubeletcsr.Request) { r.PEM = []byte(good + good) }),
		"with text behind":                with(func(r *kubeletcsr.Request) { r.PEM = []byte(good + "x") }),
		"with a header":                   with(func(r *kubeletcsr.Request) { r.PEM = []byte(strings.Replace(good, "-----\n", "-----\na: b\n\n", 1)) }),
		"of another type": with(func(r *kubeletcsr.Request) {
			r.PEM = []byte(strings.ReplaceAll(good, "CERTIFICATE REQUEST", "CERTIFICATE"))
		}),
		"that is no PKCS #10":           with(func(r *kubeletcsr.Request) { r.PEM = block([]byte{0x30, 0}) }),
		"that is signed by another key": with(func(r *kubeletcsr.Request) { r.PEM = block(foreign) }),
		"that is too long":              asking(func(x *x509.CertificateRequest) { x.DNSNames = []string{strings.Repeat("a", 17<<10)} }),
		"that is long by what pads it":  with(func(r *kubeletcsr.Request) { r.PEM = []byte(good + strings.Repeat("\n", 17<<10)) }),
		"with an RSA key of 2048 bits":  weak(2048),
		"with an elliptic key of 224 bits": with(func(r *kubeletcsr.Request) {
			r.PEM = request(must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)), nil)
		}),
		"with an RSA key without its use": rsaWithout(),
	} {
		t.Run(name, func(t *testing.T) {
			key, err := r.Check(token, node)
			testkit.WantReason(t, err, decision.CSRMismatch)
			if key != nil {
				t.Error("gave a key")
			}
		})
	}
	for says, r := range map[string]kubeletcsr.Request{
		"subject alternative names": asking(func(x *x509.CertificateRequest) { x.DNSNames = []string{"kubernetes.default"} }),
		"the extension 1.2.3.4":     extension(asn1.ObjectIdentifier{1, 2, 3, 4}, []byte{5, 0}),
	} {
		if _, err := r.Check(token, node); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("of a request with %s it says %v", says, err)
		}
	}
	for name, r := range map[string]struct{ token, node string }{"no token": {"", node}, "no node": {token, ""}} {
		q := asking(func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:" + r.node })
		q.Username = "system:bootstrap:" + r.token
		_, err := q.Check(r.token, r.node)
		t.Run(name, func(t *testing.T) { testkit.WantReason(t, err, decision.CSRMismatch) })
	}
}

func block(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func must2block(text string) []byte {
	b, _ := pem.Decode([]byte(text))
	return b.Bytes
}

func weak(bits int) kubeletcsr.Request {
	r := honest(must(rsa.GenerateKey(rand.Reader, bits)))
	r.Usages = append(r.Usages, "key encipherment")
	return r
}

func rsaWithout() kubeletcsr.Request {
	r := weak(3072)
	r.Usages = r.Usages[:2]
	return r
}

// TestWhichRequestsAreOurs: what is not is never touched.
func TestWhichRequestsAreOurs(t *testing.T) {
	for name, tt := range map[string]struct {
		user   string
		groups []string
		want   bool
	}{
		"our token":                       {"system:bootstrap:hwab12", []string{kubeletcsr.Group}, true},
		"an id like ours":                 {"system:bootstrap:hwab12", nil, true},
		"another token in our group":      {"system:bootstrap:abcdef", []string{kubeletcsr.Group}, true},
		"another token":                   {"system:bootstrap:abcdef", []string{"system:bootstrappers"}, false},
		"a kubelet that renews":           {"system:node:pool-1", []string{"system:nodes"}, false},
		"somebody with our group":         {"eve", []string{kubeletcsr.Group}, false},
		"somebody whose name ends so":     {"x:system:bootstrap:hwab12", nil, false},
		"nobody":                          {"", nil, false},
		"a service account with the name": {"system:serviceaccount:hw:a", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (kubeletcsr.Request{Username: tt.user, Groups: tt.groups}).Ours(); got != tt.want {
				t.Errorf("ours: %t, want %t", got, tt.want)
			}
		})
	}
	for user, want := range map[string]string{"system:bootstrap:hwab12": "hwab12", "system:node:hwab12": "", "hwab12": ""} {
		if id := (kubeletcsr.Request{Username: user}).TokenID(); id != want {
			t.Errorf("the token of %s is %q, want %q", user, id, want)
		}
	}
}

// A name is that of one key and node, whatever order the usages have. That kubelets give it is shown in e2e/node.
func TestOwnNameIsThatOfOneKeyAndNode(t *testing.T) {
	key := p256()
	r, other, renamed := honest(key), honest(p256()), honest(key)
	if again := honest(key); r.OwnName() != again.OwnName() || len(r.OwnName()) != len("node-csr-")+43 {
		t.Errorf("%q, and %q", r.OwnName(), again.OwnName())
	}
	renamed.PEM = request(key, func(x *x509.CertificateRequest) { x.Subject.CommonName = "system:node:pool-2" })
	if r.OwnName() == other.OwnName() || r.OwnName() == renamed.OwnName() {
		t.Errorf("%q twice", r.OwnName())
	}
	if junk := (kubeletcsr.Request{PEM: []byte("x")}); junk.OwnName() != "" {
		t.Errorf("what is no request has the name %q", junk.OwnName())
	}
}
