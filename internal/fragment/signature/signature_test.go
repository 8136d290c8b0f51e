package signature_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const digest = "64e283dfde9b08785c2544d46ceb4171e8e43ee68ed51072d02c7240dc3fb74a"

// certify makes a certificate of a key, signed by another one, which is good for an hour a year ago.
func certify(t *testing.T, key, by crypto.Signer) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "local-key"},
		NotBefore: testkit.Now().AddDate(-1, 0, 0), NotAfter: testkit.Now().AddDate(-1, 0, 0).Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func ecdsaKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign signs the digest, as the 64 digits that it is written in.
func sign(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(digest))
	der, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestCertificates(t *testing.T) {
	key, other, wide := ecdsaKey(t, elliptic.P256()), ecdsaKey(t, elliptic.P256()), ecdsaKey(t, elliptic.P384())
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := string(certify(t, key, key))
	block, _ := pem.Decode([]byte(good))
	spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		pem  string
		want decision.Reason
	}{
		"self-signed, over for a year":  {good, decision.Verified},
		"without its last line end":     {strings.TrimRight(good, "\n"), decision.Verified},
		"signed by another key":         {string(certify(t, key, other)), decision.SignatureInvalid},
		"two certificates":              {good + good, decision.SignatureMalformed},
		"text behind it":                {good + "x", decision.SignatureMalformed},
		"text before it":                {"x\n" + good, decision.SignatureMalformed},
		"another block before it":       {string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})) + good, decision.SignatureMalformed},
		"a bare public key":             {string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})), decision.SignatureMalformed},
		"a certificate by another name": {string(pem.EncodeToMemory(&pem.Block{Type: "TRUSTED CERTIFICATE", Bytes: block.Bytes})), decision.SignatureMalformed},
		"headers":                       {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes, Headers: map[string]string{"a": "b"}})), decision.SignatureMalformed},
		"no DER":                        {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), decision.SignatureMalformed},
		"DER with a byte behind it":     {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: append(block.Bytes[:len(block.Bytes):len(block.Bytes)], 0)})), decision.SignatureMalformed},
		"DER alone":                     {string(block.Bytes), decision.SignatureMalformed},
		"P-384":                         {string(certify(t, wide, wide)), decision.KeyTypeRefused},
		"Ed25519":                       {string(certify(t, ed, ed)), decision.KeyTypeRefused},
		"RSA":                           {string(certify(t, long, long)), decision.KeyTypeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := signature.Read(signature.Annotations([]byte(tt.pem), sign(t, key), testkit.Now()))
			testkit.WantReason(t, err, tt.want)
			if err != nil {
				return
			}
			testkit.WantReason(t, s.Verify(digest), decision.Verified)
			if print, err := signature.Fingerprint(&key.PublicKey); err != nil || print != s.Signer || !s.Key.Equal(&key.PublicKey) {
				t.Errorf("signer %s, want %s (%v)", s.Signer, print, err)
			}
		})
	}
}

// order is that of the group of P-256.
func order() *big.Int { return elliptic.P256().Params().N }

func TestSignatures(t *testing.T) {
	key, other := ecdsaKey(t, elliptic.P256()), ecdsaKey(t, elliptic.P256())
	good := sign(t, key)
	var s struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(good, &s); err != nil {
		t.Fatal(err)
	}
	marshal := func(r, s *big.Int) []byte {
		der, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	raw := make([]byte, 64)
	s.R.FillBytes(raw[:32])
	s.S.FillBytes(raw[32:])
	flipped := append([]byte{}, good...)
	flipped[len(flipped)-1] ^= 1
	for name, tt := range map[string]struct {
		der  []byte
		want decision.Reason
	}{
		"as it is":                 {good, decision.Verified},
		"with n − s":               {marshal(s.R, new(big.Int).Sub(order(), s.S)), decision.Verified},
		"r and s side by side":     {raw, decision.Tampered},
		"a byte behind it":         {append(append([]byte{}, good...), 0), decision.Tampered},
		"a bit flipped":            {flipped, decision.Tampered},
		"by another key":           {sign(t, other), decision.Tampered},
		"r beyond the group":       {marshal(new(big.Int).Add(s.R, order()), s.S), decision.Tampered},
		"zeros":                    {marshal(big.NewInt(0), big.NewInt(0)), decision.Tampered},
		"half of it":               {good[:len(good)/2], decision.Tampered},
		"of the digest's 32 bytes": {signBytes(t, key), decision.Tampered},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := signature.Read(signature.Annotations(certify(t, key, key), tt.der, testkit.Now()))
			if err != nil {
				t.Fatal(err)
			}
			testkit.WantReason(t, s.Verify(digest), tt.want)
			testkit.WantReason(t, s.Verify(strings.ToUpper(digest)), decision.Tampered)
		})
	}
}

