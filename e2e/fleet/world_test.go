//go:build linux

package fleet

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const profile = "tls-bootstrap"

// fleet is three hosts that know two roots, who sign together, and one signer.
type fleet struct {
	began  time.Time
	roots  []testkit.Signer
	signer testkit.Signer
	a, b   host
	c      host // the one that is told nothing for a while
}

// host is what a relay has of one: a connection to ask for.
type host struct {
	name   string
	target transport.Target
}

func (f *fleet) all() []host { return []host{f.a, f.b, f.c} }

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{began: time.Now(), roots: []testkit.Signer{key(t), key(t)}, signer: key(t)}
	login := key(t)
	start := func(name string) host {
		h := shared.Host(t, lab.HostOptions{
			Name: name, RelayKey: login.PublicKey(), AllowedSigners: testkit.SignerLine(f.signer) + "\n", ShimConf: testkit.Settings("required", "bm", "120d", in(100)),
			TrustFiles: map[string]string{
				"revoked_keys": "# none\n", "cluster": testkit.ClusterFile("prod-1", "https://10.0.0.5:6443", []byte("CA")),
				"floors": profile + " 1\n", "root_signers": testkit.RootSigners(f.roots...),
			},
		})
		return host{name, h.Target(t, login.PEM)}
	}
	f.a, f.b, f.c = start("host-a"), start("host-b"), start("host-c")
	return f
}

func key(t *testing.T) testkit.Signer {
	t.Helper()
	return testkit.NewSigner(t, "ed25519")
}

// in is a time so many days from now.
func in(days int) time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// head begins a statement for the fleet's cluster.
func head(kind statement.Kind, serial int) string {
	return fmt.Sprintf("hostwarrant-statement: v1 %s\nserial %d\nissued %d\ncluster prod-1\n", kind, serial, time.Now().Add(-time.Minute).Unix())
}

// sign completes a statement, and has each root sign it.
func sign(t *testing.T, head, body string, roots ...testkit.Signer) statement.Signed {
	t.Helper()
	s := statement.Signed{Text: []byte(head + body + "end\n")}
	if _, err := statement.Parse(s.Text); err != nil {
		t.Fatalf("%v in %s", err, s.Text)
	}
	for _, root := range roots {
		s.Signatures = append(s.Signatures, testkit.Sign(t, root, statement.Namespace, s.Text))
	}
	return s
}

// signers says who may sign from now on.
func (f *fleet) signers(t *testing.T, serial int, who ...testkit.Signer) statement.Signed {
	t.Helper()
	body := fmt.Sprintf("expires %d\nmax-validity 120d\nthreshold install 1\nthreshold join 1\nthreshold leave 1\nthreshold uninstall 1\n", in(100).Unix())
	for _, s := range who {
		body += "signer " + testkit.SignerLine(s) + "\n"
	}
	return sign(t, head(statement.KindSigners, serial), body, f.roots...)
}

// revoke says who is revoked, all of them.
func (f *fleet) revoke(t *testing.T, serial int, who ...testkit.Signer) statement.Signed {
	t.Helper()
	var lines []string
	for _, s := range who {
		lines = append(lines, "revoke "+s.Fingerprint+"\n")
	}
	slices.Sort(lines)
	return sign(t, head(statement.KindRevoke, serial), strings.Join(lines, ""), f.roots...)
}

// successors is the link to the next generation of roots, signed by the given keys.
func successors(t *testing.T, version int, next []testkit.Signer, by ...testkit.Signer) statement.Signed {
	t.Helper()
	body := fmt.Sprintf("threshold %d\n", len(next))
	for _, root := range next {
		body += "key " + root.Line + "\n"
	}
	return sign(t, head(statement.KindRoots, version), body, by...)
}

// tell delivers statements in one connection and gives the results, one word each.
func tell(t *testing.T, h host, statements ...statement.Signed) string {
	t.Helper()
	reports, err := delivery.DeliverStatements(t.Context(), h.target, lab.RelayLimits(), statements)
	must(t, err)
	return words(reports)
}

