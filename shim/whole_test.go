//go:build linux && amd64

package shim

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	signatures "github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit/shimhost"
)

// TestTheWholeShimOnInputsMadeByChance: the exit code is the one that the Go readers and
// the order of checks in docs/spec/shim.md ask for, and a script ran exactly where it is 0.
func TestTheWholeShimOnInputsMadeByChance(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	seed := fuzzSeed(t)
	w := newWorld(t)
	w.mustSend(w.script(script.Join, 5).sent, envelope.ExitOK)
	w.settle()
	w.underEachShell(t, func(t *testing.T) { whole(t, w, newSource(t, seed), max(20, share(t, 2))) })
}

// whole sends n inputs, each to the host as it was.
func whole(t *testing.T, w *world, s *source, n int) {
	t.Helper()
	o := oracle{w.host, time.Now(), w.mark()}
	codes, faults, begun := map[envelope.ExitCode]int{}, 0, time.Now()
	for i := 0; i < n && faults < 10; i++ {
		text := s.sent(w)
		w.back(w.past)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		answer, err := shimhost.Send(ctx, text)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		want, runs := o.code(text)
		codes[answer.Code]++
		if got := w.hasRun(); answer.Code != want || runs != (len(got) > 0) {
			faults++
			t.Errorf("input %d: answered %d (%s), not %d; %q ran\n%s", i, answer.Code, strings.TrimSpace(answer.Stderr), want, got, shown(text))
		}
	}
	t.Logf("%d inputs in %s; exit codes: %v", n, time.Since(begun).Round(time.Second), codes)
}

// shown is an envelope to read: its fields decoded, as far as they can be.
func shown(text []byte) string {
	e, err := envelope.Decode(text)
	if err != nil {
		return fmt.Sprintf("%.1000q", text)
	}
	return fmt.Sprintf("%s, params %.600q, script %.1500q, statement %.1500q", e.Phase, e.Params, e.Script, e.Statement)
}

