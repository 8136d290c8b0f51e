package policyfile_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/policyfile"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func publicKey(t *testing.T, text []byte) *ecdsa.PublicKey {
	t.Helper()
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		t.Fatalf("%T", key)
	}
	return public
}

// The published policies, by the published root.
func TestPublishedFiles(t *testing.T) {
	root := publicKey(t, testkit.Corpus(t, "fragments/node-agent/keys/demo-root.pub"))
	for name, want := range map[string]decision.Reason{
		"node-agent/trust-policy.signed.json":               decision.Verified,
		"node-agent/trust-policy.profiles-only.signed.json": decision.Verified,
		"node-agent/trust-policy.badsigner.signed.json":     decision.SignerUnknown,
		"bob/trust-policy.signed.json":                      decision.Verified,
	} {
		t.Run(name, func(t *testing.T) {
			text := testkit.Corpus(t, "fragments/"+name)
			f, err := policyfile.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			testkit.WantReason(t, f.Verify(root), want)
			again, err := f.Encode()
			if err != nil || string(again) != string(text) {
				t.Errorf("written again it differs, %v", err)
			}
			if want != decision.Verified {
				return
			}
			f.Policy.PolicyVersion++
			testkit.WantReason(t, f.Verify(root), decision.Tampered)
		})
	}
}

// ed25519Certificate is a self-signed certificate of a key that the format does not have.
func ed25519Certificate(t *testing.T) *pem.Block {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return &pem.Block{Type: "CERTIFICATE", Bytes: der}
}

func TestNearMisses(t *testing.T) {
	root := publicKey(t, testkit.Corpus(t, "fragments/node-agent/keys/demo-root.pub"))
	text := string(testkit.Corpus(t, "fragments/node-agent/trust-policy.signed.json"))
	for name, tt := range map[string]struct {
		text string
		want decision.Reason
	}{
		"not JSON":                {"{", decision.Malformed},
		"an unknown field":        {strings.Replace(text, `"classes": {`, `"speed": 3, "classes": {`, 1), decision.Malformed},
		"an unknown field beside": {strings.Replace(text, `"policy": {`, `"extra": {}, "policy": {`, 1), decision.Malformed},
		"text behind it":          {text + "{}", decision.Malformed},
		"a field in other case":   {strings.Replace(text, `"classes"`, `"Classes"`, 1), decision.NotCanonical},
		"a field twice":           {strings.Replace(text, `"policy": {`, `"policy": {"mode": "alert"}, "policy": {`, 1), decision.NotCanonical},
		"an unknown mode":         {strings.Replace(text, `"classes": {`, `"mode": "Enforce", "classes": {`, 1), decision.Malformed},
		"no classes":              {`{"policy": {"classes": {}}, "annotations": {}}`, decision.Malformed},
		"a version below 0":       {`{"policy": {"classes": {"a":{"signers":null,"allowedSpecPaths":null}},"policyVersion":-1}, "annotations": {}}`, decision.Malformed},
		"more than a MiB":         {text + strings.Repeat(" ", policyfile.MaxFile), decision.TooLarge},
		"as it is":                {text, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policyfile.Parse([]byte(tt.text))
			testkit.WantReason(t, err, tt.want)
		})
	}
	_, err := policyfile.Parse([]byte(text + "{}"))
	if err == nil || !strings.Contains(err.Error(), "text behind the policy") {
		t.Errorf("text behind it: %v", err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(block *pem.Block) string { return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block)) }
	for name, tt := range map[string]struct {
		change func(*policyfile.File)
		want   decision.Reason
	}{
		"as it is":              {func(*policyfile.File) {}, decision.Verified},
		"spoofed identity":      {func(f *policyfile.File) { f.Annotations[signature.AnnotationIdentity] = "root" }, decision.Verified},
		"no signature":          {func(f *policyfile.File) { delete(f.Annotations, signature.AnnotationSignature) }, decision.Unsigned},
		"no certificate":        {func(f *policyfile.File) { delete(f.Annotations, signature.AnnotationCertificate) }, decision.Tampered},
		"content":               {func(f *policyfile.File) { f.Annotations[signature.AnnotationContent] = "" }, decision.SignatureMalformed},
		"a signature of spaces": {func(f *policyfile.File) { f.Annotations[signature.AnnotationSignature] += "\n" }, decision.SignatureMalformed},
		"half a signature":      {func(f *policyfile.File) { f.Annotations[signature.AnnotationSignature] = "MEUC" }, decision.Tampered},
		"no base64":             {func(f *policyfile.File) { f.Annotations[signature.AnnotationCertificate] = "-" }, decision.SignatureMalformed},
		"a key as certificate": {func(f *policyfile.File) {
			f.Annotations[signature.AnnotationCertificate] = encode(&pem.Block{Type: "PUBLIC KEY"})
		}, decision.SignatureMalformed},
		"an empty certificate": {func(f *policyfile.File) {
			f.Annotations[signature.AnnotationCertificate] = encode(&pem.Block{Type: "CERTIFICATE"})
		}, decision.SignatureMalformed},
		"two certificates": {func(f *policyfile.File) {
			one, err := base64.StdEncoding.DecodeString(f.Annotations[signature.AnnotationCertificate])
			if err != nil {
				t.Fatal(err)
			}
			f.Annotations[signature.AnnotationCertificate] = base64.StdEncoding.EncodeToString(append(one, one...))
		}, decision.SignatureMalformed},
		"another kind of key": {func(f *policyfile.File) {
			f.Annotations[signature.AnnotationCertificate] = encode(ed25519Certificate(t))
		}, decision.KeyTypeRefused},
		"a changed policy": {func(f *policyfile.File) { f.Policy.Mode = policyfile.Enforce }, decision.Tampered},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := policyfile.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			tt.change(f)
			testkit.WantReason(t, f.Verify(root), tt.want)
			testkit.WantReason(t, f.Verify(&other.PublicKey), decision.KeyTypeRefused)
		})
	}
}