func words(reports []delivery.StatementReport) string {
	var all []string
	for _, r := range reports {
		all = append(all, string(r.Result))
	}
	return strings.Join(all, " ")
}

// told wants a result from each host.
func told(t *testing.T, hosts []host, want string, statements ...statement.Signed) {
	t.Helper()
	for _, h := range hosts {
		if got := tell(t, h, statements...); got != want {
			t.Fatalf("%s answers %q, want %q", h.name, got, want)
		}
	}
}

// leave is a phase script at a serial, with the same bytes each time.
func (f *fleet) leave(t *testing.T, serial int64, more string) []byte {
	t.Helper()
	text, err := warrant.Set([]byte("#!/usr/bin/env bash\necho served "+more+"\n"), &warrant.Warrant{
		Profile: profile, Phase: script.Leave, Serial: serial, NotBefore: f.began.Add(-time.Hour).Unix(), HasNotBefore: true, NotAfter: f.began.Add(30 * 24 * time.Hour).Unix(),
		Targets: []warrant.Target{mustTarget(t, "class bm")},
	})
	must(t, err)
	return text
}

func mustTarget(t *testing.T, text string) warrant.Target {
	t.Helper()
	target, err := warrant.ParseTarget(text)
	must(t, err)
	return target
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// order is a script that a key signed.
func order(t *testing.T, text []byte, by testkit.Signer) envelope.Envelope {
	t.Helper()
	return envelope.Envelope{
		Phase: envelope.PhaseLeave, Params: []byte(""), Sig: []byte(testkit.Sign(t, by, script.Namespace, text)), Script: text,
	}
}

// run has a host run an order, after statements in the same connection.
func run(t *testing.T, h host, o envelope.Envelope, statements ...statement.Signed) delivery.Report {
	t.Helper()
	var err error
	o.RunID, err = envelope.NewRunID(rand.Reader)
	must(t, err)
	r, err := delivery.Deliver(t.Context(), delivery.Order{Target: h.target, Limits: lab.RelayLimits(), Statements: statements, Envelope: o}, func() error { return nil })
	must(t, err)
	return r
}

// serves wants an exit code from each host for a script at serial 1 by that key.
func (f *fleet) serves(t *testing.T, hosts []host, by testkit.Signer, want int) {
	t.Helper()
	ends(t, hosts, f.leave(t, 1, ""), by, want)
}

// ends wants an exit code from each host for a script by that key.
func ends(t *testing.T, hosts []host, text []byte, by testkit.Signer, want int) {
	t.Helper()
	o := order(t, text, by)
	for _, h := range hosts {
		r := run(t, h, o)
		if r.ShimExit != want || (want == 0) != strings.HasPrefix(r.Transcript, "served") {
			t.Fatalf("%s ends with %d, want %d: %s", h.name, r.ShimExit, want, r.Transcript)
		}
	}
}

// knows compares the serials of statements that hosts prove to have.
func knows(t *testing.T, hosts []host, want ...string) {
	t.Helper()
	for _, h := range hosts {
		params, err := envelope.EncodeParams(map[string]string{
			"KPSSH_NONCE": strings.Repeat("0a", 32), "KPSSH_RUN_UID": "3f1f5b0e-6d1c-4c53-9d5e-0b8f6a1c2d3e",
		})
		must(t, err)
		text, err := envelope.Envelope{Phase: envelope.PhaseProve, Params: params}.Encode()
		must(t, err)
		var out, errs strings.Builder
		code, err := transport.Run(t.Context(), h.target, lab.RelayLimits(), text, &out, &errs, func() error { return nil })
		must(t, err)
		if code != 0 {
			t.Fatalf("%s: prove ends with %d: %s", h.name, code, errs.String())
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			if rest, ok := strings.CutPrefix(line, "statement "); ok {
				got = append(got, strings.TrimSuffix(rest, "\n"))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s knows (-want +got):\n%s", h.name, diff)
		}
	}
}
