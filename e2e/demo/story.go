//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
)

// The story's names.
const (
	clusterID = "demo"
	namespace = "pool"
	profile   = "demo"
)

// story is one telling: what runs, and where its files are.
type story struct {
	lab     *lab.Lab
	cluster *lab.ControlPlane
	product *product.Product
	running product.Programs
	login   *loginKey
	hostA   *lab.Host
	hostB   *lab.Host
	hostC   *lab.Host         // becomes a node; nil where none can
	older   envelope.Envelope // join of the first version, as it went to host-a
	dir     string
	out     io.Writer
	told    int
}

// answer is what a step saw.
type answer struct {
	tried string
	said  string
}

// step is one thing that is tried. The answer must contain want, and refused says whether it must
// have been a refusal.
type step struct {
	title string
	try   func(context.Context) (answer, bool, error)
	want  string
	fails bool
}

func (s *story) play(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.startCluster(ctx); err != nil {
		return err
	}
	init, err := s.initArgs()
	if err != nil {
		return err
	}
	first := step{title: "Make keys and a signed trust policy, offline", want: "trust-policy.yaml", try: s.hostwarrant(init...)}
	if err := s.tell(ctx, first); err != nil {
		return err
	}
	if err := s.stage(ctx); err != nil {
		return err
	}
	for _, next := range s.steps() {
		if err := s.tell(ctx, next); err != nil {
			return err
		}
	}
	if err := s.restore(ctx); err != nil {
		return err
	}
	return s.writeEnv()
}

// initArgs are those of "hostwarrant init", whose policy pins the cluster: its URL, and its CA where there is one.
func (s *story) initArgs() ([]string, error) {
	args := []string{"init", "keys", "--cluster", clusterID + "=" + s.cluster.RESTConfig().Host, "--namespace", namespace}
	ca, err := s.cluster.CA()
	if err != nil || len(ca) == 0 {
		return args, err
	}
	return append(args, "--cluster-ca", clusterID+"=ca.crt"), os.WriteFile(filepath.Join(s.dir, "ca.crt"), ca, 0o600)
}

// tell plays a step, prints it, and fails when the answer is not the one the story needs.
func (s *story) tell(ctx context.Context, next step) error {
	s.told++
	got, refused, err := next.try(ctx)
	if err == nil {
		err = ctx.Err() // a command that was interrupted has refused nothing
	}
	if err != nil {
		return fmt.Errorf("step %d (%s): %w", s.told, next.title, err)
	}
	mark := "yes"
	if refused {
		mark = " no"
	}
	fmt.Fprintf(s.out, "%2d  %s\n    $ %s\n    %s %s\n", s.told, next.title, got.tried, mark, strings.TrimSpace(got.said))
	if refused != next.fails || !strings.Contains(got.said, next.want) {
		return fmt.Errorf("step %d (%s): this is not the answer the story needs: %q, refused: %v", s.told, next.title, next.want, next.fails)
	}
	return nil
}

// command runs a program in the story's directory. A non-zero exit is a refusal.
func (s *story) command(ctx context.Context, program string, args ...string) (answer, bool, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.lab.Root(), "bin", program), args...)
	if program == "kubectl" {
		cmd = exec.CommandContext(ctx, s.cluster.KubectlPath, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig, "KUBECACHEDIR="+filepath.Join(s.lab.StateDir(), "kubectl-cache"))
	}
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	a := answer{tried: shellLine(append([]string{program}, args...)), said: plain(string(out))}
	if err != nil && cmd.ProcessState == nil {
		return a, false, err
	}
	return a, err != nil, nil
}

// shellLine writes a command so that it can be pasted into a shell.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if strings.ContainsAny(word, " \t\n\"'`$&|;<>()[]{}*?~#\\") || word == "" {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// plain drops what kubectl and the API server put around our words.
func plain(out string) string {
	text := strings.TrimSpace(out)
	if _, after, ok := strings.Cut(text, "denied the request: "); ok {
		text = after
	}
	return strings.ReplaceAll(text, "\n", "\n        ")
}

// writeEnv writes what a shell needs to go on where the story ended.
func (s *story) writeEnv() error {
	path := filepath.Join(s.lab.Root(), "bin") + ":" + filepath.Dir(s.cluster.KubectlPath)
	text := "export " + shellLine([]string{"KUBECONFIG=" + s.cluster.Kubeconfig}) + "\n" +
		"export " + shellLine([]string{"KUBECACHEDIR=" + filepath.Join(s.lab.StateDir(), "kubectl-cache")}) + "\n" +
		"export PATH=" + shellLine([]string{path}) + ":\"$PATH\"\n"
	return os.WriteFile(filepath.Join(s.dir, "env"), []byte(text), 0o600)
}

func (s *story) farewell(took time.Duration) {
	fmt.Fprintf(s.out, `
Played in %.0f s. It is all still running; go on with:
    cd %s && . ./env
    kubectl get nodes,sshjoinprofiles,sshhosts,hostruns -A
    kubectl -n %s describe hostrun join-a
    hostwarrant verify signed.yaml --policy keys/trust-policy.yaml --root keys/root.pub --cluster %s
    kubectl edit sshjoinprofile %s        # change a byte of a script
    kubectl describe trustpolicy cluster   # is the policy in force, is admission in the path
    curl %s/policyz   # what the webhook decides by
Take it down with: make -C %s demo-down
`, took.Seconds(), shellLine([]string{s.dir}), namespace, clusterID, profile, s.running.Webhook.Health, shellLine([]string{s.lab.Root()}))
}
