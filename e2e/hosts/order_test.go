//go:build linux

package hosts

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
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

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// join is an honest join script with a body, signed by alice.
func (w *world) join(t *testing.T, body string) order {
	t.Helper()
	return w.plain(t, "join", body, w.alice)
}

// plain is a script without a warrant, as upstream's are.
func (w *world) plain(t *testing.T, phase, body string, by ...testkit.Signer) order {
	t.Helper()
	o := order{phase: phase, mark: phase}
	o.script = "#!/usr/bin/env bash\nset -eu\necho '" + o.mark + "' >>" + ranFile + "\n" + body
	o.sign(t, by...)
	return o
}

func (o *order) sign(t *testing.T, by ...testkit.Signer) {
	t.Helper()
	o.sig = ""
	for _, key := range by {
		o.sig += testkit.Sign(t, key, "kpssh", []byte(o.script))
	}
}

func newRunID(t *testing.T) envelope.RunID {
	t.Helper()
	id, err := envelope.NewRunID(rand.Reader)
	must(t, err)
	return id
}

// leave is an honest leave script with a body, signed by alice.
func (w *world) leave(t *testing.T, body string) order {
	t.Helper()
	return w.plain(t, "leave", body, w.alice)
}

// limited is an honest join script with a time limit in seconds.
func (w *world) limited(t *testing.T, seconds int, body string) order {
	t.Helper()
	return w.plain(t, "join", body, w.alice)
}
