package kubeletcsr

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

const (
	// SignerName is the signer of a kubelet's client certificates.
	SignerName = "kubernetes.io/kube-apiserver-client-kubelet"

	// Group is the group of the bootstrap tokens that are made for one host each.
	Group = "system:bootstrappers:hostwarrant"

	// TokenUser is what the name of a user of such a token starts with; six characters of
	// the token's id follow, "hw" and four more.
	TokenUser = "system:bootstrap:"

	nodeUser     = "system:node:"
	organisation = "system:nodes"

	// maxRequest bounds the work on a request; one of an RSA key of 16384 bits takes 6 KiB.
	maxRequest = 16 << 10
)

// Request is what a CertificateSigningRequest says, and what the API server says of
// who made it.
type Request struct {
	PEM      []byte
	Signer   string
	Username string
	Groups   []string
	Usages   []string
}

// Ours reports whether a request was made with a token of the minter's, as far as
// its user says: by an id of ours, or in our group.
func (r Request) Ours() bool {
	return strings.HasPrefix(r.Username, TokenUser+"hw") || strings.HasPrefix(r.Username, TokenUser) && slices.Contains(r.Groups, Group)
}

// TokenID is the id of the token that the request was made with, "" where it was none.
func (r Request) TokenID() string {
	id, found := strings.CutPrefix(r.Username, TokenUser)
	if !found {
		return ""
	}
	return id
}

// Check says whether the request is for the client certificate of the kubelet of the
// node, made with the token, and gives its key. The error carries CSRMismatch.
func (r Request) Check(tokenID, node string) (ssh.PublicKey, error) {
	// check: CSRMismatch: whoever is no bootstrap token of ours asks in its name
	if tokenID == "" || r.Username != TokenUser+tokenID {
		return nil, mismatch("the request is by %.100q, not by the token %.40q", r.Username, tokenID)
	}
	// check: CSRMismatch: a token of somebody else's whose id looks like ours
	if !slices.Contains(r.Groups, Group) {
		return nil, mismatch("the request is by a token that is not in the group %s", Group)
	}
	// check: CSRMismatch: another signer's certificates are good for something else
	if r.Signer != SignerName {
		return nil, mismatch("the request is for the signer %.100q", r.Signer)
	}
	x, err := parse(r.PEM)
	if err != nil {
		return nil, err
	}
	if err := checkSubject(x, node); err != nil {
		return nil, err
	}
	if err := checkExtensions(x); err != nil {
		return nil, err
	}
	if err := checkAttributes(x); err != nil {
		return nil, err
	}
	return checkKey(x, r.Usages)
}

// Key is the key that a request is for, whatever else it says.
func Key(text []byte) (ssh.PublicKey, error) {
	x, err := parse(text)
	if err != nil {
		return nil, err
	}
	return ssh.NewPublicKey(x.PublicKey)
}

func mismatch(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.CSRMismatch, format, args...)
}

// parse reads exactly one block, whose key signed it.
func parse(text []byte) (*x509.CertificateRequest, error) {
	// check: CSRMismatch: work before verification must be bounded
	if len(text) > maxRequest {
		return nil, mismatch("the request is %d bytes long, more than %d", len(text), maxRequest)
	}
	block, _ := pem.Decode(text)
	// check: CSRMismatch: what is of another type, or says more than the request
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 {
		return nil, mismatch("the request is not one PEM block of type CERTIFICATE REQUEST")
	}
	// check: CSRMismatch: readers differ in which of several blocks they take, and in what they skip
	if !bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(pem.EncodeToMemory(block))) {
		return nil, mismatch("the request is not one PEM block alone, in lines of 64 characters that end with a line feed")
	}
	x, err := x509.ParseCertificateRequest(block.Bytes)
	// check: CSRMismatch: what cannot be read must not be guessed at
	if err != nil {
		return nil, mismatch("the request cannot be read as PKCS #10")
	}
	// check: CSRMismatch: a request for a key that its maker does not have
	if x.CheckSignature() != nil {
		return nil, mismatch("the request is not signed by its own key")
	}
	return x, nil
}

func checkSubject(x *x509.CertificateRequest, node string) error {
	// check: CSRMismatch: a token of one host that takes the name of another
	if node == "" || x.Subject.CommonName != nodeUser+node {
		return mismatch("the request is for %.253q, the run for the node %.253q", x.Subject.CommonName, node)
	}
	// check: CSRMismatch: each organisation is a group, system:masters among them
	if !slices.Equal(x.Subject.Organization, []string{organisation}) {
		return mismatch("the organisations are %.200q, not %q alone", x.Subject.Organization, organisation)
	}
	// check: CSRMismatch: a part of the name that we do not read and somebody else believes
	if len(x.Subject.Names) != 2 {
		return mismatch("the subject has %d parts, not one name and one organisation", len(x.Subject.Names))
	}
	return nil
}

// checkExtensions wants none, whatever they are: a kubelet asks for none.
func checkExtensions(x *x509.CertificateRequest) error {
	// check: CSRMismatch: other names make of a client's certificate a server's
	if len(x.DNSNames)+len(x.IPAddresses)+len(x.URIs)+len(x.EmailAddresses) > 0 {
		return mismatch("the request has subject alternative names")
	}
	// check: CSRMismatch: a CA's or any other certificate that a kubelet never asks for
	if len(x.Extensions) > 0 {
		return mismatch("the request has the extension %s", x.Extensions[0].Id)
	}
	return nil
}

// checkAttributes wants none: crypto/x509 skips attributes and values that it does not expect.
func checkAttributes(x *x509.CertificateRequest) error {
	var body struct {
		Version      int
		Subject, Key asn1.RawValue
		Attributes   []asn1.RawValue `asn1:"tag:0,set"`
	}
	rest, err := asn1.Unmarshal(x.RawTBSCertificateRequest, &body)
	// check: CSRMismatch: names where other readers find them, and we do not
	if err != nil || len(rest) > 0 || len(body.Attributes) > 0 {
		return mismatch("the request has attributes: a kubelet's has none")
	}
	// check: CSRMismatch: a version whose fields mean something else
	if body.Version != 0 {
		return mismatch("the request is of version %d, not 0", body.Version)
	}
	return nil
}

// checkKey wants a key that may vouch, and the usages that go with its type.
func checkKey(x *x509.CertificateRequest, usages []string) (ssh.PublicKey, error) {
	key, err := ssh.NewPublicKey(x.PublicKey)
	// check: CSRMismatch: a kind of key that no proof can name
	if err != nil {
		return nil, mismatch("the request is for a key of type %s", x.PublicKeyAlgorithm)
	}
	// check: CSRMismatch: a key that can be computed from its public half
	if err := sshsig.CheckKey(key); err != nil {
		return nil, mismatch("%s", decision.From(err).What)
	}
	want := []string{"client auth", "digital signature"}
	if key.Type() == ssh.KeyAlgoRSA {
		want = []string{"client auth", "digital signature", "key encipherment"}
	}
	// check: CSRMismatch: a certificate that serves, signs code or certifies
	if sorted := slices.Sorted(slices.Values(usages)); !slices.Equal(sorted, want) {
		return nil, mismatch("the usages are %.200q, not %q", usages, want)
	}
	return key, nil
}
