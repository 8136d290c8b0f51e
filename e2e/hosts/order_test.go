//go:build linux

package hosts

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// order is an envelope in the making: a signed script with its parameters. It writes its text by hand, since what an
// attacker sends is not held to our own encoder.
type order struct {
	phase  string
	runID  envelope.RunID
	params string // the block, as it stands
	script string
	sig    string
	// mark is the line that the script leaves in ranFile.
	mark string
}

func (o order) text() string {
	lines := []string{"kpssh-envelope: 1", "phase: " + o.phase}
	if o.runID != "" {
		lines = append(lines, "run-id: "+string(o.runID))
	}
	lines = append(lines, "params-b64: "+b64(o.params), "sig-b64: "+b64(o.sig), "script-b64: "+b64(o.script))
	return strings.Join(lines, "\n") + "\n"
}

func (o order) sha256() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(o.script))) }

// with gives the order other parameters.
func (o order) with(params string) order {
	o.params = params
	return o
}

// as gives the order another phase on the wire; the script stays what it is.
func (o order) as(phase string) order {
	o.phase = phase
	return o
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// serial is that of honest scripts.
const serial = 42

// warrant is what an honest script says: for this host by all that a target can name it by, and for a month.
func (w *world) warrant(phase script.Phase, profile string) *warrant.Warrant {
	now := w.began.Unix()
	return &warrant.Warrant{
		Profile: profile, Phase: phase, Serial: serial, HasNotBefore: true, NotBefore: now - 3600, NotAfter: now + 30*86400,
		Targets: []warrant.Target{
			{Kind: warrant.TargetClass, Value: "bm"},
			{Kind: warrant.TargetCluster, Value: "lab"},
			{Kind: warrant.TargetHost, Value: sshsig.Fingerprint(w.host.HostKey)},
		},
		Params: []warrant.Param{{Name: "KPSSH_VAR_text", Matcher: warrant.Matcher{Kind: warrant.MatchType, Value: "text"}}},
	}
}

// order is a script with a warrant, signed by the keys.
func (w *world) order(t *testing.T, v *warrant.Warrant, body string, by ...testkit.Signer) order {
	t.Helper()
	o := order{phase: string(v.Phase), mark: fmt.Sprintf("%s %s %d", v.Phase, v.Profile, v.Serial)}
	o.script = "#!/usr/bin/env bash\n" + string(v.Block()) + "set -eu\necho '" + o.mark + "' >>" + ranFile + "\n" + body
	o.sign(t, by...)
	return o
}

// profile is a name that no other script has, so that no two of them share a mark.
func (w *world) profile() string {
	w.profiles++
	return fmt.Sprintf("tls-%d", w.profiles)
}

// join is an honest join script with a body.
func (w *world) join(t *testing.T, body string, by ...testkit.Signer) order {
	t.Helper()
	if by == nil {
		by = []testkit.Signer{w.alice}
	}
	return w.order(t, w.warrant(script.Join, w.profile()), body, by...)
}

// leave is an honest leave script with a body.
func (w *world) leave(t *testing.T, body string) order {
	t.Helper()
	return w.order(t, w.warrant(script.Leave, w.profile()), body, w.alice)
}

// limited is an honest join script with a time limit in seconds.
func (w *world) limited(t *testing.T, seconds int, body string) order {
	t.Helper()
	v := w.warrant(script.Join, w.profile())
	v.Timeout = seconds
	return w.order(t, v, body, w.alice)
}

func (o *order) sign(t *testing.T, by ...testkit.Signer) {
	t.Helper()
	o.sig = signatures(t, "kpssh", o.script, by...)
}

// signatures are armored blocks one after the other. That ssh-keygen takes them, the host itself shows.
func signatures(t *testing.T, namespace, text string, by ...testkit.Signer) string {
	t.Helper()
	var all strings.Builder
	for _, key := range by {
		armored, err := sshsig.Sign(rand.Reader, key.Signer, namespace, []byte(text))
		must(t, err)
		all.Write(armored)
	}
	return all.String()
}

func newRunID(t *testing.T) envelope.RunID {
	t.Helper()
	id, err := envelope.NewRunID(rand.Reader)
	must(t, err)
	return id
}

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