// signBytes signs the digest as bytes, not as digits.
func signBytes(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	raw, err := hex.DecodeString(digest)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	der, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestAnnotations(t *testing.T) {
	key := ecdsaKey(t, elliptic.P256())
	for name, tt := range map[string]struct {
		change func(map[string]string)
		want   decision.Reason
	}{
		"as they are": {func(map[string]string) {}, decision.Verified},
		"display alone is gone": {func(a map[string]string) {
			delete(a, signature.AnnotationIssuer)
			delete(a, signature.AnnotationIdentity)
			delete(a, signature.AnnotationTimestamp)
		}, decision.Verified},
		"before 1970":    {func(a map[string]string) { a[signature.AnnotationTimestamp] = "-1" }, decision.Verified},
		"no signature":   {func(a map[string]string) { delete(a, signature.AnnotationSignature) }, decision.Unsigned},
		"no certificate": {func(a map[string]string) { delete(a, signature.AnnotationCertificate) }, decision.Tampered},
		"signature in two lines": {func(a map[string]string) {
			a[signature.AnnotationSignature] = a[signature.AnnotationSignature][:8] + "\n" + a[signature.AnnotationSignature][8:]
		}, decision.SignatureMalformed},
		"certificate with a line end": {func(a map[string]string) { a[signature.AnnotationCertificate] += "\n" }, decision.SignatureMalformed},
		"no padding":                  {func(a map[string]string) { a[signature.AnnotationSignature] = "MEU" }, decision.SignatureMalformed},
		"bits left over":              {func(a map[string]string) { a[signature.AnnotationSignature] = "MEUB" + "MF==" }, decision.SignatureMalformed},
		"the time in words":           {func(a map[string]string) { a[signature.AnnotationTimestamp] = "now" }, decision.SignatureMalformed},
		"an empty time":               {func(a map[string]string) { a[signature.AnnotationTimestamp] = "" }, decision.SignatureMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			all := signature.Annotations(certify(t, key, key), sign(t, key), testkit.Now())
			tt.change(all)
			_, err := signature.Read(all)
			testkit.WantReason(t, err, tt.want)
		})
	}
	all := signature.Annotations([]byte("c"), []byte("s"), time.Unix(1786469943, 0))
	if all[signature.AnnotationTimestamp] != "1786469943" || all[signature.AnnotationIssuer] != "local" || all[signature.AnnotationIdentity] != "local-key" || len(all) != 5 {
		t.Errorf("%v", all)
	}
}

// The published key, by its published name.
func TestFingerprint(t *testing.T) {
	block, _ := pem.Decode(testkit.Corpus(t, "fragments/node-agent/keys/ct-vendor.pub"))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		t.Fatalf("%T", key)
	}
	if got, err := signature.Fingerprint(public); err != nil || got != "key:162a08d59135652ee095ad2e0d927104c9e4eefe94f4ae844e7387ba1a7352d2" {
		t.Errorf("%s, %v", got, err)
	}
	_, err = signature.Fingerprint(nil)
	testkit.WantReason(t, err, decision.KeyTypeRefused)
	_, err = signature.Fingerprint(&ecdsaKey(t, elliptic.P384()).PublicKey)
	testkit.WantReason(t, err, decision.KeyTypeRefused)
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]bool{"": true, "YQ==": true, "YWI=": true, "YWJj": true, "YQ": false, "YR==": false, "YWI=\n": false, "YW\rI=": false, "YWI=.": false, "YW_-": false} {
		if got, ok := signature.Decode(text); ok != want || ok && base64.StdEncoding.EncodeToString(got) != text {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}

// A file is good where the one root signed it, and nothing is embedded.
func TestByRoot(t *testing.T) {
	root, other := ecdsaKey(t, elliptic.P256()), ecdsaKey(t, elliptic.P256())
	all := func() map[string]string {
		return signature.Annotations(certify(t, root, root), sign(t, root), testkit.Now())
	}
	embedded, unsigned := all(), all()
	embedded[signature.AnnotationContent] = ""
	delete(unsigned, signature.AnnotationSignature)
	for name, tt := range map[string]struct {
		annotations map[string]string
		digest      string
		root        *ecdsa.PublicKey
		want        decision.Reason
	}{
		"as it is":         {all(), digest, &root.PublicKey, decision.Verified},
		"another root":     {all(), digest, &other.PublicKey, decision.SignerUnknown},
		"another digest":   {all(), strings.Repeat("0", 64), &root.PublicKey, decision.Tampered},
		"embedded content": {embedded, digest, &root.PublicKey, decision.SignatureMalformed},
		"no signature":     {unsigned, digest, &root.PublicKey, decision.Unsigned},
		"no root":          {all(), digest, nil, decision.KeyTypeRefused},
		"a root of P-384":  {all(), digest, &ecdsaKey(t, elliptic.P384()).PublicKey, decision.KeyTypeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.WantReason(t, signature.ByRoot(tt.annotations, tt.digest, tt.root), tt.want)
		})
	}
}
