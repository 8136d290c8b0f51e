package proof_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const address = "10.0.0.7"

// hostCertificate is what a CA gives a host.
func hostCertificate(t testing.TB, ca testkit.Signer, key ssh.PublicKey, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	return testkit.Certify(t, ca, key, []string{"node-7.example", address}, func(c *ssh.Certificate) {
		c.CertType, c.Extensions = ssh.HostCert, nil
		if change != nil {
			change(c)
		}
	})
}

// TestWhoseProofCounts: a key that is named, or one that a named authority certifies for this host; nobody else's.
func TestWhoseProofCounts(t *testing.T) {
	host, other, ca, stranger := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	text := facts().Text()
	plain := testkit.Sign(t, host, proof.Namespace, text)
	with := func(by testkit.Signer, change func(*ssh.Certificate)) string {
		return testkit.WithCertificate(t, plain, hostCertificate(t, by, host.PublicKey(), change))
	}
	keys := func(of ...testkit.Signer) (all []ssh.PublicKey) {
		for _, s := range of {
			all = append(all, s.PublicKey())
		}
		return all
	}
	certified := proof.Host{Authorities: keys(ca), Principals: []string{address}}
	for name, tt := range map[string]struct {
		armored string
		host    proof.Host
		want    decision.Reason
	}{
		"its key":                              {plain, proof.Host{Keys: keys(other, host)}, decision.Verified},
		"no key at all":                        {plain, proof.Host{}, decision.ProofFailed},
		"another key":                          {plain, proof.Host{Keys: keys(other)}, decision.ProofFailed},
		"its authority's key in its place":     {plain, proof.Host{Keys: keys(ca), Authorities: keys(ca), Principals: []string{address}}, decision.ProofFailed},
		"a plain key beside an authority":      {plain, certified, decision.ProofFailed},
		"its key named as an authority":        {plain, proof.Host{Authorities: keys(host), Principals: []string{address}}, decision.ProofFailed},
		"its certificate":                      {with(ca, nil), certified, decision.Verified},
		"its key, with a certificate beside":   {with(stranger, nil), proof.Host{Keys: keys(host)}, decision.Verified},
		"a certificate by a stranger":          {with(stranger, nil), certified, decision.ProofFailed},
		"a certificate for another host":       {with(ca, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"10.0.0.8"} }), certified, decision.ProofFailed},
		"a certificate for a pattern":          {with(ca, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"10.0.0.*", "*"} }), certified, decision.ProofFailed},
		"a certificate for every host":         {with(ca, func(c *ssh.Certificate) { c.ValidPrincipals = nil }), certified, decision.KeyTypeRefused},
		"a certificate for a name of no host":  {with(ca, nil), proof.Host{Authorities: keys(ca)}, decision.ProofFailed},
		"a user's certificate":                 {with(ca, func(c *ssh.Certificate) { c.CertType = ssh.UserCert }), certified, decision.KeyTypeRefused},
		"a certificate with a critical option": {with(ca, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"a@b": ""} }), certified, decision.KeyTypeRefused},
		"a certificate that has ended":         {with(ca, func(c *ssh.Certificate) { c.ValidBefore = uint64(testkit.Now().Unix()) }), certified, decision.Expired},
		"a certificate for later":              {with(ca, func(c *ssh.Certificate) { c.ValidAfter = uint64(testkit.Now().Unix()) + 1 }), certified, decision.NotYetValid},
		"the certificate of another key":       {testkit.WithCertificate(t, plain, hostCertificate(t, ca, stranger.PublicKey(), nil)), certified, decision.SignatureInvalid},
		"the certificate of another type":      {testkit.WithCertificate(t, plain, hostCertificate(t, ca, other.PublicKey(), nil)), certified, decision.KeyTypeRefused},
		"a signature for something else":       {testkit.Sign(t, host, "hostwarrant-statement", text), proof.Host{Keys: keys(host)}, decision.WrongNamespace},
		"a signature of other facts":           {testkit.Sign(t, host, proof.Namespace, text[1:]), proof.Host{Keys: keys(host)}, decision.SignatureInvalid},
		"two signatures":                       {plain + plain, proof.Host{Keys: keys(host)}, decision.SignatureMalformed},
		"no signature":                         {"", proof.Host{Keys: keys(host)}, decision.SignatureMalformed},
		"a signature and more":                 {plain + "x", proof.Host{Keys: keys(host)}, decision.SignatureMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := proof.Verify(text, []byte(tt.armored), tt.host, question(), testkit.Now())
			testkit.WantReason(t, err, tt.want)
			if (got != nil) != (tt.want == decision.Verified) {
				t.Errorf("gave the facts %+v", got)
			}
		})
	}
}

