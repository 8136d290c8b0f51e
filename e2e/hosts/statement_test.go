//go:build linux

package hosts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// declaration is a statement on its way, with its signatures.
type declaration struct{ statement, sig string }

func (d declaration) text() string {
	return "kpssh-envelope: 1\nphase: statement\nstatement-b64: " + b64(d.statement) + "\nstatement-sig-b64: " + b64(d.sig) + "\n"
}

// says is a statement of a kind to this cluster; its body is the caller's.
func (w *world) says(kind statement.Kind, n int64) *statement.Statement {
	return &statement.Statement{Kind: kind, Serial: n, Issued: w.began.Add(-time.Minute).Unix(), Cluster: "lab"}
}

// floor is a statement that changes nothing for honest scripts: what its serial and its place do can be tried with it.
func (w *world) floor(n int64) *statement.Statement {
	s := w.says(statement.KindFloor, n)
	s.Floors = []statement.Floor{{Profile: "tls-*", Serial: 1}}
	return s
}

// signed is the statement with signatures of two roots, or of others.
func (w *world) signed(t *testing.T, s *statement.Statement, by ...testkit.Signer) declaration {
	t.Helper()
	must(t, s.Check())
	return w.signedText(t, string(s.Text()), by...)
}

func (w *world) signedText(t *testing.T, text string, by ...testkit.Signer) declaration {
	t.Helper()
	if by == nil {
		by = w.roots[:2]
	}
	return declaration{text, signatures(t, statement.Namespace, text, by...)}
}

// accepts sends a statement that the host must take.
func (w *world) accepts(t *testing.T, d declaration) {
	t.Helper()
	before := w.read(t, ranFile)
	if got := w.send(t, d.text()); got.code != 0 || w.read(t, ranFile) != before {
		t.Fatalf("answered %+v, want 0", got)
	}
}

// repeats sends a statement that the host has, which changes nothing.
func (w *world) repeats(t *testing.T, d declaration) {
	t.Helper()
	before := w.image(t)
	if got := w.send(t, d.text()); got.code != 0 {
		t.Errorf("sent again it answered %+v, want 0", got)
	}
	w.unchanged(t, before)
}