// sent is one input: any envelope; a signed script with a warrant that was changed; a good
// script with parameters that were; or a signed statement.
func (s *source) sent(w *world) []byte {
	w.t.Helper()
	id, err := envelope.NewRunID(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	params, err := envelope.EncodeParams(shimhost.Params())
	if err != nil {
		w.t.Fatal(err)
	}
	e := envelope.Envelope{Phase: envelope.Phase(s.phase()), RunID: id, Params: params}
	switch s.IntN(10) {
	case 0, 1, 2:
		return s.envelope()
	case 3:
		return s.sentStatement(w)
	case 4, 5:
		e.Phase, e.Script = envelope.PhaseJoin, w.script(script.Join, 6).text
		e.Params = s.changed(s.hostParams(params), 2)
	default:
		e.Script = s.harmless(s.hostWarrant(w))
		if found, err := warrant.Find(e.Script); err == nil && found != nil && s.IntN(10) > 0 {
			e.Phase = envelope.Phase(found.Phase)
		}
	}
	if len(e.Params) > envelope.MaxParams || len(e.Script) > envelope.MaxScript {
		return s.envelope()
	}
	signed := e.Script
	if s.IntN(15) == 0 {
		signed = s.change(signed)
	}
	if e.Sig, err = w.host.Sign(signed); err != nil {
		w.t.Fatal(err)
	}
	if s.IntN(15) == 0 {
		e.Sig = s.change(e.Sig)
	}
	text, err := e.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// hostWarrant is a script whose warrant is meant for this host, or nearly.
func (s *source) hostWarrant(w *world) []byte {
	if s.IntN(4) == 0 {
		return s.warrant()
	}
	now := time.Now().Unix()
	wanted := w.host.Warrant(s.pick(shimhost.Profile, shimhost.Profile, "other-1", "stranger"), script.Phase(s.phase()), 6)
	switch s.IntN(8) {
	case 0:
		wanted.Serial = s.Int64N(8)
	case 1:
		wanted.Serial = []int64{1005, 1006, 1000000, 1000001, 5, 4}[s.IntN(6)]
	case 2:
		wanted.NotBefore = now + s.Int64N(4000) - 2000
	case 3:
		wanted.NotAfter = now + s.Int64N(400*24*3600) - 40*24*3600
		wanted.HasNotBefore = false
	case 4:
		wanted.Never = wanted.Phase == script.Leave || wanted.Phase == script.Uninstall
	case 5:
		if target, err := warrant.ParseTarget(s.target()); err == nil {
			wanted.Targets = []warrant.Target{target}
		}
	}
	return s.changed(append(wanted.Block(), "true\n"...), 1)
}

// harmless replaces all of a script that a host may run but its warrant. Where no reader
// takes the warrant, the script stays as it is: it must not run.
func (s *source) harmless(text []byte) []byte {
	w, err := warrant.Find(text)
	if err != nil || w == nil && script.HasWarrantLine(text) {
		return text
	}
	body := "echo ran >>" + ran + "\n"
	if w == nil {
		return []byte("#!/bin/sh\n" + body)
	}
	return append(w.Block(), s.pick("", "", "", "", "# {{\n", "# \x00\n")+body...)
}

// hostParams are those of a good run, with some left out and values of chance.
func (s *source) hostParams(good []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(good)) {
		name, _, _ := strings.Cut(line, "=")
		switch s.IntN(12) {
		case 0:
		case 1:
			b.WriteString(name + "=" + s.pick("", "a", "A", "192.0.2.1", "::1", "a=b", "a=b,c/d=e", "a:NoSchedule", "https://a:1/x", "-1", "true", "a b", strings.ReplaceAll(s.word(), "\n", "")) + "\n")
		default:
			b.WriteString(line)
		}
	}
	return []byte(b.String())
}

// sentStatement is signed by the host's root.
func (s *source) sentStatement(w *world) []byte {
	text := s.statement()
	if s.IntN(3) > 0 {
		text = []byte(strings.Replace(string(text), "\ncluster prod-1\n", "\ncluster "+shimhost.Cluster+"\n", 1))
	}
	if s.IntN(3) > 0 {
		text = []byte(strings.Replace(string(text), "\nissued 1795000000\n", fmt.Sprintf("\nissued %d\n", w.host.Made.Unix()), 1))
	}
	block, err := signatures.Sign(rand.Reader, w.host.Root, statement.Namespace, text)
	if err != nil {
		w.t.Fatal(err)
	}
	if s.IntN(15) == 0 {
		block = s.change(block)
	}
	e := envelope.Envelope{Phase: envelope.PhaseStatement, Statement: text, StatementSig: block}
	sent, err := e.Encode()
	if err != nil { // too long
		return s.envelope()
	}
	return sent
}

// oracle says what a host answers by the Go readers and docs/spec/shim.md.
type oracle struct {
	host *shimhost.Host
	now  time.Time
	mark string
}

// code is the exit code, and whether a script runs.
func (o oracle) code(text []byte) (code envelope.ExitCode, runs bool) {
	e, err := envelope.Decode(text)
	var refused *envelope.Error
	if errors.As(err, &refused) {
		if refused.Code == envelope.ExitPhase && twoFaults(text) {
			return envelope.ExitEnvelope, false
		}
		return refused.Code, false
	}
	switch {
	case e.Phase.RunsScript():
		code = o.script(e)
		return code, code == envelope.ExitOK
	case e.Phase == envelope.PhaseStatement:
		return o.statement(e), false
	case e.Phase == envelope.PhaseProve:
		if e.Params == nil {
			return envelope.ExitEnvelope, false
		}
		return envelope.ExitParam, false // no source makes a nonce
	default:
		return envelope.ExitOK, false
	}
}

// signed holds signatures to one key.
func signed(sig, text []byte, namespace, fingerprint string) bool {
	blocks, err := signatures.ParseAll(sig)
	if err != nil {
		return false
	}
	for _, b := range blocks {
		if signatures.Fingerprint(b.PublicKey()) == fingerprint && b.Verify(namespace, text) == nil {
			return true
		}
	}
	return false
}

func (o oracle) script(e *envelope.Envelope) envelope.ExitCode {
	if len(e.Script) == 0 {
		if e.Phase == envelope.PhaseLeave || e.Phase == envelope.PhaseUninstall {
			return envelope.ExitState // no copy is kept
		}
		return envelope.ExitEnvelope
	}
	w, err := warrant.Find(e.Script)
	switch {
	case err != nil:
		return envelope.ExitWarrant
	case !signed(e.Sig, e.Script, "kpssh", signatures.Fingerprint(o.host.Signer.PublicKey())):
		return envelope.ExitSignature
	case w == nil, strings.Contains(string(e.Script), "{{"), strings.Contains(string(e.Script), "\x00"):
		return envelope.ExitWarrant
	case string(w.Phase) != string(e.Phase):
		return envelope.ExitPhaseOrProfile
	case !meant(w.Targets):
		return envelope.ExitTarget
	}
	if code := o.fresh(e, w); code != envelope.ExitOK {
		return code
	}
	values, err := envelope.DecodeParams(e.Params)
	if err != nil || len(values) > maxParams {
		return envelope.ExitParam
	}
	ca := sha256.Sum256(shimhost.CA())
	if w.CheckParams(values, warrant.Pin{Endpoints: []string{shimhost.Endpoint}, CASHA256: []string{hex.EncodeToString(ca[:])}}) != nil {
		return envelope.ExitParam
	}
	return envelope.ExitOK
}

func meant(targets []warrant.Target) bool {
	met, asked := map[string]bool{}, map[string]bool{}
	for _, target := range targets {
		asked[target.Kind] = true
		switch target {
		case warrant.Target{Kind: warrant.TargetAny}, warrant.Target{Kind: warrant.TargetClass, Value: shimhost.Class}, warrant.Target{Kind: warrant.TargetCluster, Value: shimhost.Cluster}:
			met[target.Kind] = true
		}
	}
	return len(met) == len(asked)
}

// fresh is the time and the serial. The host has seen serial 5 of its profile, has floors
// for it and for other-*, and knows nothing of others.
func (o oracle) fresh(e *envelope.Envelope, w *warrant.Warrant) envelope.ExitCode {
	const seen, first, step, validity = 5, 1000000, 1000, 90 * 24 * 3600
	now := time.Now().Unix()
	joins := w.Phase == script.Install || w.Phase == script.Join
	digest := sha256.Sum256(e.Script)
	switch {
	case w.HasNotBefore && w.NotBefore > now:
		return envelope.ExitNotYetValid
	case !w.Never && (w.NotAfter <= now || joins && w.NotAfter > now+validity):
		return envelope.ExitExpired
	}
	switch {
	case w.Profile == shimhost.Profile:
		switch {
		case w.Serial < seen, w.Serial > seen+step:
			return envelope.ExitRollback
		case w.Serial == seen && strings.Contains(o.mark, "\n"+string(w.Phase)+" ") && !strings.Contains(o.mark, hex.EncodeToString(digest[:])):
			return envelope.ExitSerialReused
		}
	case strings.HasPrefix(w.Profile, "other-"):
		if w.Serial < 1 || w.Serial > first {
			return envelope.ExitRollback
		}
	default:
		return envelope.ExitState
	}
	return envelope.ExitOK
}

func (o oracle) statement(e *envelope.Envelope) envelope.ExitCode {
	if e.Script != nil || e.Sig != nil {
		return envelope.ExitEnvelope
	}
	if !signed(e.StatementSig, e.Statement, statement.Namespace, signatures.Fingerprint(o.host.Root.PublicKey())) {
		return envelope.ExitSignature
	}
	st, err := statement.Parse(e.Statement)
	if err != nil {
		return envelope.ExitEnvelope
	}
	var targets []warrant.Target
	if st.Cluster != "" {
		targets = append(targets, warrant.Target{Kind: warrant.TargetCluster, Value: st.Cluster})
	}
	for _, words := range st.Targets {
		kind, value, _ := strings.Cut(words, " ")
		targets = append(targets, warrant.Target{Kind: kind, Value: value})
	}
	switch {
	case st.Roots != nil:
		return envelope.ExitSignature // none of these roots signed
	case !meant(targets):
		return envelope.ExitTarget
	case st.Issued > time.Now().Unix()+24*3600:
		return envelope.ExitNotYetValid
	}
	return envelope.ExitOK
}