// TestALongProofIsNotLookedAt: its length is judged before anything that costs work, the signature first.
func TestALongProofIsNotLookedAt(t *testing.T) {
	host := testkit.NewSigner(t, "ed25519")
	trust := proof.Host{Keys: []ssh.PublicKey{host.PublicKey()}}
	for length, want := range map[int]decision.Reason{proof.MaxBytes: decision.SignatureMalformed, proof.MaxBytes + 1: decision.Malformed} {
		_, err := proof.Verify(make([]byte, length), []byte("none"), trust, question(), testkit.Now())
		testkit.WantReason(t, err, want)
	}
}

// TestAProofAnswersItsQuestion: what was signed for another nonce, run or cluster says nothing here.
func TestAProofAnswersItsQuestion(t *testing.T) {
	host := testkit.NewSigner(t, "ed25519")
	trust := proof.Host{Keys: []ssh.PublicKey{host.PublicKey()}}
	f := facts()
	unset := facts()
	unset.Cluster = ""
	for name, tt := range map[string]struct {
		facts *proof.Facts
		asked proof.Question
		want  decision.Reason
	}{
		"its own":                         {f, question(), decision.Verified},
		"nothing asked":                   {f, proof.Question{}, decision.ProofFailed},
		"no nonce":                        {f, proof.Question{Cluster: f.Cluster, RunUID: f.RunUID}, decision.ProofFailed},
		"no run":                          {f, proof.Question{Cluster: f.Cluster, Nonce: f.Nonce}, decision.ProofFailed},
		"another nonce":                   {f, proof.Question{Cluster: f.Cluster, RunUID: f.RunUID, Nonce: strings.Repeat("0", 64)}, decision.ProofFailed},
		"another run":                     {f, proof.Question{Cluster: f.Cluster, RunUID: "11234567-89ab-cdef-0123-456789abcdef", Nonce: f.Nonce}, decision.ProofFailed},
		"another cluster":                 {f, proof.Question{Cluster: "prod-2", RunUID: f.RunUID, Nonce: f.Nonce}, decision.ProofFailed},
		"a host of a cluster, asked none": {f, proof.Question{RunUID: f.RunUID, Nonce: f.Nonce}, decision.ProofFailed},
		"a host that was told no cluster": {unset, question(), decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			text := tt.facts.Text()
			_, err := proof.Verify(text, []byte(testkit.Sign(t, host, proof.Namespace, text)), trust, tt.asked, testkit.Now())
			testkit.WantReason(t, err, tt.want)
		})
	}
	text := append(f.Text(), "mark a 1\n"...)
	_, err := proof.Verify(text, []byte(testkit.Sign(t, host, proof.Namespace, text)), trust, question(), testkit.Now())
	testkit.WantReason(t, err, decision.Malformed)
}

// FuzzParse: what is read has exactly one spelling.
func FuzzParse(f *testing.F) {
	f.Add(facts().Text())
	f.Add([]byte("hostwarrant-proof: v1\ncluster none\nend\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := proof.Parse(text)
		if err == nil && string(got.Text()) != string(text) {
			t.Errorf("read a second spelling:\n%s\nof\n%s", text, got.Text())
		}
	})
}