// TestAStatementNeedsItsRoots: who signed, how often, and for what.
func TestAStatementNeedsItsRoots(t *testing.T) {
	w := newWorld(t)
	s := w.floor(1)
	a, b, c := w.roots[0], w.roots[1], w.roots[2]
	for name, d := range map[string]struct {
		declaration
		want verdict
	}{
		"two of three":                {w.signed(t, s, a, c), verdict{}},
		"three of three":              {w.signed(t, s, a, b, c), verdict{}},
		"two roots and somebody":      {w.signed(t, s, w.mallory, b, c), verdict{}},
		"one of three":                {w.signed(t, s, a), verdict{2, "1 of the 2"}},
		"one key twice":               {w.signed(t, s, a, a), verdict{2, "1 of the 2"}},
		"a root and a day-to-day key": {w.signed(t, s, a, w.alice), verdict{2, "1 of the 2"}},
		"day-to-day keys":             {w.signed(t, s, w.alice, w.bob), verdict{2, "0 of the 2"}},
		"foreign roots":               {w.signed(t, s, w.mallory, w.rita), verdict{2, "0 of the 2"}},
		"nobody":                      {declaration{statement: string(s.Text())}, verdict{2, "verify:"}},
		"roots that signed a script":  {declaration{string(s.Text()), signatures(t, "kpssh", string(s.Text()), a, b)}, verdict{2, "verify:"}},
		"roots that signed a policy":  {declaration{string(s.Text()), signatures(t, "hostwarrant-policy", string(s.Text()), a, b)}, verdict{2, "verify:"}},
		"text between the signatures": {declaration{string(s.Text()), signatures(t, statement.Namespace, string(s.Text()), a) + "\n" + signatures(t, statement.Namespace, string(s.Text()), b)}, verdict{2, "verify:"}},
		"an edited text":              {declaration{strings.Replace(string(s.Text()), "tls-* 1", "tls-* 2", 1), w.signed(t, s).sig}, verdict{2, "0 of the 2"}},
		"seventeen blocks":            {w.signed(t, s, slices.Repeat([]testkit.Signer{a, b}, 9)[:17]...), verdict{2, "more than 16"}},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			if d.want.code == 0 {
				w.accepts(t, d.declaration)
				return
			}
			w.refuses(t, d.text(), d.want.code, d.want.says)
			w.accepts(t, w.signed(t, s))
		})
	}
	for name, trust := range map[string]map[string]string{
		"no root_signers":           {"root_signers": ""},
		"root_signers of nobody":    {"root_signers": "# nobody\n"},
		"roots for scripts":         {"root_signers": strings.ReplaceAll(testkit.RootSigners(w.roots[:]...), statement.Namespace, "kpssh")},
		"a root listed as a signer": {"root_signers": "", "allowed_signers": "root namespaces=\"hostwarrant-statement\" " + a.Line + "\n"},
		"the default, which is all": {"shim.conf": strings.Replace(w.conf(""), "root-threshold=2\n", "", 1)},
		"root_signers others write": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, trust)
			want := verdict{2, "signatures needed"}
			if signers, replaced := trust["root_signers"]; replaced && signers == "" {
				want.says = "takes no statements"
			}
			if trust == nil {
				w.root(t, "chmod 666 "+etcDir+"/root_signers")
				want = verdict{23, "root_signers"}
			}
			w.refuses(t, w.signed(t, s).text(), want.code, want.says)
		})
	}
	t.Run("the default, and all of them", func(t *testing.T) {
		w.reset(t, map[string]string{"shim.conf": strings.Replace(w.conf(""), "root-threshold=2\n", "", 1)})
		w.accepts(t, w.signed(t, s, a, b, c))
	})
	t.Run("roots sign no scripts", func(t *testing.T) {
		w.reset(t, nil)
		w.judge(t, w.join(t, "", a, b), verdict{2, "verify:"})
		w.judge(t, w.join(t, ""), verdict{})
	})
}

// TestAStatementGoesForwardOnly: replayed, equal, forked.
func TestAStatementGoesForwardOnly(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []statement.Kind{statement.KindFloor, statement.KindSigners, statement.KindRevoke, statement.KindReset} {
		t.Run(string(kind), func(t *testing.T) {
			w.reset(t, nil)
			of := func(n, variant int64) declaration {
				s := w.says(kind, n)
				switch kind {
				case statement.KindFloor:
					s.Floors = []statement.Floor{{Profile: "web-*", Serial: variant}}
				case statement.KindSigners:
					s.Signers = w.signers(variant, w.alice)
				case statement.KindRevoke:
					s.Revoke = []string{[]string{w.rita.Fingerprint, w.mallory.Fingerprint}[variant%2]}
				default:
					s.Reset = &statement.Reset{Profile: "web-a", Mark: variant, SHA256: [4]string{1: strings.Repeat("0a", 32)}}
				}
				return w.signed(t, s)
			}
			w.accepts(t, of(5, 1))
			w.repeats(t, of(5, 1))
			w.refuses(t, of(4, 1).text(), 20, "serial 4")
			w.refuses(t, of(1, 2).text(), 20, "serial 1")
			w.refuses(t, of(5, 2).text(), 21, "serial 5")
			w.accepts(t, of(6, 2))
			w.refuses(t, of(5, 1).text(), 20, "serial 5")
			w.accepts(t, of(999999999999999, 3))
			other := w.says(statement.KindFloor, 1) // serials of another kind are their own
			other.Floors = []statement.Floor{{Profile: "tls-*", Serial: 1}}
			if kind != statement.KindFloor {
				w.accepts(t, w.signed(t, other))
			}
		})
	}
}

