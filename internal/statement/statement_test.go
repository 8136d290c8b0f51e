package statement_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestEveryReaderAgreesOnTheCases(t *testing.T) {
	cases := testkit.StatementCases(t)
	t.Logf("%d cases", len(cases))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := statement.Parse([]byte(c.Text))
			if !c.Valid {
				testkit.WantReason(t, err, decision.StatementRejected)
				return
			}
			testkit.WantReason(t, err, decision.Verified)
			if err == nil && string(s.Text()) != c.Text {
				t.Errorf("written again:\n%s", cmp.Diff(c.Text, string(s.Text())))
			}
		})
	}
}

func TestParse(t *testing.T) {
	bases := testkit.StatementBases()
	parse := func(kind string) *statement.Statement {
		s, err := statement.Parse([]byte(bases[kind]))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	roots := parse("roots")
	if roots.Kind != statement.KindRoots || roots.Serial != 2 || roots.Issued != 1795000000 || roots.Cluster != "prod-1" || roots.Roots.Threshold != 2 || len(roots.Roots.Keys) != 2 {
		t.Errorf("%+v", roots)
	}
	signers := parse("signers").Signers
	if signers.Expires != 1802776000 || signers.MaxValidityDays != 90 || signers.Thresholds != [4]int{1, 2, 1, 1} || len(signers.Lines) != 2 {
		t.Errorf("%+v", signers)
	}
	if diff := cmp.Diff([]statement.Floor{{Profile: "tls-bootstrap", Serial: 40}, {Profile: "web-*", Serial: 1}}, parse("floor").Floors); diff != "" {
		t.Error(diff)
	}
	want := statement.Reset{Profile: "tls-bootstrap", Mark: 41, SHA256: [4]string{strings.Repeat("0a", 32), strings.Repeat("1b", 32)}}
	if diff := cmp.Diff(want, *parse("reset").Reset); diff != "" {
		t.Error(diff)
	}
	if n := len(parse("revoke").Revoke); n != 2 {
		t.Errorf("%d revocations", n)
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	cases := testkit.StatementCases(t)
	for name, want := range map[string]string{
		"more than 64 KiB":             "bytes long, more than 65536",
		"a NUL":                        "line 4 holds a byte that is neither LF nor printable ASCII",
		"no last line break":           "does not end with a line break",
		"more than 1024 lines":         "lines, more than 1024",
		"two spaces":                   "line 2: words have one space between them",
		"serial 02":                    "line 2: \"02\" is not a decimal number",
		"text after end":               "here ends the statement",
		"another version":              "line 1: does not start with",
		"an unknown kind":              "line 1: \"root\" is not a kind",
		"no issued":                    "line 3: here stands a line \"issued\" and its value",
		"roots: a comment":             "line 6: a key stands here without a comment",
		"floor: without a serial":      "line 6: ",
		"signers: validity in seconds": "max-validity is a number of days",
		"nowhere":                      "says neither cluster nor target",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := statement.Parse([]byte(cases[name].Text))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// otherDigit is the fingerprint with bits set behind its last byte: no key has it.
const (
	fingerprint = "SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0"
	otherDigit  = "SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv1"
)

// What is built by hand is held to the same grammar.
func TestCheck(t *testing.T) {
	base := func() *statement.Statement {
		return &statement.Statement{Kind: statement.KindFloor, Serial: 1, Cluster: "a", Floors: []statement.Floor{{Profile: "a", Serial: 1}}}
	}
	tests := map[string]struct {
		change func(*statement.Statement)
		want   decision.Reason
	}{
		"as it is":            {func(*statement.Statement) {}, decision.Verified},
		"no serial":           {func(s *statement.Statement) { s.Serial = 0 }, decision.StatementRejected},
		"issued before 1970":  {func(s *statement.Statement) { s.Issued = -1 }, decision.StatementRejected},
		"issued much too far": {func(s *statement.Statement) { s.Issued = 1e15 }, decision.StatementRejected},
		"no body":             {func(s *statement.Statement) { s.Floors = nil }, decision.StatementRejected},
		"an unknown kind":     {func(s *statement.Statement) { s.Kind = "probe" }, decision.StatementRejected},
		"two bodies":          {func(s *statement.Statement) { s.Revoke = []string{"x"} }, decision.StatementRejected},
		"a key revoked": {func(s *statement.Statement) {
			s.Kind, s.Floors, s.Revoke = statement.KindRevoke, nil, []string{fingerprint}
		}, decision.Verified},
		"a revocation of no key": {func(s *statement.Statement) {
			s.Kind, s.Floors, s.Revoke = statement.KindRevoke, nil, []string{otherDigit}
		}, decision.StatementRejected},
		"for a host":          {func(s *statement.Statement) { s.Targets = []string{"host " + fingerprint} }, decision.Verified},
		"for a key of nobody": {func(s *statement.Statement) { s.Targets = []string{"host " + otherDigit} }, decision.StatementRejected},
		"a line break inside": {func(s *statement.Statement) { s.Cluster = "a\nserial 2" }, decision.StatementRejected},
		"a negative floor":    {func(s *statement.Statement) { s.Floors[0].Serial = -1 }, decision.StatementRejected},
		"a negative mark": {func(s *statement.Statement) {
			s.Kind, s.Floors, s.Reset = statement.KindReset, nil, &statement.Reset{Profile: "a", Mark: -1, SHA256: [4]string{strings.Repeat("0", 64)}}
		}, decision.StatementRejected},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := base()
			tt.change(s)
			testkit.WantReason(t, s.Check(), tt.want)
		})
	}
	many := base()
	many.Kind, many.Floors, many.Roots = statement.KindRoots, nil, &statement.Roots{Threshold: 1}
	for range 17 {
		many.Roots.Keys = append(many.Roots.Keys, testkit.NewSigner(t, "ed25519").PublicKey())
	}
	testkit.WantReason(t, many.Check(), decision.StatementRejected)
	many.Roots.Keys = many.Roots.Keys[:16]
	testkit.WantReason(t, many.Check(), decision.Verified)
	many.Roots.Threshold = 9
	testkit.WantReason(t, many.Check(), decision.StatementRejected)
	many.Roots.Keys, many.Roots.Threshold = []ssh.PublicKey{testkit.NewSigner(t, "rsa2048").PublicKey()}, 1
	testkit.WantReason(t, many.Check(), decision.StatementRejected)
}

func TestFor(t *testing.T) {
	for name, tt := range map[string]struct {
		s    statement.Statement
		want bool
	}{
		"its cluster":                    {statement.Statement{Cluster: "a"}, true},
		"another cluster":                {statement.Statement{Cluster: "b"}, false},
		"some hosts of its cluster":      {statement.Statement{Cluster: "a", Targets: []string{"class x"}}, false},
		"anywhere":                       {statement.Statement{Targets: []string{"any"}}, true},
		"some hosts of any cluster":      {statement.Statement{Targets: []string{"class x"}}, false},
		"nowhere, which no parser gives": {statement.Statement{}, false},
	} {
		if got := tt.s.For("a"); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestVerify(t *testing.T) {
	a, b, c := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	stranger := testkit.NewSigner(t, "ed25519")
	text := []byte(testkit.StatementBases()["floor"])
	sign := func(s testkit.Signer) string { return testkit.Sign(t, s, statement.Namespace, text) }
	roots := statement.Roots{Threshold: 2, Keys: []ssh.PublicKey{a.PublicKey(), b.PublicKey(), c.PublicKey()}}
	issued := time.Unix(1795000000, 0)
	tests := map[string]struct {
		roots      statement.Roots
		text       []byte
		signatures []string
		now        time.Time
		want       decision.Reason
	}{
		"two of three":             {roots, text, []string{sign(c), sign(a)}, issued, decision.Verified},
		"and a stranger":           {roots, text, []string{sign(stranger), sign(c), sign(a)}, issued, decision.Verified},
		"one":                      {roots, text, []string{sign(a)}, issued, decision.ThresholdNotMet},
		"one twice":                {roots, text, []string{sign(a), sign(a)}, issued, decision.ThresholdNotMet},
		"one and a stranger":       {roots, text, []string{sign(a), sign(stranger)}, issued, decision.ThresholdNotMet},
		"none":                     {roots, text, nil, issued, decision.ThresholdNotMet},
		"a policy's namespace":     {roots, text, []string{sign(a), testkit.Sign(t, b, "hostwarrant-policy", text)}, issued, decision.WrongNamespace},
		"other bytes":              {roots, append([]byte("x"), text...), []string{sign(a), sign(b)}, issued, decision.SignatureInvalid},
		"a newline more":           {roots, append(append([]byte(nil), text...), '\n'), []string{sign(a), sign(b)}, issued, decision.NewlineChanged},
		"two blocks in one":        {roots, text, []string{sign(a) + sign(b)}, issued, decision.SignatureMalformed},
		"seventeen":                {roots, text, make([]string, 17), issued, decision.StatementRejected},
		"a day ahead":              {roots, text, []string{sign(a), sign(b)}, issued.Add(-24 * time.Hour), decision.Verified},
		"more than a day ahead":    {roots, text, []string{sign(a), sign(b)}, issued.Add(-24*time.Hour - time.Second), decision.NotYetValid},
		"no roots":                 {statement.Roots{}, text, []string{sign(a), sign(b)}, issued, decision.ThresholdNotMet},
		"a threshold of nothing":   {statement.Roots{Keys: roots.Keys}, text, []string{sign(a), sign(b)}, issued, decision.ThresholdNotMet},
		"a threshold out of reach": {statement.Roots{Threshold: 4, Keys: roots.Keys}, text, []string{sign(a), sign(b), sign(c)}, issued, decision.ThresholdNotMet},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := statement.Verify(statement.Signed{Text: tt.text, Signatures: tt.signatures}, tt.roots, tt.now)
			testkit.WantReason(t, err, tt.want)
			if (s != nil) != (tt.want == decision.Verified) {
				t.Errorf("statement %v with %v", s, err)
			}
		})
	}
	big := []byte(strings.Repeat("x", statement.MaxBytes+1))
	_, err := statement.Verify(statement.Signed{Text: big, Signatures: []string{testkit.Sign(t, a, statement.Namespace, big)}}, statement.Roots{Threshold: 1, Keys: roots.Keys}, issued)
	testkit.WantReason(t, err, decision.StatementRejected)
	junk := []byte("not a statement\n")
	_, err = statement.Verify(statement.Signed{Text: junk, Signatures: []string{testkit.Sign(t, a, statement.Namespace, junk)}}, statement.Roots{Threshold: 1, Keys: roots.Keys}, issued)
	testkit.WantReason(t, err, decision.StatementRejected)
}

func TestNewRootsSignToo(t *testing.T) {
	old1, old2 := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	new1, new2 := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	s := statement.Statement{
		Kind: statement.KindRoots, Serial: 2, Issued: 1795000000, Cluster: "prod-1",
		Roots: &statement.Roots{Threshold: 2, Keys: []ssh.PublicKey{new1.PublicKey(), new2.PublicKey(), old1.PublicKey()}},
	}
	text := s.Text()
	sign := func(s testkit.Signer) string { return testkit.Sign(t, s, statement.Namespace, text) }
	old := statement.Roots{Threshold: 2, Keys: []ssh.PublicKey{old1.PublicKey(), old2.PublicKey()}}
	tests := map[string]struct {
		by   []testkit.Signer
		want decision.Reason
	}{
		"both generations":           {[]testkit.Signer{old1, old2, new1, new2}, decision.Verified},
		"in any order":               {[]testkit.Signer{new2, old2, new1, old1}, decision.Verified},
		"one that is in both counts": {[]testkit.Signer{old1, old2, new1}, decision.Verified},
		"the old alone":              {[]testkit.Signer{old1, old2}, decision.ThresholdNotMet},
		"the new alone":              {[]testkit.Signer{new1, new2, old1}, decision.ThresholdNotMet},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			signed := statement.Signed{Text: text}
			for _, by := range tt.by {
				signed.Signatures = append(signed.Signatures, sign(by))
			}
			got, err := statement.Verify(signed, old, time.Unix(1795000000, 0))
			testkit.WantReason(t, err, tt.want)
			if (got != nil) != (err == nil) {
				t.Errorf("%v with %v", got, err)
			}
		})
	}
	bad := statement.Signed{Text: text, Signatures: []string{sign(old1), sign(old2), testkit.Sign(t, new1, "git", text)}}
	_, err := statement.Verify(bad, old, time.Unix(1795000000, 0))
	testkit.WantReason(t, err, decision.WrongNamespace)
	if !s.Roots.Among(old1.PublicKey()) || s.Roots.Among(old2.PublicKey()) {
		t.Error("Among is wrong")
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range testkit.StatementBases() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := statement.Parse(text)
		if err != nil {
			testkit.WantReason(t, err, decision.StatementRejected)
			return
		}
		if string(s.Text()) != string(text) {
			t.Errorf("%q is written as %q", text, s.Text())
		}
	})
}
