package testkit

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// FragmentSigner is a P-256 key with the certificate that kubescape's tools make for one.
type FragmentSigner struct {
	Key         *ecdsa.PrivateKey
	Certificate []byte // PEM
	Fingerprint string // "key:…"
}

// NewFragmentSigner makes a key and its certificate.
func NewFragmentSigner(t testing.TB) FragmentSigner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "local-key"}, NotBefore: Now(), NotAfter: Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	print, err := fragment.Fingerprint(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return FragmentSigner{key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), print}
}

// Annotations sign any content, whether or not it is canonical.
func (s FragmentSigner) Annotations(t testing.TB, content []byte, embed bool) map[string]string {
	t.Helper()
	digest, err := fragment.Digest(content)
	if err != nil {
		t.Fatal(err)
	}
	message := sha256.Sum256([]byte(digest))
	signature, err := ecdsa.SignASN1(rand.Reader, s.Key, message[:])
	if err != nil {
		t.Fatal(err)
	}
	return fragment.Annotations(content, s.Certificate, signature, embed, Now())
}

// Sign signs an object, YAML or JSON, and gives it back as JSON with the annotations.
func (s FragmentSigner) Sign(t testing.TB, object string, embed bool) []byte {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	o, err := fragment.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	content, err := fragment.Content(o)
	if err != nil {
		t.Fatal(err)
	}
	return Annotate(t, text, s.Annotations(t, content, embed))
}

// Annotate adds annotations to an object in JSON.
func Annotate(t testing.TB, object []byte, annotations map[string]string) []byte {
	t.Helper()
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		t.Fatal("the object has no metadata")
	}
	all, ok := metadata["annotations"].(map[string]any)
	if !ok {
		all = map[string]any{}
	}
	for name, value := range annotations {
		all[name] = value
	}
	metadata["annotations"] = all
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
