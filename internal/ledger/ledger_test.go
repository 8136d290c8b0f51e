package ledger_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func wantReason(t *testing.T, err error, want decision.Reason) {
	t.Helper()
	if want == "" && err == nil {
		return
	}
	if e := decision.From(err); err == nil || e.Reason != want || e.Hint == "" {
		t.Errorf("got %v, want %q with a hint", err, want)
	}
}

func TestAMarkOnlyRises(t *testing.T) {
	five := ledger.Mark{Serial: 5, Digest: "sha256:a"}
	for name, tt := range map[string]struct {
		v     ledger.Mark
		named int64
		want  decision.Reason
	}{
		"the next":                   {ledger.Mark{Serial: 6, Digest: "sha256:b"}, 0, ""},
		"the same":                   {five, 0, ""},
		"lower":                      {ledger.Mark{Serial: 4, Digest: "sha256:a"}, 0, decision.SerialRollback},
		"equal, other scripts":       {ledger.Mark{Serial: 5, Digest: "sha256:b"}, 0, decision.SerialReused},
		"equal, no digest":           {ledger.Mark{Serial: 5}, 0, decision.SerialReused},
		"1000 above":                 {ledger.Mark{Serial: 1005}, 0, ""},
		"1001 above":                 {ledger.Mark{Serial: 1006}, 0, decision.SerialJump},
		"1000 above the named floor": {ledger.Mark{Serial: 3000}, 2000, ""},
		"1001 above the named floor": {ledger.Mark{Serial: 3001}, 2000, decision.SerialJump},
	} {
		t.Run(name, func(t *testing.T) { wantReason(t, five.Next(tt.v, tt.named), tt.want) })
	}
}

func TestTheFirstMarkIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		serial, floor int64
		exact         bool
		want          decision.Reason
	}{
		"a million":                {1_000_000, 0, false, ""},
		"more":                     {1_000_001, 0, false, decision.SerialJump},
		"1000 above its floor":     {2_001_000, 2_000_000, true, ""},
		"1001 above its floor":     {2_001_001, 2_000_000, true, decision.SerialJump},
		"a floor of 0 is a floor":  {1001, 0, true, decision.SerialJump},
		"1000 above a floor of 0":  {1000, 0, true, ""},
		"a floor that is a prefix": {2_000_000, 2_000_000, false, decision.SerialJump},
	} {
		t.Run(name, func(t *testing.T) {
			wantReason(t, ledger.First(ledger.Mark{Serial: tt.serial}, tt.floor, tt.exact), tt.want)
		})
	}
}

// line is generations of roots of cluster prod-1.
type line struct {
	t          *testing.T
	a, b, c, d testkit.Signer
}

func newLine(t *testing.T) *line {
	t.Helper()
	key := func() testkit.Signer { return testkit.NewSigner(t, "ed25519") }
	return &line{t, key(), key(), key(), key()}
}

func sign(t *testing.T, s testkit.Signer, namespace string, text []byte) string {
	t.Helper()
	signature, err := sshsig.Sign(rand.Reader, s, namespace, text)
	if err != nil {
		t.Fatal(err)
	}
	return string(signature)
}

// link makes one key the root of a version, signed by the one before and by itself.
func (l *line) link(version int64, key, before testkit.Signer) statement.Signed {
	s := &statement.Statement{
		Kind: statement.KindRoots, Serial: version, Issued: testkit.Now().Add(-time.Hour).Unix(), Cluster: "prod-1",
		Roots: &statement.Roots{Threshold: 1},
	}
	s.Roots.Keys = append(s.Roots.Keys, key.PublicKey())
	text := s.Text()
	return statement.Signed{Text: text, Signatures: []string{sign(l.t, before, statement.Namespace, text), sign(l.t, key, statement.Namespace, text)}}
}

func (l *line) chain() []statement.Signed {
	return []statement.Signed{l.link(2, l.b, l.a), l.link(3, l.c, l.b)}
}

