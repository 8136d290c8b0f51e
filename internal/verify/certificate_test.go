package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// A certificate vouches for what it names literally, within the scope and the
// revocations of the authority that the policy lists.
func TestCertificates(t *testing.T) {
	root, ca, user := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	other := testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(ca), "name: signer-0", "name: ca, certAuthority: true, profiles: [tls*]", 1)
	revoked := func(key testkit.Signer) string {
		return document + "revoked: {signers: [\"" + key.Fingerprint + "\"]}\n"
	}
	plain := testkit.PolicyDocument(user)
	names := []string{"install@tls", "join@tls", "leave@tls", "uninstall@tls", "kpssh"}
	tests := map[string]struct {
		document   string
		ca         testkit.Signer
		principals []string
		change     func(*ssh.Certificate)
		profile    string
		want       decision.Reason
		where      string
	}{
		"by the authority":                    {document, ca, names, nil, "tls", decision.Verified, ""},
		"by another authority":                {document, other, names, nil, "tls", decision.SignerUnknown, "install"},
		"the authority listed as a plain key": {testkit.PolicyDocument(ca), ca, names, nil, "tls", decision.SignerUnknown, "install"},
		"the key listed, not the authority":   {plain, ca, names, nil, "tls", decision.SignerUnknown, "install"},
		"for another profile":                 {document, ca, names, nil, "tls-2", decision.SignerScope, "install"},
		"for a pattern":                       {document, ca, []string{"*@tls", "install@*", "*"}, nil, "tls", decision.SignerScope, "install"},
		"for upstream's name alone":           {document, ca, []string{"kpssh"}, nil, "tls", decision.SignerScope, "install"},
		"for all phases but one":              {document, ca, names[:3], nil, "tls", decision.SignerScope, "uninstall"},
		"beyond the authority's scope":        {document, ca, []string{"install@web", "join@web", "leave@web", "uninstall@web"}, nil, "web", decision.SignerScope, "install"},
		"ended":                               {document, ca, names, func(c *ssh.Certificate) { c.ValidBefore = uint64(testkit.Now().Unix()) }, "tls", decision.Expired, "install"},
		"not begun":                           {document, ca, names, func(c *ssh.Certificate) { c.ValidAfter = uint64(testkit.Now().Add(time.Second).Unix()) }, "tls", decision.NotYetValid, "install"},
		"of a host":                           {document, ca, names, func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, "tls", decision.KeyTypeRefused, "install"},
		"of a revoked key":                    {revoked(user), ca, names, nil, "tls", decision.SignerRevoked, "install"},
		"of a revoked authority":              {revoked(ca), ca, names, nil, "tls", decision.SignerRevoked, "install"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := verify.Snapshot{Policy: testkit.Policy(t, tt.document, root), Now: testkit.Now()}
			certificate := testkit.Certify(t, tt.ca, user.PublicKey(), tt.principals, tt.change)
			p := author{user, t, false}.profile(tt.profile)
			for phase := range p.Signatures {
				p.Signatures[phase] = testkit.WithCertificate(t, p.Signatures[phase], certificate)
			}
			d := verify.JoinProfile(s, p)
			wantDecision(t, d, tt.want, tt.where)
			if d.Allowed() && !strings.Contains(strings.Join(d.Warnings, " "), "karpenter-provider-ssh cannot verify") {
				t.Errorf("want a warning, got %q", d.Warnings)
			}
		})
	}
}

