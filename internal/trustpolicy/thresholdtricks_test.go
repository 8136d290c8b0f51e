package trustpolicy_test

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// signedWith signs with a hash and an algorithm of one's choice: one key has several signatures of one text.
func signedWith(t *testing.T, s testkit.Signer, document []byte, hash, algorithm string) string {
	t.Helper()
	digest := sha512.Sum512(document)
	sum := digest[:]
	if hash == "sha256" {
		short := sha256.Sum256(document)
		sum = short[:]
	}
	data := append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{trustpolicy.Namespace, "", hash, sum})...)
	signer, ok := s.Signer.(ssh.AlgorithmSigner)
	if !ok {
		t.Fatalf("%T cannot choose its algorithm", s.Signer)
	}
	signature, err := signer.SignWithAlgorithm(rand.Reader, data, algorithm)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Blob{Magic: "SSHSIG", Version: 1, Key: s.PublicKey().Marshal(), Namespace: trustpolicy.Namespace, Hash: hash, Signature: ssh.Marshal(signature)}.Armor()
}

// Two of two roots, and one of them tries to be both.
func TestOneRootIsOneHoweverItIsSpeltOrSigns(t *testing.T) {
	a, b, rsa := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "rsa3072")
	document := []byte(testkit.PolicyDocument(a))
	sign := func(s testkit.Signer) string { return testkit.Sign(t, s, trustpolicy.Namespace, document) }
	certified := func(s testkit.Signer) string {
		return testkit.WithCertificate(t, sign(s), testkit.Certify(t, b, s.PublicKey(), []string{"root"}, nil))
	}
	pair := testkit.Roots(t, a, b)
	for name, tt := range map[string]struct {
		roots      *trustpolicy.Roots
		signatures []string
		want       decision.Reason
	}{
		"two keys":                           {pair, []string{sign(a), sign(b)}, decision.Verified},
		"one key twice":                      {pair, []string{sign(a), sign(a)}, decision.PolicyUnsigned},
		"one key, sha256 and sha512":         {pair, []string{signedWith(t, a, document, "sha256", ssh.KeyAlgoED25519), signedWith(t, a, document, "sha512", ssh.KeyAlgoED25519)}, decision.PolicyUnsigned},
		"two keys, sha256 and sha512":        {pair, []string{signedWith(t, a, document, "sha256", ssh.KeyAlgoED25519), signedWith(t, b, document, "sha512", ssh.KeyAlgoED25519)}, decision.Verified},
		"one RSA key, two algorithms":        {testkit.Roots(t, a, rsa), []string{signedWith(t, rsa, document, "sha512", ssh.KeyAlgoRSASHA256), signedWith(t, rsa, document, "sha512", ssh.KeyAlgoRSASHA512)}, decision.PolicyUnsigned},
		"an RSA key beside the other":        {testkit.Roots(t, a, rsa), []string{signedWith(t, rsa, document, "sha512", ssh.KeyAlgoRSASHA256), sign(a)}, decision.Verified},
		"a key and its certificate":          {pair, []string{sign(a), certified(a)}, decision.KeyTypeRefused},
		"certificates alone":                 {pair, []string{certified(a), certified(b)}, decision.KeyTypeRefused},
		"a block wrapped in other lines":     {pair, []string{sign(a), strings.Replace(sign(a), "\n", "\n\n", 1)}, decision.SignatureMalformed},
		"a block with its base64 re-encoded": {pair, []string{sign(a), strings.Replace(sign(a), "-----END", "=\n-----END", 1)}, decision.SignatureMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trustpolicy.Verify(trustpolicy.Signed{Document: document, Signatures: tt.signatures}, tt.roots, "any", testkit.Now())
			wantReason(t, err, tt.want)
		})
	}
	listed, err := trustpolicy.ParseRoots([]byte(a.Line + " alice\n" + a.Line + " bob\n# " + b.Line + "\n" + a.Line + "\n"))
	if err != nil || len(listed.Keys) != 1 || listed.Threshold != 1 {
		t.Errorf("one key in three lines: %+v, %v", listed, err)
	}
}
