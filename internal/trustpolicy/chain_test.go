package trustpolicy_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// rootLine is three generations of roots, of which each shares a key with the next.
type rootLine struct {
	t          *testing.T
	a, b, c, d testkit.Signer
}

func newRootLine(t *testing.T) *rootLine {
	t.Helper()
	key := func() testkit.Signer { return testkit.NewSigner(t, "ed25519") }
	return &rootLine{t, key(), key(), key(), key()}
}

// quickly signs without asking ssh-keygen, which other tests do for the same code.
func quickly(t *testing.T, s testkit.Signer, namespace string, text []byte) string {
	t.Helper()
	signature, err := sshsig.Sign(rand.Reader, s, namespace, text)
	if err != nil {
		t.Fatal(err)
	}
	return string(signature)
}

// link names keys, threshold of which must sign, as a root version of cluster prod-1.
func link(version int64, threshold int, keys ...testkit.Signer) *statement.Statement {
	s := &statement.Statement{
		Kind: statement.KindRoots, Serial: version, Issued: testkit.Now().Add(-time.Hour).Unix(), Cluster: "prod-1",
		Roots: &statement.Roots{Threshold: threshold},
	}
	for _, k := range keys {
		s.Roots.Keys = append(s.Roots.Keys, k.PublicKey())
	}
	return s
}

func (l *rootLine) sign(s *statement.Statement, by ...testkit.Signer) statement.Signed {
	l.t.Helper()
	signed := statement.Signed{Text: s.Text()}
	for _, k := range by {
		signed.Signatures = append(signed.Signatures, quickly(l.t, k, statement.Namespace, signed.Text))
	}
	return signed
}

// second and third are the links of the good chain: {a, b} both → one of {b, c} → both of {c, d}.
func (l *rootLine) second() statement.Signed { return l.sign(link(2, 1, l.b, l.c), l.a, l.b) }
func (l *rootLine) third() statement.Signed  { return l.sign(link(3, 2, l.c, l.d), l.d, l.c) }

// policy is signed by roots of the version.
func (l *rootLine) policy(version string, chain []statement.Signed, by ...testkit.Signer) trustpolicy.Signed {
	l.t.Helper()
	document := strings.NewReplacer("rootVersion: 1", "rootVersion: "+version, "{any: {}}", "{prod-1: {}}").Replace(testkit.PolicyDocument(l.a))
	s := trustpolicy.Signed{Document: []byte(document), Chain: chain}
	for _, k := range by {
		s.Signatures = append(s.Signatures, quickly(l.t, k, trustpolicy.Namespace, s.Document))
	}
	return s
}