// TestStatementsAtOnce come in any order, and the newest of them holds.
func TestStatementsAtOnce(t *testing.T) {
	w := newWorld(t)
	answers := make(chan answer)
	for n := range int64(6) {
		s := w.says(statement.KindFloor, n+1)
		s.Floors = []statement.Floor{{Profile: "tls-*", Serial: n + 1}}
		text := w.signed(t, s).text()
		go func() { answers <- w.send(t, text) }()
	}
	codes := map[int]int{}
	for range 6 {
		codes[(<-answers).code]++
	}
	if codes[0] == 0 || codes[0]+codes[20] != 6 {
		t.Errorf("answers %v, want 0 and 20", codes)
	}
	if floors := w.read(t, etcDir+"/floors"); floors != "tls-* 6\n" {
		t.Errorf("the floors are %q, want those of the newest", floors)
	}
	w.judge(t, w.join(t, ""), verdict{})
}

// signers is the body of a signers statement that lists alice alone, or others; n tells two apart.
func (w *world) signers(n int64, by ...testkit.Signer) *statement.Signers {
	s := &statement.Signers{Expires: w.began.Add(days(40)).Unix() + n, MaxValidityDays: 60, Thresholds: [4]int{1, 1, 1, 1}}
	for _, key := range by {
		s.Lines = append(s.Lines, testkit.SignerLine(key))
	}
	return s
}

// TestAStatementIsForItsPlaceAndTime.
func TestAStatementIsForItsPlaceAndTime(t *testing.T) {
	w := newWorld(t)
	own := ssh.FingerprintSHA256(w.host.HostKey)
	for name, c := range map[string]struct {
		change func(*statement.Statement)
		want   verdict
	}{
		"its cluster":                  {func(*statement.Statement) {}, verdict{}},
		"any":                          {func(s *statement.Statement) { s.Cluster, s.Targets = "", []string{"any"} }, verdict{}},
		"its class":                    {func(s *statement.Statement) { s.Cluster, s.Targets = "", []string{"class bm"} }, verdict{}},
		"the host":                     {func(s *statement.Statement) { s.Targets = []string{"host " + own} }, verdict{}},
		"another cluster":              {func(s *statement.Statement) { s.Cluster = "prod-1" }, verdict{15, "another cluster, class or host"}},
		"another class":                {func(s *statement.Statement) { s.Targets = []string{"class gpu"} }, verdict{15, "another cluster, class or host"}},
		"another host":                 {func(s *statement.Statement) { s.Targets = []string{"host " + w.mallory.Fingerprint} }, verdict{15, "another cluster, class or host"}},
		"its class of another cluster": {func(s *statement.Statement) { s.Cluster, s.Targets = "prod-1", []string{"class bm"} }, verdict{15, "another cluster, class or host"}},
		"issued in 2099":               {func(s *statement.Statement) { s.Issued = 4070908800 }, verdict{17, ""}},
		"issued two days ahead":        {func(s *statement.Statement) { s.Issued = w.began.Add(days(2)).Unix() }, verdict{17, ""}},
		"issued twenty hours ahead":    {func(s *statement.Statement) { s.Issued = w.began.Add(20 * time.Hour).Unix() }, verdict{}},
		"issued long ago":              {func(s *statement.Statement) { s.Issued = 1 }, verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			s := w.floor(1)
			c.change(s)
			d := w.signed(t, s)
			if c.want.code == 0 {
				w.accepts(t, d)
				w.judge(t, w.join(t, ""), verdict{})
				return
			}
			w.refuses(t, d.text(), c.want.code, c.want.says)
		})
	}
	t.Run("a cluster, on a host that knows of none", func(t *testing.T) {
		w.reset(t, map[string]string{"cluster": ""})
		w.refuses(t, w.signed(t, w.floor(1)).text(), 15, "another cluster, class or host")
	})
}