// One person with two certificates, or with a certificate and a key, is one person.
func TestCertificatesOfOneKeyCountOnce(t *testing.T) {
	root, ca, a, b := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(ca, a, b), "name: signer-0", "name: ca, certAuthority: true", 1)
	document = strings.Replace(document, "thresholds: {}", "thresholds: {join: 2}", 1)
	s := verify.Snapshot{Policy: testkit.Policy(t, document, root), Now: testkit.Now()}
	p := author{a, t, false}.profile("tls")
	own := p.Signatures[script.Join]
	certified := testkit.WithCertificate(t, own, testkit.Certify(t, ca, a.PublicKey(), []string{"join@tls"}, nil))
	p.Signatures[script.Join] = own + certified
	wantDecision(t, verify.Phase(s, p, script.Join), decision.ThresholdNotMet, "join")
	other := testkit.WithCertificate(t, author{b, t, false}.sign(p.Scripts[script.Join]), testkit.Certify(t, ca, b.PublicKey(), []string{"join@tls"}, nil))
	p.Signatures[script.Join] = certified + other // whoever holds the authority can make both
	wantDecision(t, verify.Phase(s, p, script.Join), decision.ThresholdNotMet, "join")
	p.Signatures[script.Join] = certified + other + own
	wantDecision(t, verify.Phase(s, p, script.Join), decision.Verified, "join")
	p.Signatures[script.Join] = certified + author{b, t, false}.sign(p.Scripts[script.Join])
	wantDecision(t, verify.Phase(s, p, script.Join), decision.Verified, "join")
}

// Two people, one of whom two authorities certified, are two whatever the order of their blocks.
func TestTheOrderOfCertificatesMakesNoDifference(t *testing.T) {
	root, x, y := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	a, b := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	document := testkit.PolicyDocument(x, y)
	for i := range 2 {
		document = strings.Replace(document, fmt.Sprint("name: signer-", i), fmt.Sprintf("name: ca-%d, certAuthority: true", i), 1)
	}
	document = strings.Replace(document, "thresholds: {}", "thresholds: {join: 2}", 1)
	s := verify.Snapshot{Policy: testkit.Policy(t, document, root), Now: testkit.Now()}
	p := author{a, t, false}.profile("tls")
	block := func(ca, key testkit.Signer) string {
		return testkit.WithCertificate(t, author{key, t, false}.sign(p.Scripts[script.Join]), testkit.Certify(t, ca, key.PublicKey(), []string{"join@tls"}, nil))
	}
	xa, ya, yb, xy := block(x, a), block(y, a), block(y, b), block(x, y)
	for name, tt := range map[string]struct {
		blocks []string
		want   decision.Reason
	}{
		"each by an authority of its own":    {[]string{xa, yb}, decision.Verified},
		"the first by both, its own last":    {[]string{ya, yb, xa}, decision.Verified},
		"the first by both, the other first": {[]string{yb, ya, xa}, decision.Verified},
		"one by both":                        {[]string{xa, ya}, decision.ThresholdNotMet},
		"both by one":                        {[]string{ya, yb}, decision.ThresholdNotMet},
		"an authority that is certified":     {[]string{xy, yb}, decision.ThresholdNotMet}, // who holds y made both
	} {
		t.Run(name, func(t *testing.T) {
			p.Signatures[script.Join] = strings.Join(tt.blocks, "")
			wantDecision(t, verify.Phase(s, p, script.Join), tt.want, "join")
		})
	}
}

// A signer for some targets vouches for those, and never for a script that goes anywhere.
func TestSignersForSomeTargets(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(signer), "name: signer-0", `name: signer-0, targets: ["class bm*"]`, 1)
	s := verify.Snapshot{Policy: testkit.Policy(t, document, root), Now: testkit.Now()}
	wantDecision(t, verify.JoinProfile(s, newVersion().signed(author{signer, t, false})), decision.Verified, "")
	other := newVersion()
	other.warrants[script.Join].Targets[0].Value = "vm"
	d := verify.JoinProfile(s, other.signed(author{signer, t, false}))
	wantDecision(t, d, decision.SignerScope, "join")
	if !strings.Contains(d.Message(), "for these targets") {
		t.Errorf("%q does not name the targets", d.Message())
	}
	wantDecision(t, verify.JoinProfile(s, author{signer, t, false}.profile("tls")), decision.SignerScope, "install")
}
