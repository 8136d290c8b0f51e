//go:build linux

package upstream

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/upstream/client"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// shims starts a host of each kind.
func (w *world) shims(t *testing.T) map[string]*lab.Host {
	t.Helper()
	return map[string]*lab.Host{"our shim": w.ours(t, "ours", conf("optional")), "a shim without warrants": w.standIn(t, "standin")}
}

func TestProbe(t *testing.T) {
	w := newWorld(t)
	for name, h := range w.shims(t) {
		t.Run(name, func(t *testing.T) {
			answer, err := w.theirs(t, h).Send(t.Context(), time.Minute, client.Envelope{Phase: "probe"}.Text())
			must(t, err)
			if !regexp.MustCompile(`^[0-9]+\n[0-9]+\n[a-z0-9_]+\n([a-z]+\n)?$`).MatchString(answer.Stdout) {
				t.Errorf("a probe prints %q", answer.Stdout)
			}
			facts, err := w.theirs(t, h).Probe(t.Context())
			must(t, err)
			want := client.Facts{CPUs: number(t, h.Must(t, "nproc")), MemoryKB: number(t, h.Must(t, "awk '/MemTotal/ {print $2}' /proc/meminfo")), Arch: facts.Arch}
			if diff := cmp.Diff(want, facts); diff != "" || facts.Arch == "" || facts.Arch == "x86_64" {
				t.Errorf("%+v %s", facts, diff)
			}
			h.Must(t, "mkdir -p /run/systemd/system; rm -f /usr/bin/systemctl; printf '#!/bin/sh\\n[ \"$*\" != \"is-active kubelet\" ] || echo active\\n' >/usr/bin/systemctl; chmod 755 /usr/bin/systemctl")
			if facts, err = w.theirs(t, h).Probe(t.Context()); err != nil || !facts.KubeletActive {
				t.Errorf("with a kubelet that runs: %+v, %v", facts, err)
			}
		})
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	must(t, err)
	return n
}

// Texts that no controller sends, and some that only karpenter-provider-ssh's shim takes:
// the table "Where ours is stricter" of docs/spec/upstream.md.
func TestWhatEachShimTakesOnTheWire(t *testing.T) {
	w := newWorld(t)
	leave := plain(t, "leave", "#!/bin/sh\necho ran\n", w.signer)
	param := func(block string) string {
		return "params-b64: " + base64.StdEncoding.EncodeToString([]byte(block)) + "\n"
	}
	full := client.Envelope{Phase: "leave", Params: client.Leave("10.0.0.21", ""), Signature: leave.Signatures["leave"], Script: leave.Scripts["leave"]}.Text()
	bare := client.Envelope{Phase: "leave", Signature: leave.Signatures["leave"], Script: leave.Scripts["leave"]}.Text()
	lines := strings.SplitAfter(strings.TrimSuffix(full, "\n"), "\n")
	before, _, _ := strings.Cut(bare, "script-b64: ")
	nul := plain(t, "leave", "#!/bin/sh\necho ran\n# \x00\n", w.signer)
	template := plain(t, "leave", "#!/bin/sh\necho ran # {{\n", w.signer)
	cases := map[string]struct {
		text          string
		ours, standIn int
	}{
		"as it is sent":                  {full, 0, 0},
		"fields the other way round":     {lines[4] + "\n" + lines[3] + lines[2] + lines[1] + lines[0], 0, 0},
		"no final line feed":             {strings.TrimSuffix(full, "\n"), 0, 0},
		"no version":                     {strings.TrimPrefix(full, "kpssh-envelope: 1\n"), 4, 4},
		"version 2":                      {strings.Replace(full, ": 1\n", ": 2\n", 1), 4, 4},
		"no phase":                       {strings.Replace(full, "phase: leave\n", "", 1), 4, 4},
		"an unknown phase":               {"kpssh-envelope: 1\nphase: reboot\n", 5, 5},
		"nothing":                        {"", 4, 4},
		"no signature":                   {client.Envelope{Phase: "leave", Params: client.Leave("a", ""), Script: "echo\n"}.Text(), 4, 4},
		"no script":                      {client.Envelope{Phase: "leave", Params: client.Leave("a", ""), Signature: "x"}.Text(), 4, 4},
		"a script that is no base64":     {before + "script-b64: ****\n" + param(""), 4, 4},
		"a parameter without a name":     {bare + param("=1\n"), 3, 3},
		"a parameter of another name":    {bare + param("LD_PRELOAD=/tmp/x\n"), 3, 3},
		"a name with a semicolon":        {bare + param("KPSSH_x;id=1\n"), 3, 3},
		"a line without =":               {bare + param("KPSSH_A\n"), 3, 3},
		"no parameters at all":           {bare, 4, 0},
		"a line that nobody knows":       {full + "future: 1\n", 4, 0},
		"a field twice, the later one":   {strings.Replace(full, "phase: leave\n", "phase: join\nphase: leave\n", 1), 4, 0},
		"a value with CR":                {bare + param("KPSSH_A=1\r\n"), 3, 0},
		"a name twice":                   {bare + param("KPSSH_A=1\nKPSSH_A=2\n"), 3, 0},
		"a NUL in the script":            {client.Envelope{Phase: "leave", Params: client.Leave("a", ""), Signature: nul.Signatures["leave"], Script: nul.Scripts["leave"]}.Text(), 14, 0},
		"a template in the script":       {client.Envelope{Phase: "leave", Params: client.Leave("a", ""), Signature: template.Signatures["leave"], Script: template.Scripts["leave"]}.Text(), 14, 0},
		"a signature with lines after":   {client.Envelope{Phase: "leave", Params: client.Leave("a", ""), Signature: leave.Signatures["leave"] + "more\n", Script: leave.Scripts["leave"]}.Text(), 2, 0},
		"a probe with a script":          {strings.Replace(full, "phase: leave\n", "phase: probe\n", 1), 0, 0},
		"a run-id of ours":               {full + "run-id: 0123456789abcdef0123456789abcdef\n", 0, 0},
		"a phase of ours, without state": {"kpssh-envelope: 1\nphase: outcome\nrun-id: ffffffffffffffffffffffffffffffff\n", 0, 5},
	}
	for name, h := range w.shims(t) {
		for what, c := range cases {
			t.Run(name+", "+what, func(t *testing.T) {
				want := c.standIn
				if h.Name == "ours" {
					want = c.ours
				}
				answer, err := w.theirs(t, h).Send(t.Context(), time.Minute, c.text)
				got := 0
				if failed, ok := errors.AsType[*client.Failure](err); ok {
					got = failed.Status
				} else {
					must(t, err)
				}
				if got != want || strings.Contains(answer.Stdout, "ran\n") && want != 0 {
					t.Fatalf("exit %d, want %d; stdout %q, stderr %q", got, want, answer.Stdout, answer.Stderr)
				}
				if want != 0 && !strings.HasPrefix(answer.Stderr, "kpssh-shim: ") {
					t.Errorf("stderr %q does not say why", answer.Stderr)
				}
			})
		}
	}
}

// Two codecs that were written apart say the same of one text.
func TestOurReaderReadsWhatTheControllerWrites(t *testing.T) {
	params := joinParams(t, nil)
	text := client.Envelope{Phase: "join", Params: params, Signature: "signature\n", Script: "script\n"}.Text()
	e, err := envelope.Decode([]byte(text))
	must(t, err)
	got, err := envelope.DecodeParams(e.Params)
	must(t, err)
	if diff := cmp.Diff(params, got); diff != "" || e.Phase != "join" || string(e.Sig) != "signature\n" || string(e.Script) != "script\n" {
		t.Errorf("%+v %s", e, diff)
	}
	again, err := e.Encode()
	must(t, err)
	if diff := cmp.Diff(text, string(again)); diff != "" {
		t.Errorf("ours writes it otherwise: %s", diff)
	}
}

// What hostwarrant signs passes the controller's own check, by the first block alone.
func TestTheControllersOwnCheckTakesOurSignatures(t *testing.T) {
	w := newWorld(t)
	h := w.ours(t, "ours", conf("optional"))
	token := testkit.NewSigner(t, "sk-ed25519")
	leave := func(text string, keys ...testkit.Signer) client.Profile {
		p := client.Profile{Scripts: map[string]string{"leave": text}, Signatures: map[string]string{}}
		for _, key := range keys {
			p.Signatures["leave"] += testkit.Sign(t, key, "kpssh", []byte(text))
		}
		return p
	}
	const text = "#!/bin/sh\ntrue\n"
	cases := map[string]struct {
		p       client.Profile
		trusted []string
		says    string // "" it is sent
	}{
		"signed by the command line":        {sign(t, "tls-bootstrap", 3, terms, scripts(), w.signer), nil, ""},
		"by two, a trusted one first":       {leave(text, w.signer, w.other), nil, ""},
		"by two, a trusted one second":      {leave(text, w.other, w.signer), nil, "none of trustedSigners"},
		"a security key second":             {leave(text, w.signer, token), []string{token.Line, w.signer.Line}, ""},
		"a security key first":              {leave(text, token, w.signer), []string{token.Line, w.signer.Line}, "ssh: "},
		"an RSA key":                        {leave(text, testkit.NewSigner(t, "rsa3072")), nil, "none of trustedSigners"},
		"another namespace":                 {client.Profile{Scripts: map[string]string{"leave": text}, Signatures: map[string]string{"leave": testkit.Sign(t, w.signer, "file", []byte(text))}}, nil, `namespace "file"`},
		"changed since":                     {client.Profile{Scripts: map[string]string{"leave": text + "\n"}, Signatures: leave(text, w.signer).Signatures}, nil, "verif"},
		"a template":                        {leave("#!/bin/sh\n# {{\n", w.signer), nil, "template"},
		"no signature":                      {leave(text), nil, "no signature"},
		"no script":                         {client.Profile{}, nil, "no leave script"},
		"a list of signers that is no list": {leave(text, w.signer), []string{"nonsense"}, "trustedSigners"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			host := w.theirs(t, h)
			if c.trusted != nil {
				host.TrustedSigners = c.trusted
			}
			host.Address = "127.0.0.1:1" // where nothing listens: what is refused is refused before that
			_, err := host.Run(t.Context(), c.p, "leave", client.Leave("10.0.0.21", ""))
			_, before := errors.AsType[*client.ConfigurationError](err)
			if sent := err != nil && !before; sent != (c.says == "") || c.says != "" && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestTheControllerSeesTheHostKeyThatIsShownToWhoeverAsksForNone(t *testing.T) {
	w := newWorld(t)
	h := w.ours(t, "ours", conf("optional"))
	host := w.theirs(t, h)
	host.Fingerprint = ssh.FingerprintSHA256(h.HostKey) // Ed25519
	if _, err := host.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "the host shows "+ssh.FingerprintSHA256(ecdsaKey(t, h))) {
		t.Errorf("pinned to its Ed25519 key: %v", err)
	}
	host.Fingerprint = ssh.FingerprintSHA256(ecdsaKey(t, h))
	_, err := host.Probe(t.Context())
	must(t, err)
}

// A controller whose time is over closes the connection. The phase runs on, and the host is
// busy until it ends.
func TestAControllerThatGoesAway(t *testing.T) {
	w := newWorld(t)
	h := w.ours(t, "ours", conf("optional"))
	slow := plain(t, "leave", "#!/bin/sh\ntouch /var/lib/began\nwhile [ ! -e /var/lib/go ]; do sleep 0.1; done\nuname -n\ntouch /var/lib/done\n", w.signer)
	text := client.Envelope{Phase: "leave", Params: client.Leave("10.0.0.21", ""), Signature: slow.Signatures["leave"], Script: slow.Scripts["leave"]}.Text()
	if _, err := w.theirs(t, h).Send(t.Context(), 1500*time.Millisecond, text); err == nil {
		t.Fatal("it ended in time")
	}
	h.Must(t, "[ -e /var/lib/began ] && [ ! -e /var/lib/done ]")
	quick := plain(t, "leave", "#!/bin/sh\ntrue\n", w.signer)
	_, err := w.theirs(t, h).Run(t.Context(), quick, "leave", client.Leave("10.0.0.21", ""))
	failed, ok := errors.AsType[*client.Failure](err)
	if !ok || failed.Status != 12 {
		t.Fatalf("a second phase meanwhile: %v, want exit 12", err)
	}
	h.Must(t, "touch /var/lib/go; n=0; while [ ! -e /var/lib/done ]; do sleep 0.1; n=$((n + 1)); [ $n -lt 300 ]; done")
	testkit.Eventually(t, time.Minute, "the host to be free", func() bool {
		_, err := w.theirs(t, h).Run(t.Context(), quick, "leave", client.Leave("10.0.0.21", ""))
		return err == nil
	})
}

func TestTheEndOfStderrIsWhatPeopleSee(t *testing.T) {
	w := newWorld(t)
	noisy := plain(t, "leave", "#!/bin/sh\nn=0\nwhile [ $n -lt 100 ]; do echo \"line $n of noise\" >&2; n=$((n + 1)); done\nexit 3\n", w.signer)
	for name, h := range w.shims(t) {
		t.Run(name, func(t *testing.T) {
			_, err := w.theirs(t, h).Run(t.Context(), noisy, "leave", client.Leave("10.0.0.21", ""))
			failed, ok := errors.AsType[*client.Failure](err)
			if !ok || failed.Status != 10 || !strings.HasPrefix(failed.Tail, "…") || !strings.HasSuffix(failed.Tail, "\nkpssh-shim: script exited 3") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAMissingSignerListSaysSo(t *testing.T) {
	w := newWorld(t)
	leave := plain(t, "leave", "#!/bin/sh\ntrue\n", w.signer)
	for name, h := range w.shims(t) {
		t.Run(name, func(t *testing.T) {
			h.Must(t, "rm /etc/kpssh/allowed_signers")
			_, err := w.theirs(t, h).Run(t.Context(), leave, "leave", client.Leave("10.0.0.21", ""))
			failed, ok := errors.AsType[*client.Failure](err)
			if !ok || failed.Status != 2 || !strings.Contains(failed.Tail, "kpssh-shim: verify: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Our relay knows a shim that is not ours by what it answers to our own phases.
func TestOurRelayKnowsAShimThatIsNotOurs(t *testing.T) {
	w := newWorld(t)
	h := w.standIn(t, "standin")
	revoke := w.statement(t, testkit.StatementBases()["revoke"])
	got, err := delivery.DeliverStatements(t.Context(), h.Target(t, w.login.PEM), lab.RelayLimits(), []statement.Signed{revoke, revoke})
	must(t, err)
	if len(got) != 2 || got[0].Result != delivery.StatementsUnsupported || got[0].ShimExit != 5 || got[1].Result != delivery.StatementsUnsupported {
		t.Errorf("statements: %+v", got)
	}
	memory, report := delivery.Recall(t.Context(), h.Target(t, w.login.PEM), lab.RelayLimits(), runID(t), "leave")
	if memory != delivery.Lost || !strings.Contains(report.Message, "its shim keeps no run records") {
		t.Errorf("outcome: %d, %+v", memory, report)
	}
	leave := plain(t, "leave", "#!/bin/sh\necho done\n", w.signer)
	r := w.deliver(t, h, "leave", leave, client.Leave("10.0.0.21", ""))
	if r.Result != delivery.Succeeded || r.Trailer != delivery.None || r.Transcript != "done\n" {
		t.Errorf("a run: %+v", r)
	}
}

func (w *world) statement(t *testing.T, text string) statement.Signed {
	t.Helper()
	return statement.Signed{Text: []byte(text), Signatures: []string{testkit.Sign(t, w.root, statement.Namespace, []byte(text))}}
}