func TestTheChainIsWalkedForward(t *testing.T) {
	l := newRootLine(t)
	first := testkit.Roots(t, l.a, l.b)
	anchor := func(s statement.Signed) *trustpolicy.Roots {
		roots, err := trustpolicy.ParseRoots(s.Text)
		if err != nil {
			t.Fatal(err)
		}
		return roots
	}
	chain := []statement.Signed{l.second(), l.third()}
	stranger := testkit.NewSigner(t, "ed25519")
	sign := func(s statement.Signed, by ...testkit.Signer) []statement.Signed {
		for _, k := range by {
			s.Signatures = append(s.Signatures, quickly(t, k, statement.Namespace, s.Text))
		}
		return []statement.Signed{s}
	}
	later := link(2, 1, l.b, l.c)
	later.Issued = testkit.Now().Add(25 * time.Hour).Unix()
	elsewhere, partly := link(2, 1, l.b, l.c), link(2, 1, l.b, l.c)
	elsewhere.Cluster, partly.Targets = "prod-2", []string{"class bm"}
	anywhere := link(2, 1, l.b, l.c)
	anywhere.Cluster, anywhere.Targets = "", []string{"any"}
	floor := statement.Signed{Text: []byte(testkit.StatementBases()["floor"])}
	tests := map[string]struct {
		signed trustpolicy.Signed
		anchor *trustpolicy.Roots
		want   decision.Reason
	}{
		"no chain":                               {l.policy("1", nil, l.a, l.b), first, decision.Verified},
		"from the first to the third":            {l.policy("3", chain, l.c, l.d), first, decision.Verified},
		"from the second to the third":           {l.policy("3", chain, l.c, l.d), anchor(l.second()), decision.Verified},
		"at the third already":                   {l.policy("3", chain, l.c, l.d), anchor(l.third()), decision.Verified},
		"the second alone":                       {l.policy("2", chain[:1], l.b), first, decision.Verified},
		"by the anchor, without a chain":         {l.policy("3", nil, l.c, l.d), anchor(l.third()), decision.Verified},
		"a link for any cluster":                 {l.policy("2", sign(l.sign(anywhere), l.a, l.b), l.b), first, decision.Verified},
		"by too few of the last":                 {l.policy("3", chain, l.c), first, decision.PolicyUnsigned},
		"by the first, with the chain":           {l.policy("1", chain, l.a, l.b), first, decision.PolicyUnsigned},
		"by the second, beside the third":        {l.policy("2", chain, l.b, l.c), first, decision.PolicyUnsigned},
		"the last, with the first's version":     {l.policy("1", chain, l.c, l.d), first, decision.PolicyUnsigned},
		"a link that is left out":                {l.policy("3", chain[1:], l.c, l.d), first, decision.StatementRejected},
		"links in the wrong order":               {l.policy("3", []statement.Signed{chain[1], chain[0]}, l.c, l.d), first, decision.StatementRejected},
		"a link that the old did not sign":       {l.policy("2", sign(l.sign(link(2, 1, l.b, l.c)), l.b, l.c), l.b), first, decision.ThresholdNotMet},
		"a link that the new did not sign":       {l.policy("2", sign(l.sign(link(2, 2, l.b, l.c)), l.a, l.b), l.b), first, decision.ThresholdNotMet},
		"a link by one root twice":               {l.policy("2", sign(l.sign(link(2, 1, l.b, l.c)), l.b, l.b), l.b), first, decision.ThresholdNotMet},
		"a link by strangers":                    {l.policy("2", sign(l.sign(link(2, 1, stranger)), stranger), stranger), first, decision.ThresholdNotMet},
		"a link with the policy's namespace":     {l.policy("2", []statement.Signed{{Text: link(2, 1, l.b).Text(), Signatures: []string{testkit.Sign(t, l.a, trustpolicy.Namespace, link(2, 1, l.b).Text())}}}, l.b), first, decision.WrongNamespace},
		"a link whose bytes changed":             {l.policy("2", []statement.Signed{{Text: link(2, 1, l.b, l.d).Text(), Signatures: l.second().Signatures}}, l.b), first, decision.SignatureInvalid},
		"a link of another cluster":              {l.policy("2", sign(l.sign(elsewhere), l.a, l.b), l.b), first, decision.StatementRejected},
		"a link for a part of the cluster":       {l.policy("2", sign(l.sign(partly), l.a, l.b), l.b), first, decision.StatementRejected},
		"a link of tomorrow's tomorrow":          {l.policy("2", sign(l.sign(later), l.a, l.b), l.b), first, decision.NotYetValid},
		"a link that is no statement":            {l.policy("2", []statement.Signed{{Text: []byte("version: 2\n"), Signatures: []string{"x"}}}, l.b), first, decision.StatementRejected},
		"a statement of another kind":            {l.policy("2", sign(floor, l.a, l.b), l.b), first, decision.StatementRejected},
		"two links of one version":               {l.policy("2", []statement.Signed{l.second(), l.sign(link(2, 1, l.b, l.d), l.a, l.b)}, l.b), first, decision.RootFork},
		"a link like the anchor, other keys":     {l.policy("3", chain, l.c, l.d), anchor(l.sign(link(2, 1, l.b, l.d))), decision.RootFork},
		"the first version as other keys":        {l.policy("1", sign(l.sign(link(1, 2, l.a, l.c)), l.a), l.a, l.b), first, decision.RootFork},
		"the first version as another threshold": {l.policy("1", sign(l.sign(link(1, 1, l.a, l.b)), l.a), l.a, l.b), first, decision.RootFork},
		"the first version as a statement":       {l.policy("1", sign(l.sign(link(1, 2, l.b, l.a)), l.a), l.a, l.b), first, decision.Verified},
		"seventeen links":                        {l.policy("3", make([]statement.Signed, 17), l.c, l.d), first, decision.PolicyMalformed},
		"a link that goes back":                  {l.policy("3", []statement.Signed{chain[0], chain[1], chain[0]}, l.c, l.d), first, decision.StatementRejected},
		"a link twice":                           {l.policy("2", []statement.Signed{chain[0], chain[0]}, l.b), first, decision.StatementRejected},
		"a fork behind what follows it":          {l.policy("3", []statement.Signed{chain[0], chain[1], l.sign(link(2, 1, l.b, l.d), l.a, l.b)}, l.c, l.d), first, decision.RootFork},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := trustpolicy.Verify(tt.signed, tt.anchor, "prod-1", testkit.Now())
			wantReason(t, err, tt.want)
			if (p != nil) != (err == nil) {
				t.Errorf("policy %v with %v", p, err)
			}
			if err == nil && p.Roots().Version != p.RootVersion {
				t.Errorf("roots %+v", p.Roots())
			}
			if tt.want == decision.PolicyUnsigned {
				return
			}
			roots, err := tt.anchor.FollowFor(tt.signed.Chain, "prod-1", testkit.Now())
			wantReason(t, err, tt.want)
			if err == nil && roots.Version != p.RootVersion || err != nil && roots != nil {
				t.Errorf("FollowFor gives %+v", roots)
			}
		})
	}
	_, err := trustpolicy.Verify(l.policy("2", []statement.Signed{{Text: l.second().Text, Signatures: []string{l.second().Signatures[0], "x"}}}, l.b), first, "prod-1", testkit.Now())
	if at := decision.From(err).Where; at != "spec.rootChain[0].signatures[1]" {
		t.Errorf("the place is %q", at)
	}
}

