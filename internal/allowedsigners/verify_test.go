package allowedsigners_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// agree wants our Reason, and that ssh-keygen accepts where we do and refuses where we do.
func agree(t *testing.T, q question, reason decision.Reason) {
	t.Helper()
	want(t, q, reason)
	if accepts := q.keygen(t); accepts != (reason == decision.Verified) {
		t.Errorf("ssh-keygen accepts: %v, our verdict is %s", accepts, reason)
	}
}

func TestWhoMaySign(t *testing.T) {
	key, other := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	signature := testkit.Sign(t, key, namespace, message)
	tests := map[string]struct {
		list, identity string
		want           decision.Reason
	}{
		"by name":                         {"alice " + key.Line, "alice", decision.Verified},
		"by another name":                 {"alice " + key.Line, "bob", decision.SignerScope},
		"by a name of another case":       {"alice " + key.Line, "Alice", decision.SignerScope},
		"by another key":                  {"alice " + other.Line, "alice", decision.SignerUnknown},
		"nobody":                          {"# nobody\n", "alice", decision.SignerUnknown},
		"by a pattern":                    {"join@* " + key.Line, "join@tls-a", decision.Verified},
		"beside a pattern":                {"join@* " + key.Line, "leave@tls-a", decision.SignerScope},
		"by one of several":               {"bob,alice " + key.Line, "alice", decision.Verified},
		"by anyone":                       {"* " + key.Line, "alice", decision.Verified},
		"an identity that is a pattern":   {"alice " + key.Line, "*", decision.SignerScope},
		"a negation after":                {"*,!alice " + key.Line, "alice", decision.SignerScope},
		"a negation before":               {"!alice,* " + key.Line, "alice", decision.SignerScope},
		"a negation of another":           {"!bob,* " + key.Line, "alice", decision.Verified},
		"a negated pattern":               {"*,!al* " + key.Line, "alice", decision.SignerScope},
		"negations alone":                 {"!bob " + key.Line, "alice", decision.SignerScope},
		"negated twice":                   {"!!alice,alice " + key.Line, "alice", decision.Verified},
		"a name with a blank":             {`"alice b" ` + key.Line, "alice b", decision.Verified},
		"half a name with a blank":        {`"alice b" ` + key.Line, "alice", decision.SignerScope},
		"namespaces":                      {`alice namespaces="git,kpssh" ` + key.Line, "alice", decision.Verified},
		"other namespaces":                {`alice namespaces="git" ` + key.Line, "alice", decision.SignerScope},
		"a pattern of namespaces":         {`alice namespaces="kp*" ` + key.Line, "alice", decision.Verified},
		"a namespace that is excluded":    {`alice namespaces="*,!kpssh" ` + key.Line, "alice", decision.SignerScope},
		"no namespace":                    {`alice namespaces="" ` + key.Line, "alice", decision.SignerScope},
		"a namespace after a blank":       {`alice namespaces="git, kpssh" ` + key.Line, "alice", decision.SignerScope},
		"a key that is an authority":      {"alice cert-authority " + key.Line, "alice", decision.SignerUnknown},
		"up to this second":               {`alice valid-before="20261130120000Z" ` + key.Line, "alice", decision.Verified},
		"up to the second before":         {`alice valid-before="20261130115959Z" ` + key.Line, "alice", decision.Expired},
		"from this second":                {`alice valid-after="20261130120000Z" ` + key.Line, "alice", decision.Verified},
		"from the next second":            {`alice valid-after="20261130120001Z" ` + key.Line, "alice", decision.NotYetValid},
		"from this minute":                {`alice valid-after="202611301200Z" ` + key.Line, "alice", decision.Verified},
		"up to this day":                  {`alice valid-before="20261130Z" ` + key.Line, "alice", decision.Expired},
		"of two lines the one that holds": {`alice valid-before="20200101Z" ` + key.Line + "\n* " + key.Line, "alice", decision.Verified},
		"of two misses the nearer":        {"bob " + key.Line + "\n" + `alice valid-before="20200101Z" ` + key.Line, "alice", decision.Expired},
		"the nearer one first":            {`alice valid-before="20200101Z" ` + key.Line + "\nbob " + key.Line, "alice", decision.Expired},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { agree(t, ask(tt.list, signature, tt.identity), tt.want) })
	}
	want(t, ask("* "+key.Line, signature, ""), decision.SignerUnknown)
	want(t, question{list: "* " + key.Line, signature: signature, identity: "a", namespace: "git", message: message}, decision.WrongNamespace)
	want(t, question{list: "* " + key.Line, signature: signature, identity: "a", namespace: namespace}, decision.SignatureInvalid)
	part := ask(`alice valid-before="20261130120000Z" `+key.Line, signature, "alice")
	part.now = part.now.Add(time.Second / 2) // ssh-keygen counts whole seconds
	agree(t, part, decision.Verified)
}

