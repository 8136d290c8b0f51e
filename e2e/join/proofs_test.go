//go:build linux

package join

import (
	"crypto/ecdsa"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// waiter starts a host that says of its kubelet that it waits with the key.
func (w *world) waiter(t *testing.T, name string, key *ecdsa.PrivateKey) *lab.Host {
	t.Helper()
	h := w.HostWith(t, name, func(o *lab.HostOptions) { o.ShimConf += "kubelet-key=" + kubeletKey + "\n" })
	waitsWith(t, h, key)
	return h
}

// shownAgain: a relay that was taken over has its hosts sign whatever it asks them for, and shows that in place of what the approver asked for.
func (w *world) shownAgain(t *testing.T) {
	own := newKey(t)
	h, other := w.waiter(t, "prover-a", own), w.waiter(t, "prover-b", own)
	cases := map[string]struct {
		by            *lab.Host
		nonce, runUID string // "" is what was asked for
		edit          func(text string) string
		want          string // "" is approved
	}{
		"nonce":   {by: h, nonce: strings.Repeat("0", 64), want: "ProofFailed: the proof is for another nonce"},
		"run":     {by: h, runUID: "01234567-89ab-cdef-0123-456789abcdef", want: "ProofFailed: the proof is for the run 01234567-89ab-cdef-0123-456789abcdef"},
		"earlier": {by: h, nonce: strings.Repeat("a", 64), runUID: "01234567-89ab-cdef-0123-456789abcdef", want: "ProofFailed: the proof is for another nonce"},
		"other":   {by: other, want: ", which is not a key of this host"},
		"altered": {by: h, edit: func(text string) string { return strings.Replace(text, "\ncluster lab\n", "\ncluster none\n", 1) }, want: "SignatureInvalid"},
		"longer":  {by: h, edit: func(text string) string { return text + "mark x 1\n" }, want: "SignatureInvalid"},
		"itself":  {by: h},
	}
	var names []string
	for name := range cases {
		names = append(names, name)
	}
	claims := w.claims(t, h.HostKey, names...)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			request, run := claims[name].asksAndIsAsked(t, own)
			nonce, uid := orElse(c.nonce, run.Status.Proof.Nonce), orElse(c.runUID, string(run.UID))
			text, signature := w.signs(t, c.by, nonce, uid)
			if c.edit != nil {
				text = c.edit(text)
			}
			claims[name].brings(t, text, signature)
			if c.want != "" {
				claims[name].isDenied(t, request, "ProofFailed", "")
			}
			said := w.decided(t, request)
			if c.want == "" && !strings.HasPrefix(said, "Approved HostwarrantApproved: the host proved that SHA256:") || !strings.Contains(said, c.want) {
				t.Errorf("the request is %q, want %q", said, c.want)
			}
		})
	}
	t.Run("as somebody who is no relay", func(t *testing.T) { w.strangersProof(t, claims["itself"].run) })
	w.remove(t, names...)
	w.nothingLeft(t)
}

// strangersProof: nobody but the relay's account brings answers, an administrator as little.
func (w *world) strangersProof(t *testing.T, run string) {
	before := w.Read(t, run).Status.Proof
	r, err := w.ControlPlane.Kubectl(t.Context(), nil, "-n", pool, "patch", "hostrun", run, "--subresource=status", "--type=merge", "-p", `{"status":{"proof":{"text":"x","signature":"y"}}}`)
	must(t, err)
	if r.Code == 0 || !strings.Contains(r.Stderr, "only hostwarrant-relay and hostwarrant-minter write the status of a HostRun") {
		t.Errorf("exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if after := w.Read(t, run).Status.Proof; *after != *before {
		t.Errorf("the proof was %+v and is %+v", before, after)
	}
}

func orElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}
