package main

import (
	"bytes"
	"crypto/elliptic"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hostwarrant": main, pluginName: main, completeName: main})
}

// The scripts call the real program as people do, beside the real ssh-keygen and ssh-agent.
func TestScripts(t *testing.T) {
	for _, tool := range []string{"ssh-keygen", "ssh-agent", "ssh-add"} {
		testkit.Tool(t, tool)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("SSH_AUTH_SOCK", "")
			e.Setenv("SOFTHSM2_CONF", filepath.Join(e.WorkDir, "softhsm2.conf"))
			return nil
		},
		Condition: have,
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "waitfor": waitFor, "mode": mode, "replace": replace, "cosignkey": cosignKey, "cacertificate": caCertificate, "sumsin": sumsIn, "skdummy": skDummy},
	})
}

// have is the condition [have:TOOL], [have:/FILE], [have:sk-dummy] or [have:netns], a network namespace of
// one's own; where tools are required, it is never false.
func have(cond string) (bool, error) {
	tool, ok := strings.CutPrefix(cond, "have:")
	if !ok {
		return false, fmt.Errorf("no such condition")
	}
	var err error
	switch {
	case tool == "sk-dummy":
		_, err = testkit.SKDummy()
	case tool == "netns":
		err = exec.Command("unshare", "-n", "true").Run()
	case strings.HasPrefix(tool, "/"):
		_, err = os.Stat(tool)
	default:
		_, err = exec.LookPath(tool)
	}
	if err != nil && testkit.Required() {
		return false, fmt.Errorf("%v; run: make deps", err)
	}
	return err == nil, nil
}

// skdummy makes OpenSSH's stand-in for a FIDO2 token the one that its tools use: it sets SSH_SK_PROVIDER.
func skDummy(ts *testscript.TestScript, _ bool, _ []string) {
	path, err := testkit.SKDummy()
	ts.Check(err)
	ts.Setenv("SSH_SK_PROVIDER", path)
}

// cosignkey makes FILE.key and FILE.pub as cosign generate-key-pair does: cosignkey FILE PASSWORD [LABEL].
// LABEL is the block's, which older versions wrote differently. Without PASSWORD the key is in clear.
func cosignKey(ts *testscript.TestScript, _ bool, args []string) {
	var ask cryptoutils.PassFunc
	if len(args) > 1 {
		ask = cryptoutils.StaticPasswordFunc([]byte(args[1]))
	}
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), ask)
	ts.Check(err)
	if len(args) > 2 {
		private = bytes.ReplaceAll(private, []byte("ENCRYPTED SIGSTORE PRIVATE KEY"), []byte(args[2]))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".key"), private, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pub"), public, 0o644))
}

// cacertificate makes FILE as a cluster has its CA: cacertificate FILE
func caCertificate(ts *testscript.TestScript, _ bool, args []string) {
	ca, err := testkit.ClusterCA()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), ca, 0o644))
}

// sumsin wants each digest that sha256sum printed to stand in a file: sumsin SUMS FILE
func sumsIn(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[1])
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if digest := strings.Fields(line)[0]; !strings.Contains(text, `"`+digest+`"`) {
			ts.Fatalf("%s does not hold %s", args[1], digest)
		}
	}
}

// exits runs a command and wants its exit code: exits 1 hostwarrant verify …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("want exit %d, got %d", want, got)
	}
}

// waitfor waits until a file is there.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	ts.Fatalf("%s does not appear", path)
}

// mode wants the permission bits of a file: mode 600 keys/root
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := strconv.FormatUint(uint64(info.Mode().Perm()), 8); got != args[0] {
		ts.Fatalf("want mode %s, got %s", args[0], got)
	}
}

// replace changes the first OLD in a file to NEW: replace FILE OLD NEW
func replace(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}
