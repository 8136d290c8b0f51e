//go:build linux

package upstream

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/upstream/client"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

// answer is what a caller hears.
type answer struct {
	code           int
	stdout, stderr string
}

// caller takes a signed phase to a host.
type caller func(t *testing.T, h *lab.Host, phase string, p client.Profile, params map[string]string) answer

// theirCaller is the controller of karpenter-provider-ssh.
func (w *world) theirCaller(t *testing.T, h *lab.Host, phase string, p client.Profile, params map[string]string) answer {
	t.Helper()
	e := client.Envelope{Phase: phase, Params: params, Signature: p.Signatures[phase], Script: p.Scripts[phase]}
	got, err := w.theirs(t, h).Send(t.Context(), lab.RelayLimits().Run, e.Text())
	if err == nil {
		return answer{0, got.Stdout, got.Stderr}
	}
	failed, ok := errors.AsType[*client.Failure](err)
	if !ok {
		t.Fatal(err)
	}
	return answer{failed.Status, got.Stdout, got.Stderr}
}

// ourCaller is our relay.
func (w *world) ourCaller(t *testing.T, h *lab.Host, phase string, p client.Profile, params map[string]string) answer {
	t.Helper()
	r := w.deliver(t, h, phase, p, params)
	return answer{r.ShimExit, r.Transcript, r.Transcript}
}

func runID(t *testing.T) envelope.RunID {
	t.Helper()
	id, err := envelope.NewRunID(rand.Reader)
	must(t, err)
	return id
}

func (w *world) deliver(t *testing.T, h *lab.Host, phase string, p client.Profile, params map[string]string) delivery.Report {
	t.Helper()
	block := ""
	for _, name := range slices.Sorted(maps.Keys(params)) {
		block += name + "=" + params[name] + "\n"
	}
	r, err := delivery.Deliver(t.Context(), delivery.Order{
		Target: h.Target(t, w.login.PEM), Limits: lab.RelayLimits(),
		Envelope: envelope.Envelope{
			Phase: envelope.Phase(phase), RunID: runID(t), Params: []byte(block),
			Sig: []byte(p.Signatures[phase]), Script: []byte(p.Scripts[phase]),
		},
	}, func() error { return nil })
	must(t, err)
	return r
}

// joinParams are what the tests' node class brings to install and join.
func joinParams(t *testing.T, change func(*client.Join)) map[string]string {
	t.Helper()
	j := client.Join{
		Endpoint: endpoint, CA: []byte(clusterCA), Token: "abcdef.0123456789abcdef", NodeName: "pool-7f3a", ProviderID: "kpssh://pool/host-a",
		Labels: "karpenter.sh/nodepool=pool,example.org/tier=", Taints: []string{"dedicated=gpu:NoSchedule"}, Address: "10.0.0.21",
		Vars: map[string]string{"k8sMinor": "1.36", "clusterDNS": "10.96.0.10"}, Secrets: map[string]string{"activation-id": "it's $(a) 'value'"},
	}
	if change != nil {
		change(&j)
	}
	params, err := j.Params()
	must(t, err)
	return params
}

// row is one thing that is sent, and the code that each shim answers with.
type row struct {
	phase         string
	profile       client.Profile
	params        map[string]string
	ours, standIn int
	stderr        string // what either says
}