func TestRootsMayNotGoBackOrFork(t *testing.T) {
	l := newRootLine(t)
	first := testkit.Roots(t, l.a, l.b)
	verify := func(s trustpolicy.Signed) *trustpolicy.Policy {
		p, err := trustpolicy.Verify(s, first, "prod-1", testkit.Now())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one := verify(l.policy("1", nil, l.a, l.b))
	two := verify(l.policy("2", []statement.Signed{l.second()}, l.b))
	three := verify(l.policy("3", []statement.Signed{l.second(), l.third()}, l.c, l.d))
	fork := verify(l.policy("2", []statement.Signed{l.sign(link(2, 1, l.b, l.d), l.a, l.b)}, l.b))
	for name, tt := range map[string]struct {
		next, current *trustpolicy.Policy
		want          decision.Reason
	}{
		"the roots that were replaced":        {one, two, decision.PolicyRollback},
		"two steps back":                      {one, three, decision.PolicyRollback},
		"another second generation":           {fork, two, decision.RootFork},
		"a fork under what came later":        {fork, three, decision.RootFork},
		"the same":                            {two, two, decision.Verified},
		"the next roots, the same version":    {two, one, decision.PolicyEquivocation},
		"what nobody verified, after nothing": {one, nil, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) { wantReason(t, tt.next.Supersedes(tt.current), tt.want) })
	}
}

func TestRootsAsAStatementOrPEM(t *testing.T) {
	l := newRootLine(t)
	roots, err := trustpolicy.ParseRoots(link(7, 2, l.a, l.b, l.c).Text())
	if err != nil || roots.Version != 7 || roots.Threshold != 2 || len(roots.Keys) != 3 {
		t.Errorf("%+v, %v", roots, err)
	}
	encode := func(s testkit.Signer) string {
		crypto, ok := s.PublicKey().(ssh.CryptoPublicKey)
		if !ok {
			t.Fatal("no crypto key")
		}
		der, err := x509.MarshalPKIXPublicKey(crypto.CryptoPublicKey())
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	ecdsa := testkit.NewSigner(t, "ecdsa256")
	text := encode(l.a) + "\n" + encode(ecdsa) + encode(l.a)
	roots, err = trustpolicy.ParseRoots([]byte(text))
	if err != nil || roots.Version != 1 || roots.Threshold != 2 || len(roots.Keys) != 2 || string(roots.Keys[1].Marshal()) != string(ecdsa.PublicKey().Marshal()) {
		t.Errorf("%+v, %v", roots, err)
	}
	for name, text := range map[string]string{
		"a statement of another kind": testkit.StatementBases()["floor"],
		"a broken statement":          testkit.StatementBases()["roots"] + "x\n",
		"a private key":               "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"a key and something else":    encode(l.a) + "hello\n",
		"a key and a line":            encode(l.a) + l.b.Line + "\n",
		"a broken key":                "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		"a weak key":                  encode(testkit.NewSigner(t, "rsa2048")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trustpolicy.ParseRoots([]byte(text))
			wantReason(t, err, decision.PolicyMalformed)
		})
	}
}

func TestTheDemoRootIsRefusedWhereItWouldDecide(t *testing.T) {
	demo, err := trustpolicy.ParseRoots([]byte("-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwIIkPTD5rGPP/bYmjRHxefAoCI1mwIiQMRA78xdS5rTT3zl06ygpY9D4A1zRrQjq2CkF5ciwO2kSJGe3h64jEw==\n-----END PUBLIC KEY-----\n"))
	if err != nil {
		t.Fatal(err)
	}
	own := testkit.NewSigner(t, "ed25519")
	roots := &trustpolicy.Roots{Version: 1, Threshold: 1, Keys: append(demo.Keys, own.PublicKey())}
	for mode, want := range map[string]decision.Reason{
		"mode: enforce": decision.DemoRoot,
		"mode: warn\nwarnUntil: \"2026-12-10T00:00:00Z\"": decision.Verified,
	} {
		document := []byte(strings.Replace(testkit.PolicyDocument(own), "mode: enforce", mode, 1))
		signed := trustpolicy.Signed{Document: document, Signatures: []string{testkit.Sign(t, own, trustpolicy.Namespace, document)}}
		_, err := trustpolicy.Verify(signed, roots, "any", testkit.Now())
		wantReason(t, err, want)
	}
}