// TestWhatIsNoStatement: texts that the roots signed and that are none, and envelopes that carry more.
func TestWhatIsNoStatement(t *testing.T) {
	w := newWorld(t)
	honest := string(w.floor(1).Text())
	reset := strings.NewReplacer("v1 floor", "v1 reset", "floor tls-* 1\n", "profile NAME\nmark 1\nsha256 join "+strings.Repeat("0a", 32)+"\n").Replace(honest)
	for name, text := range map[string]string{
		"a reset of a path":  strings.Replace(reset, "NAME", "a/b", 1),
		"nothing":            "",
		"CR LF":              strings.ReplaceAll(honest, "\n", "\r\n"),
		"a NUL":              strings.Replace(honest, "lab", "lab\x00", 1),
		"no end":             strings.TrimSuffix(honest, "end\n"),
		"two":                honest + honest,
		"no place":           strings.Replace(honest, "cluster lab\n", "", 1),
		"an unknown kind":    strings.Replace(honest, "v1 floor", "v1 format", 1),
		"a script":           "#!/bin/sh\ntouch /tmp/evil\n",
		"a trust policy":     "version: 3\n",
		"a floor of a path":  strings.Replace(honest, "tls-*", "../../x", 1),
		"more than 64 KiB":   strings.Replace(honest, "floor tls-* 1\n", strings.Repeat("floor a 1\n", 7000), 1),
		"no last line break": strings.TrimSuffix(honest, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			w.refuses(t, w.signedText(t, text).text(), 4, "")
		})
	}
	d, o := w.signed(t, w.floor(1)), w.join(t, "")
	run := strings.TrimPrefix(o.text(), "kpssh-envelope: 1\nphase: join\n")
	for name, text := range map[string]string{
		"a script beside a statement":    d.text() + run,
		"a statement beside a script":    o.text() + strings.TrimPrefix(d.text(), "kpssh-envelope: 1\nphase: statement\n"),
		"a statement as a join":          strings.Replace(d.text(), "phase: statement", "phase: join", 1),
		"a join as a statement":          strings.Replace(o.text(), "phase: join", "phase: statement", 1),
		"no signatures":                  "kpssh-envelope: 1\nphase: statement\nstatement-b64: " + b64(d.statement) + "\n",
		"two statements in one envelope": d.text() + "statement-b64: " + b64(d.statement) + "\n",
	} {
		t.Run(name, func(t *testing.T) { w.refuses(t, text, 4, "envelope: ") })
	}
	w.accepts(t, d)
	w.judge(t, o, verdict{})
}

// TestWhatStatementsChange, each kind with what held before and what holds after.
func TestWhatStatementsChange(t *testing.T) {
	w := newWorld(t)
	t.Run("signers", w.signersChange)
	t.Run("signers that end", w.signersEnd)
	t.Run("revoke", w.revokeChanges)
	t.Run("floor", w.floorChanges)
	t.Run("reset", w.resetChanges)
	t.Run("roots", w.rootsChange)
	t.Run("files that somebody edits", w.filesStay)
}

func (w *world) signersChange(t *testing.T) {
	w.reset(t, nil)
	dave := testkit.NewSigner(t, "ed25519")
	w.judge(t, w.join(t, "", dave), verdict{2, "verify:"})
	s := w.says(statement.KindSigners, 1)
	s.Signers = w.signers(0, dave, w.bob)
	s.Signers.Thresholds[2] = 2 // leave
	w.accepts(t, w.signed(t, s))
	w.judge(t, w.join(t, "", dave), verdict{})
	w.judge(t, w.join(t, "", w.alice), verdict{2, "verify:"})
	leave := w.warrant(script.Leave, w.profile())
	w.judge(t, w.order(t, leave, "", dave), verdict{2, "1 of the 2"})
	w.judge(t, w.order(t, leave, "", dave, w.bob), verdict{})
	long := w.warrant(script.Join, w.profile()) // shim.conf says 90 days, the statement 60
	long.NotAfter = w.began.Add(days(61)).Unix()
	w.judge(t, w.order(t, long, "", dave), verdict{18, "more than 60 days"})
	s.Serial, s.Signers = 2, w.signers(0, w.alice)
	w.accepts(t, w.signed(t, s))
	w.judge(t, w.join(t, "", dave), verdict{2, "verify:"})
	w.judge(t, w.join(t, "", w.alice), verdict{})
}

