package allowedsigners_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestRecordedSecurityKeys puts signatures that real tokens made to both readers, alone and with a
// certificate for the token's key.
func TestRecordedSecurityKeys(t *testing.T) {
	const (
		openssh    = "sshsig/openssh/regress/unittests/sshsig/testdata/"
		rustcrypto = "sshsig/rustcrypto/tests/examples/"
	)
	signedData := testkit.Corpus(t, openssh+"signed-data")
	ca := testkit.NewSigner(t, "ecdsa384")
	for name, v := range map[string]struct {
		signature, key, namespace string
		message                   []byte
	}{
		"OpenSSH's Ed25519":    {openssh + "ed25519_sk.sig", openssh + "ed25519_sk.pub", "unittest", signedData},
		"OpenSSH's ECDSA":      {openssh + "ecdsa_sk.sig", openssh + "ecdsa_sk.pub", "unittest", signedData},
		"RustCrypto's Ed25519": {rustcrypto + "sshsig_sk_ed25519", rustcrypto + "id_sk_ed25519_2.pub", "example", []byte("testing")},
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.TrimSpace(string(testkit.Corpus(t, v.key)))
			key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			raw := string(testkit.Corpus(t, v.signature))
			certified := testkit.WithCertificate(t, raw, testkit.Certify(t, ca, key, []string{"alice"}, nil))
			put := func(list, signature, identity string, revoked []byte, reason decision.Reason) {
				t.Helper()
				agree(t, question{list: list, signature: signature, identity: identity, namespace: v.namespace, message: v.message, revoked: revoked, now: testkit.Now()}, reason)
			}
			put("alice "+line, raw, "alice", nil, decision.Verified)
			put("alice "+line, raw, "alice", []byte{}, decision.Verified)
			put("alice "+line, raw, "alice", []byte(line+"\n"), decision.SignerRevoked)
			put("alice "+line, raw, "bob", nil, decision.SignerScope)
			put(`alice namespaces="git" `+line, raw, "alice", nil, decision.SignerScope)
			put("alice cert-authority "+line, raw, "alice", nil, decision.SignerUnknown)
			put("* cert-authority "+ca.Line, certified, "alice", nil, decision.Verified)
			put("* cert-authority "+ca.Line, certified, "bob", nil, decision.SignerScope)
			put("* cert-authority "+ca.Line, certified, "alice", []byte(line+"\n"), decision.SignerRevoked)
			put("* cert-authority "+ca.Line, certified, "alice", []byte(ca.Line+"\n"), decision.SignerRevoked)
			put("alice "+line, certified, "alice", nil, decision.SignerUnknown)
		})
	}
}
