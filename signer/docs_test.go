package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// docs/cli.md and the commands must say the same.
func TestDocsMatchTheCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		sections[title] = body
	}
	root := (&cli{}).rootCommand()
	root.InitDefaultCompletionCmd()
	var seen []string
	for _, cmd := range commands(root) {
		seen = append(seen, cmd.CommandPath())
		body, there := sections[cmd.CommandPath()]
		if !there {
			t.Errorf("docs/cli.md has no section %q", cmd.CommandPath())
			continue
		}
		checkSection(t, cmd, body)
	}
	for title := range sections {
		if !slices.Contains(seen, title) {
			t.Errorf("docs/cli.md describes %q, which is no command", title)
		}
	}
}

// commands lists the commands below c; the shells of completion are cobra's own.
func commands(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, child := range c.Commands() {
		all = append(all, child)
		if child.Name() != "completion" {
			all = append(all, commands(child)...)
		}
	}
	return all
}

var (
	flagName  = regexp.MustCompile("(^|[ `(])--([a-z-]+)")
	flagUsage = regexp.MustCompile(`(?m)^ +(?:-[a-zA-Z], )?--([a-z-]+)`)
)

func checkSection(t *testing.T, cmd *cobra.Command, body string) {
	t.Helper()
	if cmd.Short == "" || cmd.Name() != "completion" && cmd.Example == "" {
		t.Errorf("%s needs a summary and an example in its help", cmd.CommandPath())
	}
	for _, line := range strings.Split(cmd.Example, "\n") {
		if !strings.Contains(body, "\n"+strings.TrimPrefix(line, "  ")+"\n") {
			t.Errorf("docs/cli.md: %s lacks the example %q", cmd.CommandPath(), line)
		}
	}
	for _, m := range flagUsage.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
		if m[1] != "help" && !strings.Contains(body, "`--"+m[1]+"`") {
			t.Errorf("docs/cli.md: %s does not explain --%s", cmd.CommandPath(), m[1])
		}
	}
	prose, _, _ := strings.Cut(body, "```")
	for _, m := range flagName.FindAllStringSubmatch(prose, -1) {
		if m[2] != "help" && cmd.Flags().Lookup(m[2]) == nil {
			t.Errorf("docs/cli.md: %s has no flag --%s", cmd.CommandPath(), m[2])
		}
	}
}

// The commands of the README's section on signing do what it says, one after the other.
func TestTheREADMEsSigningSectionRuns(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, there := strings.Cut(string(text), "\n## Sign and verify, offline\n")
	_, block, fenced := strings.Cut(section, "\n```sh\n")
	commands, _, closed := strings.Cut(block, "\n```\n")
	if !there || !fenced || !closed {
		t.Fatal("the README has no such section with a block of commands")
	}
	out := followed(t, t.TempDir(), commands)
	for _, says := range []string{
		"profile.yaml: verified: SSHJoinProfile/demo: Verified: 3 phases vouched for",
		"join: warrant: serial 1,",
		"changed.yaml: refused: SSHJoinProfile/demo: join: BytesChanged: ",
		"the signed bytes are those of scripts; the first that differs is on line 12, column 7",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("want %q in\n%s", says, out)
		}
	}
}

// What the install page does with the program runs as it stands there.
func TestTheInstallPagesCommandsRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^hostwarrant .*$`).FindAllString(string(text), -1)
	if len(commands) < 5 || strings.Count(string(text), "hostwarrant policy") != len(commands)-1 {
		t.Fatalf("the page has only these commands on lines of their own: %q", commands)
	}
	ca, err := testkit.ClusterCA() // kubectl's part
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testkit.WriteFile(t, dir, "ca.crt", ca)
	out := followed(t, dir, strings.Join(commands, "\n")+"\nssh-keygen -Q -f revoked_keys keys/signer.pub\ncat allowed_signers")
	if !strings.Contains(out, "verified: TrustPolicy/cluster") || !strings.Contains(out, `namespaces="kpssh" ssh-ed25519 `) {
		t.Fatal(out)
	}
}

// The page on fragments runs as it stands there, from the first key to the policy of another tool.
func TestTheFragmentsPagesCommandsRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "fragments.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, part := range strings.Split(string(text), "\n```sh\n")[1:] {
		block, _, closed := strings.Cut(part, "\n```\n")
		if !closed {
			t.Fatal("a block of commands does not end")
		}
		if strings.Contains(block, "kubectl ") {
			continue // followed in a cluster, in e2e
		}
		commands = append(commands, block)
	}
	out := followed(t, t.TempDir(), strings.Join(commands, "\n"))
	for _, says := range []string{
		"  class: base\n",
		"redis-base.yaml: verified: ContainerProfile/redis-base: Verified: class base of the bundle redis, version 1",
		"bundle default/redis: taken\n",
		"  out  redis-ops: SignerScope: ",
		"~ member overlay/redis-ops version 1 is now 2\n",
		`+ execs {"args":["/usr/bin/redis-cli","ping"],"path":"/usr/bin/redis-check-aof"}`,
		"redis-ops.yaml: overlay/redis-ops version 1 is under the root ",
		"  in   admission/redis-net version 1, ",
		"trust-policy.yaml: verified: TrustPolicy/cluster: ",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("want %q in\n%s", says, out)
		}
	}
}

// programDir holds this test binary under the program's name; TestMain then runs main.
func programDir(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "hostwarrant")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// followed runs commands of a page in a directory, as somebody would who has just built the programs, and
// gives what they print.
func followed(t *testing.T, dir, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Tool(t, "bash"), "-euo", "pipefail", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+programDir(t)+":"+os.Getenv("PATH"), "SSH_AUTH_SOCK=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