func (w *world) signersEnd(t *testing.T) {
	w.reset(t, nil)
	all := w.version(t, w.profile(), serial, neverLeaves)
	w.judge(t, all.join, verdict{})
	s := w.says(statement.KindSigners, 1)
	s.Issued = w.began.Add(-days(2)).Unix()
	s.Signers = w.signers(0, w.alice)
	s.Signers.Expires = w.began.Add(-days(1)).Unix()
	w.accepts(t, w.signed(t, s))
	w.judge(t, all.join, verdict{18, "list of signers"})
	w.judge(t, w.leave(t, ""), verdict{18, "list of signers"})
	w.judge(t, all.leave, verdict{})
	s.Serial, s.Signers = 2, w.signers(0, w.alice)
	w.accepts(t, w.signed(t, s))
	w.judge(t, all.join, verdict{})
}

func (w *world) revokeChanges(t *testing.T) {
	w.reset(t, nil)
	s := w.says(statement.KindRevoke, 1)
	s.Revoke = []string{w.alice.Fingerprint}
	first := w.signed(t, s)
	w.accepts(t, first)
	w.judge(t, w.join(t, "", w.alice), verdict{13, "revoked"})
	w.judge(t, w.join(t, "", w.bob), verdict{})
	w.judge(t, w.join(t, "", w.rita), verdict{}) // the whole set was replaced
	s.Serial, s.Revoke = 2, []string{w.alice.Fingerprint, w.bob.Fingerprint, w.rita.Fingerprint}
	slices.Sort(s.Revoke)
	w.accepts(t, w.signed(t, s))
	for _, key := range []testkit.Signer{w.alice, w.bob, w.rita} {
		w.judge(t, w.join(t, "", key), verdict{13, "revoked"})
	}
	w.refuses(t, first.text(), 20, "serial 1")
	dave, next := testkit.NewSigner(t, "ed25519"), w.says(statement.KindSigners, 1)
	next.Signers = w.signers(0, dave)
	w.accepts(t, w.signed(t, next)) // the last signer is revoked, and the roots still reach the host
	w.judge(t, w.join(t, "", dave), verdict{})
	w.judge(t, w.join(t, "", w.alice), verdict{2, "verify:"})
}

func (w *world) floorChanges(t *testing.T) {
	w.reset(t, nil)
	profile := w.profile()
	all := w.version(t, profile, serial, neverLeaves)
	w.judge(t, all.join, verdict{})
	s := w.says(statement.KindFloor, 1)
	s.Floors = []statement.Floor{{Profile: "tls-*", Serial: 1}, {Profile: profile, Serial: 50}}
	w.accepts(t, w.signed(t, s))
	w.judge(t, all.join, verdict{20, "serial 42"})
	w.judge(t, w.version(t, profile, 50, neverLeaves).join, verdict{})
	w.judge(t, w.join(t, ""), verdict{})
	s.Serial, s.Floors = 2, []statement.Floor{{Profile: "tls-*", Serial: 1}}
	w.accepts(t, w.signed(t, s))
	w.judge(t, all.join, verdict{20, "serial 42"}) // marks are not lowered by it
	s.Serial, s.Floors = 3, []statement.Floor{{Profile: "web-*", Serial: 1}}
	w.accepts(t, w.signed(t, s))
	w.judge(t, w.join(t, ""), verdict{22, "no mark and no floor"})
}

func (w *world) resetChanges(t *testing.T) {
	w.reset(t, nil)
	profile := w.profile()
	old, bad, next := w.version(t, profile, 42, neverLeaves), w.version(t, profile, 900, neverLeaves), w.version(t, profile, 43, neverLeaves)
	w.judge(t, old.join, verdict{})
	w.judge(t, bad.join, verdict{})
	w.judge(t, next.join, verdict{20, "serial 43"})
	s := w.says(statement.KindReset, 1)
	s.Reset = &statement.Reset{Profile: profile, Mark: 42, SHA256: [4]string{1: old.join.sha256()}}
	d := w.signed(t, s)
	w.accepts(t, d)
	other := w.order(t, w.warrant(script.Join, profile), "echo other\n", w.alice)
	w.judge(t, other, verdict{21, "another join script"})
	w.judge(t, old.join, verdict{})
	w.judge(t, next.join, verdict{})
	w.judge(t, old.join, verdict{20, "serial 42"})
	w.repeats(t, d) // replayed after the mark rose
	w.judge(t, old.join, verdict{20, "serial 42"})
	w.judge(t, w.version(t, w.profile(), 7, neverLeaves).join, verdict{})
}