func TestCertificates(t *testing.T) {
	key, ca := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	signature := testkit.Sign(t, key, namespace, message)
	authority := "* cert-authority " + ca.Line
	certificate := func(change func(*ssh.Certificate)) string {
		return testkit.WithCertificate(t, signature, testkit.Certify(t, ca, key.PublicKey(), []string{"alice", "join@*"}, change))
	}
	good := certificate(nil)
	agree(t, ask(authority, good, "alice"), decision.Verified)
	agree(t, ask(authority, good, "join@*"), decision.Verified)
	agree(t, ask(authority, good, "bob"), decision.SignerScope)
	agree(t, ask(authority, good, "join@tls-a"), decision.SignerScope) // a pattern in a certificate is none
	agree(t, ask(authority, signature, "alice"), decision.SignerUnknown)
	agree(t, ask("bob cert-authority "+ca.Line, good, "alice"), decision.SignerScope)
	agree(t, ask("alice "+ca.Line, good, "alice"), decision.SignerUnknown)
	agree(t, ask("alice "+key.Line, good, "alice"), decision.SignerUnknown) // the certified key is not its raw self
	agree(t, ask("alice cert-authority "+key.Line, good, "alice"), decision.SignerUnknown)
	agree(t, ask(`alice cert-authority,namespaces="git" `+ca.Line, good, "alice"), decision.SignerScope)
	agree(t, ask(`alice cert-authority,valid-before="20200101Z" `+ca.Line, good, "alice"), decision.Expired)
	agree(t, ask("bob cert-authority "+ca.Line+"\n"+authority, good, "alice"), decision.Verified)
	end, start := uint64(testkit.Now().Unix()), uint64(testkit.Now().Unix()+1)
	agree(t, ask(authority, certificate(func(c *ssh.Certificate) { c.ValidBefore = end }), "alice"), decision.Expired)
	agree(t, ask(authority, certificate(func(c *ssh.Certificate) { c.ValidAfter = start }), "alice"), decision.NotYetValid)
	agree(t, ask(authority, certificate(func(c *ssh.Certificate) { c.CertType = ssh.HostCert }), "alice"), decision.KeyTypeRefused)
	want(t, ask(authority, certificate(func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"force-command": "x"} }), "alice"), decision.KeyTypeRefused)
}

func TestRevocation(t *testing.T) {
	key, other, ca := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	list := parse(t, "alice "+key.Line+"\nalice cert-authority "+ca.Line)
	raw := testkit.Sign(t, key, namespace, message)
	c := testkit.Certify(t, ca, key.PublicKey(), []string{"alice"}, nil)
	certified := testkit.WithCertificate(t, raw, c)
	tests := map[string]struct {
		signature, identity string
		revoked             revocation
		want                decision.Reason
	}{
		"the key":                        {raw, "alice", revocation{key.PublicKey()}, decision.SignerRevoked},
		"another key":                    {raw, "alice", revocation{other.PublicKey()}, decision.Verified},
		"everything":                     {raw, "alice", revocation{}, decision.SignerRevoked},
		"before the list is asked":       {raw, "bob", revocation{key.PublicKey()}, decision.SignerRevoked},
		"the certificate":                {certified, "alice", revocation{c}, decision.SignerRevoked},
		"another than the certificate":   {certified, "alice", revocation{other.PublicKey()}, decision.Verified},
		"the list asks for certificates": {certified, "alice", revocation{key.PublicKey()}, decision.Verified},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := decision.Verified
			if err := list.Verify(tt.identity, namespace, parseSignature(t, tt.signature), message, tt.revoked, testkit.Now()); err != nil {
				got = decision.From(err).Reason
			}
			if got != tt.want {
				t.Errorf("verdict is %s, want %s", got, tt.want)
			}
		})
	}
	if err := list.Verify("alice", namespace, parseSignature(t, raw), message[1:], revocation{}, testkit.Now()); decision.From(err).Reason != decision.SignatureInvalid {
		t.Errorf("a signature that does not verify is %v before revocation is asked", err)
	}
	if err := list.Verify("alice", namespace, parseSignature(t, raw), message, nil, testkit.Now()); err != nil {
		t.Errorf("without a list of revocations: %v", err)
	}
}

func TestMessagesNameTheLine(t *testing.T) {
	key := testkit.NewSigner(t, "ed25519")
	err := ask("# one\n\nbob "+key.Line, testkit.Sign(t, key, namespace, message), "alice").ours()
	if err == nil || !strings.Contains(err.What, "line 3") {
		t.Errorf("got %v", err)
	}
}