// rows of profiles signed by w.signer. The older version comes after the newer one.
func (w *world) rows(t *testing.T) (names []string, rows map[string]row) {
	t.Helper()
	rows = map[string]row{}
	add := func(name string, r row) {
		names, rows[name] = append(names, name), r
	}
	const profile = "tls-bootstrap"
	failing := map[string]string{"leave": "#!/bin/bash\necho broken >&2\nexit 7\n", "uninstall": "#!/bin/bash\nexit 2\n", "join": "#!/bin/bash\n", "install": "#!/bin/bash\n"}
	older, newer, failed := sign(t, profile, 2, terms, scripts(), w.signer), sign(t, profile, 3, terms, scripts(), w.signer), sign(t, "failing", 1, terms, failing, w.signer)
	leave := client.Leave("10.0.0.21", "")
	installParams := joinParams(t, func(j *client.Join) { j.Token = "" })

	add("install", row{phase: "install", profile: newer, params: installParams})
	add("join", row{phase: "join", profile: newer, params: joinParams(t, nil)})
	add("the same join again", row{phase: "join", profile: newer, params: joinParams(t, nil)})
	add("join, node identity adopted", row{phase: "join", profile: newer, params: joinParams(t, func(j *client.Join) { j.ProviderID = "" })})
	add("leave", row{phase: "leave", profile: newer, params: leave})
	add("uninstall", row{phase: "uninstall", profile: newer, params: leave})
	add("a script as long as an object holds", row{phase: "leave", profile: sign(t, "tls-long", 1, terms, long(), w.signer), params: leave})
	add("no warrant", row{phase: "leave", profile: plain(t, "leave", scripts()["leave"], w.signer), params: leave})
	add("a script that exits 7", row{phase: "leave", profile: failed, params: leave, ours: 10, standIn: 10, stderr: "kpssh-shim: script exited 7\n"})
	add("a script that exits 2", row{phase: "uninstall", profile: failed, params: leave, ours: 10, standIn: 10, stderr: "kpssh-shim: script exited 2\n"})

	tampered := client.Profile{Scripts: map[string]string{"leave": newer.Scripts["leave"] + "#\n"}, Signatures: newer.Signatures}
	add("a changed script", row{phase: "leave", profile: tampered, params: leave, ours: 2, standIn: 2, stderr: "kpssh-shim: "})
	add("another signer", row{phase: "leave", profile: plain(t, "leave", scripts()["leave"], w.other), params: leave, ours: 2, standIn: 2, stderr: "kpssh-shim: "})
	add("a parameter that steers bash", row{phase: "leave", profile: newer, params: map[string]string{"BASH_ENV": "/tmp/x"}, ours: 3, standIn: 3, stderr: "kpssh-shim: "})
	both := sign(t, profile, 3, terms, scripts(), w.signer, w.other)
	add("a second signature behind the first", row{phase: "leave", profile: both, params: leave})

	// what a warrant adds: a shim that does not read it runs all of these
	add("an older version", row{phase: "join", profile: older, params: joinParams(t, nil), ours: 20})
	crossed := client.Profile{Scripts: map[string]string{"leave": newer.Scripts["join"]}, Signatures: map[string]string{"leave": newer.Signatures["join"]}}
	add("join sent as leave", row{phase: "leave", profile: crossed, params: leave, ours: 16})
	add("a foreign endpoint", row{phase: "join", profile: newer, params: joinParams(t, func(j *client.Join) { j.Endpoint = "https://evil.example:6443" }), ours: 3})
	add("a foreign CA", row{phase: "join", profile: newer, params: joinParams(t, func(j *client.Join) { j.CA = []byte("other") }), ours: 3})
	add("a var that is not declared", row{phase: "join", profile: newer, params: joinParams(t, func(j *client.Join) { j.Vars["extra"] = "1" }), ours: 3})
	add("another class", row{phase: "leave", profile: sign(t, "gpu", 1, "targets: [class gpu]\n", scripts(), w.signer), params: leave, ours: 15})
	return names, rows
}

// long are scripts of which one reaches, with its warrant, the 262144 characters of the CRD but for a few.
func long() map[string]string {
	all := scripts()
	const line, warrant = "# 0123456789 0123456789 0123456789 0123456789\n", 512
	head, rest, _ := strings.Cut(all["leave"], "\n")
	all["leave"] = head + "\n" + strings.Repeat(line, (262144-warrant-len(all["leave"]))/len(line)) + rest
	return all
}

func TestEachControllerWorksWithEachShim(t *testing.T) {
	w := newWorld(t)
	names, rows := w.rows(t)
	for callerName, call := range map[string]caller{"their controller": w.theirCaller, "our relay": w.ourCaller} {
		for shimName, isOurs := range map[string]bool{"our shim": true, "a shim without warrants": false} {
			t.Run(callerName+", "+shimName, func(t *testing.T) {
				var h *lab.Host
				if isOurs {
					h = w.ours(t, "ours", conf("optional"))
				} else {
					h = w.standIn(t, "standin")
				}
				for _, name := range names {
					r := rows[name]
					want := r.standIn
					if isOurs {
						want = r.ours
					}
					t.Run(name, func(t *testing.T) { r.play(t, h, call, want) })
				}
			})
		}
	}
}

// play sends the row and compares code, words, and what the script was given.
func (r row) play(t *testing.T, h *lab.Host, call caller, want int) {
	t.Helper()
	h.Must(t, "rm -rf /var/lib/kpssh")
	got := call(t, h, r.phase, r.profile, r.params)
	if got.code != want || !strings.Contains(got.stderr, r.stderr) {
		t.Fatalf("exit %d, want %d; stderr %q, want %q in it", got.code, want, got.stderr, r.stderr)
	}
	if want != 0 {
		if left := h.Must(t, "ls -A /var/lib/kpssh 2>/dev/null || :"); left != "" {
			t.Errorf("the script ran and left %s", left)
		}
		return
	}
	ran := r.phase
	if strings.HasSuffix(r.profile.Scripts[r.phase], "kpssh join: OK'\n") {
		ran = "join" // whatever it was sent as
	}
	if !strings.Contains(got.stdout, "kpssh "+ran+": OK\n") {
		t.Errorf("stdout %q", got.stdout)
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.params)) {
		fmt.Fprintf(&lines, "%s=%s\n", name, r.params[name])
	}
	if diff := cmp.Diff(lines.String(), h.Must(t, "cat /var/lib/kpssh/"+ran)); diff != "" {
		t.Errorf("what the script was given (-sent +given):\n%s", diff)
	}
}