func (w *world) rootsChange(t *testing.T) {
	w.reset(t, nil)
	d, e, f := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	generation := func(n int64, threshold int, keys ...testkit.Signer) *statement.Statement {
		s := w.says(statement.KindRoots, n)
		s.Cluster, s.Targets = "", []string{"any"}
		s.Roots = &statement.Roots{Threshold: threshold}
		for _, key := range keys {
			s.Roots.Keys = append(s.Roots.Keys, key.PublicKey())
		}
		return s
	}
	a, b := w.roots[0], w.roots[1]
	second, third := generation(2, 2, d, e), generation(3, 1, f)
	w.refuses(t, w.signed(t, second, a, b).text(), 2, "0 of the 2")
	w.refuses(t, w.signed(t, second, a, b, d).text(), 2, "1 of the 2")
	w.refuses(t, w.signed(t, second, d, e).text(), 2, "0 of the 2")
	w.refuses(t, w.signed(t, second, a, d, e).text(), 2, "1 of the 2")
	w.refuses(t, w.signed(t, third, a, b, f).text(), 20, "link by link")
	w.refuses(t, w.signed(t, generation(1, 1, d), a, b, d).text(), 20, "serial 1")
	link := w.signed(t, second, a, b, d, e)
	w.accepts(t, link)
	w.repeats(t, w.signed(t, second, d, e))
	w.refuses(t, w.signed(t, w.floor(1), a, b).text(), 2, "0 of the 2")
	w.refuses(t, w.signed(t, generation(2, 1, f), d, e, f).text(), 21, "serial 2")
	w.accepts(t, w.signed(t, w.floor(1), d, e))
	w.accepts(t, w.signed(t, third, d, e, f))
	w.refuses(t, w.signed(t, w.floor(2), d, e).text(), 2, "0 of the 1")
	w.accepts(t, w.signed(t, w.floor(2), f))
	w.judge(t, w.join(t, ""), verdict{})
}

// filesStay: the kept statements are the truth, whatever the files say that were made from them.
func (w *world) filesStay(t *testing.T) {
	w.reset(t, nil)
	s, r := w.says(statement.KindSigners, 1), w.says(statement.KindRevoke, 1)
	s.Signers, r.Revoke = w.signers(0, w.alice, w.bob), []string{w.bob.Fingerprint}
	w.accepts(t, w.signed(t, s))
	w.accepts(t, w.signed(t, r))
	for name, plant := range map[string]string{
		"a signer added":         "echo 'join@* namespaces=\"kpssh\" " + w.mallory.Line + "' >>" + etcDir + "/allowed_signers",
		"the signers gone":       "rm " + etcDir + "/allowed_signers",
		"revocations emptied":    ": >" + etcDir + "/revoked_keys",
		"revocations gone":       "rm " + etcDir + "/revoked_keys",
		"the list of files gone": "rm " + stateDir + "/statements/rendered; : >" + etcDir + "/revoked_keys",
	} {
		t.Run(name, func(t *testing.T) {
			w.root(t, plant)
			got := w.send(t, w.join(t, "", w.mallory).text())
			if got.code != 2 {
				t.Errorf("mallory: answered %+v, want 2", got)
			}
			w.judge(t, w.join(t, "", w.bob), verdict{13, "revoked"})
			w.judge(t, w.join(t, "", w.alice), verdict{})
		})
	}
	damaged := w.join(t, "")
	for name, plant := range map[string]string{
		"a statement emptied":   ": >FILE",
		"a statement edited":    "sed -i 's/^expires .*/expires 999999999999999/' FILE",
		"a statement cut short": "head -c 100 FILE >/root/s; cat /root/s >FILE",
	} {
		t.Run(name, func(t *testing.T) {
			file := stateDir + "/statements/signers"
			w.root(t, "cp -a "+file+" /root/kept; "+strings.ReplaceAll(plant, "FILE", file))
			w.refuses(t, damaged.text(), 22, "statements")
			w.root(t, "cp -a /root/kept "+file)
			w.judge(t, w.join(t, ""), verdict{})
		})
	}
}