// policy is verified from the anchor.
func (l *line) policy(anchor []byte, version, rootVersion string, chain []statement.Signed, by testkit.Signer, more string) *trustpolicy.Policy {
	l.t.Helper()
	roots, err := trustpolicy.ParseRoots(anchor)
	if err != nil {
		l.t.Fatal(err)
	}
	document := strings.NewReplacer("version: 3\n", "version: "+version+"\n", "rootVersion: 1", "rootVersion: "+rootVersion, "{any: {}}", "{prod-1: {}}").
		Replace(testkit.PolicyDocument(l.a)) + more
	s := trustpolicy.Signed{Document: []byte(document), Chain: chain, Signatures: []string{sign(l.t, by, trustpolicy.Namespace, []byte(document))}}
	p, err := trustpolicy.Verify(s, roots, "prod-1", testkit.Now())
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func TestPoliciesOnlyRiseOverRestarts(t *testing.T) {
	l := newLine(t)
	anchor := []byte(l.a.Line + "\n")
	was := ledger.Policy{}.Pinned(anchor).After(l.policy(anchor, "3", "1", nil, l.a, ""))
	for name, tt := range map[string]struct {
		p    *trustpolicy.Policy
		want decision.Reason
	}{
		"the same":                  {l.policy(anchor, "3", "1", nil, l.a, ""), ""},
		"the next":                  {l.policy(anchor, "4", "1", nil, l.a, ""), ""},
		"an older one":              {l.policy(anchor, "2", "1", nil, l.a, ""), decision.PolicyRollback},
		"other bytes":               {l.policy(anchor, "3", "1", nil, l.a, "# x\n"), decision.PolicyEquivocation},
		"1000 above":                {l.policy(anchor, "1003", "1", nil, l.a, ""), ""},
		"1001 above":                {l.policy(anchor, "1004", "1", nil, l.a, ""), decision.SerialJump},
		"by the next roots":         {l.policy(anchor, "4", "2", l.chain()[:1], l.b, ""), ""},
		"other roots of version 1":  {l.policy([]byte(l.d.Line+"\n"), "4", "1", nil, l.d, ""), decision.RootFork},
		"the same roots, respelled": {l.policy([]byte("# ours\n"+l.a.Line+" root\n"), "4", "1", nil, l.a, ""), ""},
	} {
		t.Run(name, func(t *testing.T) { wantReason(t, was.Check(tt.p), tt.want) })
	}
	first := l.policy(anchor, "999999", "1", nil, l.a, "")
	wantReason(t, ledger.Policy{}.Check(first), "")
}

func TestRotatedTwiceThenAStartWithTheFirstAnchor(t *testing.T) {
	l := newLine(t)
	anchor, chain := []byte(l.a.Line+"\n"), l.chain()
	third := l.policy(anchor, "5", "3", chain, l.c, "")
	was := ledger.Policy{}.Pinned(anchor).After(l.policy(anchor, "3", "1", nil, l.a, "")).After(l.policy(anchor, "4", "2", chain[:1], l.b, "")).After(third)
	if was.Version != 5 || was.RootVersion != 3 || was.RootDigest != trustpolicy.Digest(chain[1].Text) || was.Digest != third.Digest {
		t.Fatalf("record %+v", was)
	}
	wantReason(t, was.CheckAnchor(anchor, chain, "prod-1", testkit.Now()), "")
	wantReason(t, was.Check(third), "")
	wantReason(t, was.Check(l.policy(anchor, "6", "1", nil, l.a, "")), decision.PolicyRollback)
	wantReason(t, was.Check(l.policy(anchor, "6", "2", chain[:1], l.b, "")), decision.PolicyRollback)

	fork := []statement.Signed{chain[0], l.link(3, l.d, l.b)}
	wantReason(t, was.Check(l.policy(anchor, "6", "3", fork, l.d, "")), decision.RootFork)
	beyond := []statement.Signed{fork[0], fork[1], l.link(4, l.a, l.d)}
	wantReason(t, was.Check(l.policy(anchor, "6", "4", beyond, l.a, "")), decision.RootFork)
	honest := []statement.Signed{chain[0], chain[1], l.link(4, l.a, l.c)}
	wantReason(t, was.Check(l.policy(anchor, "6", "4", honest, l.a, "")), "")
	if lower := was.After(l.policy(anchor, "4", "2", chain[:1], l.b, "")); cmp.Diff(was, lower) != "" {
		t.Errorf("the record fell:\n%s", cmp.Diff(was, lower))
	}
}

func TestAnAnchorMovesAlongTheChainAlone(t *testing.T) {
	l := newLine(t)
	anchor, chain := []byte(l.a.Line+"\n"), l.chain()
	pinned := ledger.Policy{}.Pinned(anchor)
	later := pinned.Pinned(chain[0].Text)
	for name, tt := range map[string]struct {
		was     ledger.Policy
		roots   []byte
		chain   []statement.Signed
		cluster string
		want    decision.Reason
	}{
		"the first start":              {ledger.Policy{}, []byte(l.d.Line), nil, "prod-1", ""},
		"the same":                     {pinned, anchor, nil, "prod-1", ""},
		"the same keys, respelled":     {pinned, []byte("# ours\n" + l.a.Line + "\n"), nil, "prod-1", ""},
		"other keys":                   {pinned, []byte(l.d.Line), chain, "prod-1", decision.AnchorChanged},
		"more keys":                    {pinned, []byte(l.a.Line + "\n" + l.d.Line), chain, "prod-1", decision.AnchorChanged},
		"no keys":                      {pinned, []byte("x"), chain, "prod-1", decision.AnchorChanged},
		"the next link":                {pinned, chain[0].Text, chain, "prod-1", ""},
		"the last link":                {pinned, chain[1].Text, chain, "prod-1", ""},
		"a link without the chain":     {pinned, chain[0].Text, nil, "prod-1", decision.AnchorChanged},
		"a link that nobody signed":    {pinned, l.link(2, l.d, l.d).Text, []statement.Signed{l.link(2, l.d, l.d)}, "prod-1", decision.AnchorChanged},
		"a chain of another cluster":   {pinned, chain[0].Text, chain, "prod-2", decision.AnchorChanged},
		"back to the first":            {later, anchor, chain, "prod-1", decision.AnchorChanged},
		"from the second to the third": {later, chain[1].Text, chain, "prod-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantReason(t, tt.was.CheckAnchor(tt.roots, tt.chain, tt.cluster, testkit.Now()), tt.want)
		})
	}
}

