//go:build linux

package faults

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// stepLimit bounds what takes seconds, on a busy machine.
const stepLimit = 2 * time.Minute

const (
	class   = "bm"
	profile = "tls-bootstrap"
	// ranFile has a line for each time that a script of these tests ran.
	ranFile = "/root/ran"
	// counted begins such a script.
	counted = "echo ran >>" + ranFile + "\n"
	// waiting holds it until the test lets it go.
	waiting = "while [ ! -e /root/go ]; do sleep 0.05; done\n"
)

// target is a host, the key that logs in there, and the one that it takes scripts by.
type target struct {
	*lab.Host
	login, signer testkit.Signer
	serial        *atomic.Int64 // of what it was sent last: each order is another version
}

// hosts counts those of the package: each has a log of its own.
var hosts atomic.Int64

// newHost starts a host that lives as long as the test.
func newHost(t *testing.T, change func(*lab.HostOptions)) target {
	t.Helper()
	h := target{login: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519"), serial: new(atomic.Int64)}
	o := lab.HostOptions{
		Name: fmt.Sprintf("host-%d", hosts.Add(1)), RelayKey: h.login.PublicKey(), AllowedSigners: testkit.SignerLine(h.signer) + "\n",
		ShimConf: testkit.Settings("required", class, "90d", in(60)),
		TrustFiles: map[string]string{
			"revoked_keys": "# none\n", "cluster": testkit.ClusterFile("prod-1", "https://10.0.0.5:6443", []byte("CA")), "floors": profile + " 1\n",
		},
	}
	if change != nil {
		change(&o)
	}
	h.Host = shared.Host(t, o)
	return h
}

// in is a time so many days from now.
func in(days int) time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) }

// limits are a relay's, and shorter where a test waits for their end.
func limits() transport.Limits {
	l := lab.RelayLimits()
	l.Keepalive, l.Misses, l.Drain = time.Second, 10, 2*time.Second
	return l
}

// signed is a leave script of these lines that counts its runs, with a warrant that change may alter.
func (h target) signed(t *testing.T, body string, change func(*warrant.Warrant)) envelope.Envelope {
	t.Helper()
	place, err := warrant.ParseTarget("class " + class)
	must(t, err)
	w := &warrant.Warrant{
		Profile: profile, Phase: script.Leave, Serial: h.serial.Add(1), NotBefore: in(-3).Unix(), HasNotBefore: true, NotAfter: in(30).Unix(),
		Targets: []warrant.Target{place},
	}
	if change != nil {
		change(w)
	}
	text, err := warrant.Set([]byte("#!/usr/bin/env bash\nset -eu\n"+counted+body), w)
	must(t, err)
	return envelope.Envelope{
		Phase: envelope.PhaseLeave, RunID: newRunID(t), Params: []byte{}, Script: text,
		Sig: []byte(testkit.Sign(t, h.signer, script.Namespace, text)),
	}
}

// order is a signed script on its way to the host.
func (h target) order(t *testing.T, body string) delivery.Order {
	t.Helper()
	return delivery.Order{Target: h.Target(t, h.login.PEM), Limits: limits(), Envelope: h.signed(t, body, nil)}
}

func newRunID(t *testing.T) envelope.RunID {
	t.Helper()
	id, err := envelope.NewRunID(rand.Reader)
	must(t, err)
	return id
}

func committed() error { return nil }

// deliver waits for the end of an order.
func deliver(t *testing.T, o delivery.Order) delivery.Report {
	t.Helper()
	r, err := delivery.Deliver(t.Context(), o, committed)
	must(t, err)
	return r
}

// sending is an order under way.
type sending struct {
	order  delivery.Order
	cancel context.CancelFunc // ends the relay's side
	done   chan delivery.Report
}

// start sends an order whose script waits, and returns when it runs.
func (h target) start(t *testing.T, o delivery.Order) *sending {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &sending{order: o, cancel: cancel, done: make(chan delivery.Report, 1)}
	go func() {
		r, err := delivery.Deliver(ctx, o, committed)
		if err != nil {
			r = delivery.Report{Message: err.Error()}
		}
		s.done <- r
	}()
	testkit.Eventually(t, stepLimit, "the script", func() bool { return h.ran(t) == 1 })
	return s
}

// end waits for what came of it.
func (s *sending) end(t *testing.T) delivery.Report {
	t.Helper()
	select {
	case r := <-s.done:
		return r
	case <-time.After(stepLimit):
		t.Fatal("the relay waits for ever")
		return delivery.Report{}
	}
}

// ran is how often a script ran.
func (h target) ran(t *testing.T) int {
	t.Helper()
	return strings.Count(h.read(t, ranFile), "\n")
}

func (h target) read(t *testing.T, path string) string {
	t.Helper()
	content, err := h.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	must(t, err)
	return string(content)
}

func (h target) release(t *testing.T) {
	t.Helper()
	must(t, h.WriteFile("/root/go", nil, 0o600))
}

// recall asks the host what became of an order.
func recall(t *testing.T, o delivery.Order) (delivery.Memory, delivery.Report) {
	t.Helper()
	return delivery.Recall(t.Context(), o.Target, o.Limits, o.Envelope.RunID, o.Envelope.Phase)
}

// remembers wants the host to know the end of an order, after a while.
func remembers(t *testing.T, o delivery.Order, want delivery.Result, shim, exit int) {
	t.Helper()
	var memory delivery.Memory
	var r delivery.Report
	testkit.Eventually(t, stepLimit, "the host's record", func() bool {
		memory, r = recall(t, o)
		return memory != delivery.Running && memory != delivery.NotAsked
	})
	if memory != delivery.Ended || r.Result != want || r.ShimExit != shim || r.ScriptExit != exit {
		t.Fatalf("asked, the host tells memory %d, %+v; want %s, shim %d, script %d", memory, r, want, shim, exit)
	}
}

// isCut wants a report that says nothing of the run but why nothing is known.
func isCut(t *testing.T, r delivery.Report, why string) {
	t.Helper()
	if r.Result != delivery.Cut || r.ShimExit != envelope.Unknown || r.ScriptExit != envelope.Unknown || r.Trailer != delivery.None || !strings.Contains(r.Message, why) {
		t.Fatalf("the relay tells %+v, want Cut with %q", r, why)
	}
}

// once wants that the script ran once, whatever was sent.
func (h target) once(t *testing.T) {
	t.Helper()
	if n := h.ran(t); n != 1 {
		t.Fatalf("the script ran %d times", n)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