// policies/ledger.yaml lets no digest of a root version go, and an anchor may say as a plain list what
// it said as a document.
func TestThePlainListOfADocumentsKeysLeavesItsDigest(t *testing.T) {
	l := newLine(t)
	document, list := l.link(1, l.a, l.a).Text, []byte(l.a.Line+"\n")
	first := ledger.Policy{}.Pinned(document).After(l.policy(document, "3", "1", nil, l.a, ""))
	if first.RootDigest != trustpolicy.Digest(document) {
		t.Fatalf("record %+v", first)
	}
	wantReason(t, first.CheckAnchor(list, nil, "prod-1", testkit.Now()), "")
	next := l.policy(list, "4", "1", nil, l.a, "")
	moved := first.Pinned(list)
	wantReason(t, moved.Check(next), "")
	after := moved.After(next)
	if after.RootDigest != first.RootDigest || after.Version != 4 {
		t.Errorf("record %+v", after)
	}
	wantReason(t, after.Check(l.policy(list, "5", "1", nil, l.a, "")), "")
	wantReason(t, after.Check(l.policy(document, "5", "1", nil, l.a, "")), "")
	other := statement.Signed{Text: append([]byte(nil), l.link(1, l.d, l.d).Text...)}
	wantReason(t, after.Check(l.policy(other.Text, "5", "1", nil, l.d, "")), decision.RootFork)
	second := after.After(l.policy(list, "5", "2", l.chain()[:1], l.b, ""))
	if second.RootVersion != 2 || second.RootDigest != trustpolicy.Digest(l.chain()[0].Text) {
		t.Errorf("record %+v", second)
	}
}

// The anchor may be ahead of the newest roots that a policy came with: then it tells nothing of those.
func TestAnAnchorOfALaterVersionIsNotComparedWithEarlierRoots(t *testing.T) {
	l := newLine(t)
	anchor := []byte(l.a.Line + "\n")
	was := ledger.Policy{}.Pinned(anchor).After(l.policy(anchor, "3", "1", nil, l.a, ""))
	wantReason(t, was.Pinned(l.chain()[0].Text).Check(l.policy(anchor, "4", "1", nil, l.a, "")), "")
	wantReason(t, was.Pinned([]byte(l.d.Line+"\n")).Check(l.policy(anchor, "4", "1", nil, l.a, "")), decision.RootFork)
}

func TestAResetIsUsedOnce(t *testing.T) {
	was := ledger.Policy{}.Use("a")
	if !was.ResetUsed("a") || was.ResetUsed("b") || cmp.Diff(was, was.Use("a")) != "" {
		t.Errorf("record %+v", was)
	}
	if more := was.Use("b"); !more.ResetUsed("a") || !more.ResetUsed("b") || was.ResetUsed("b") {
		t.Errorf("record %+v, then %+v", was, more)
	}
}
