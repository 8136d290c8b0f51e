package shim

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// output runs a tool that must succeed.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(deadline(t), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.Bytes())
	}
	return string(out)
}

func TestShellcheckFindsNothing(t *testing.T) {
	needTools(t, "shellcheck")
	for _, shell := range []string{"sh", "dash"} {
		output(t, "shellcheck", "-x", "-s", shell, "kpssh-shim")
	}
	// in the tests SHIM, T and others come from the file that sources them
	files, err := filepath.Glob("tests/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	output(t, "shellcheck", append([]string{"-s", "sh", "-S", "warning", "-e", "SC2034,SC2154,SC2064"}, files...)...)
}

func TestSudoersEntryIsValid(t *testing.T) {
	needTools(t, "visudo")
	output(t, "visudo", "-c", "-f", "etc/sudoers.d/kpssh")
}

// TestSshdHoldsTheUserToTheShim asks sshd itself what is in force, with Debian's
// own sshd_config around our file and other files before and after it.
func TestSshdHoldsTheUserToTheShim(t *testing.T) {
	needRootAndTools(t)
	needTools(t, "/usr/sbin/sshd")
	dir := t.TempDir()
	ours, err := os.ReadFile("etc/sshd_config.d/kpssh.conf")
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "hostkey")
	output(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	config := filepath.Join(dir, "sshd_config")
	for name, content := range map[string]string{
		"d/50-cloud.conf": "PasswordAuthentication yes\nPermitTTY yes\n",
		"d/kpssh.conf":    string(ours),
		"d/zz.conf":       "MaxAuthTries 3\n",
		"sshd_config": "Include " + dir + "/d/*.conf\nHostKey " + key + "\nKbdInteractiveAuthentication yes\nUsePAM yes\n" +
			"X11Forwarding yes\nAcceptEnv LANG LC_*\nSubsystem sftp /usr/lib/openssh/sftp-server\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "unshare", "--mount", "--", "sh", "-c", "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && /usr/sbin/sshd -t -f "+config)
	effective := func(user string) string {
		return "\n" + output(t, "unshare", "--mount", "--", "sh", "-c", "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && "+
			"/usr/sbin/sshd -T -f "+config+" -C user="+user+",host=relay,addr=192.0.2.1")
	}
	held := effective("kpssh")
	for _, line := range []string{
		"forcecommand /opt/kpssh/kpssh-shim", "authenticationmethods publickey", "authorizedkeysfile /etc/kpssh/authorized_keys",
		"disableforwarding yes", "x11forwarding no", "allowagentforwarding no", "allowtcpforwarding no", "allowstreamlocalforwarding no", "permittunnel no", "permittty no", "permituserrc no", "passwordauthentication no", "kbdinteractiveauthentication no",
		"acceptenv KPSSH_NOTHING", "trustedusercakeys none", "authorizedkeyscommand none", "maxauthtries 3",
	} {
		if !strings.Contains(held, "\n"+line+"\n") {
			t.Errorf("for the user kpssh sshd does not say %q", line)
		}
	}
	if strings.Contains(held, "acceptenv LANG") {
		t.Error("the user kpssh may set LANG")
	}
	other := effective("root")
	for _, line := range []string{"forcecommand none", "passwordauthentication yes", "x11forwarding yes", "maxauthtries 3", "acceptenv LANG"} {
		if !strings.Contains(other, "\n"+line+"\n") {
			t.Errorf("for other users sshd no longer says %q", line)
		}
	}
}

func TestAuthorizedKeysTemplatePinsTheShim(t *testing.T) {
	text, err := os.ReadFile("etc/authorized_keys")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	want := `restrict,command="/opt/kpssh/kpssh-shim",from="@FROM@" @KEY@` + "\n"
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("lines %q, want one: %q", lines, want)
	}
}

// TestFunctionsAndFileStaySmall holds the shim to the size a reader can judge.
func TestFunctionsAndFileStaySmall(t *testing.T) {
	text, err := os.ReadFile("kpssh-shim")
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`^\s*(#.*)?$`)
	function := regexp.MustCompile(`^([a-z_]+)\(\) \{`)
	code, name, length := 0, "", 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if comment.MatchString(line) {
			continue
		}
		code++
		length++
		if m := function.FindStringSubmatch(line); m != nil {
			name, length = m[1], 1
		}
		if line == "}" && length > 40 {
			t.Errorf("%s has %d lines, at most 40", name, length)
		}
	}
	if code > 900 {
		t.Errorf("%d lines without comments, at most 900", code)
	}
}

// TestEveryExitCodeHasAMarkAndATest: each code in the shim's table but those that
// no check gives is marked at least once and asserted at least once.
func TestEveryExitCodeHasAMarkAndATest(t *testing.T) {
	text, err := os.ReadFile("kpssh-shim")
	if err != nil {
		t.Fatal(err)
	}
	var tests bytes.Buffer
	files, err := filepath.Glob("tests/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(content)
	}
	codes := regexp.MustCompile(`\b[A-Z_]+=(0|[1-9][0-9]?)\b`).FindAllSubmatch(section(t, text, "# Exit codes", "# Limits"), -1)
	if len(codes) != 19 {
		t.Fatalf("%d exit codes in the table, expected 19", len(codes))
	}
	for _, m := range codes {
		code := string(m[1])
		if !regexp.MustCompile(`(?m)\b(answers|refused|spurned) ` + code + `\b`).Match(tests.Bytes()) {
			t.Errorf("no case asserts exit code %s", code)
		}
		switch code {
		case "0", "10", "11": // answers, not refusals
			continue
		}
		if !bytes.Contains(text, []byte("# check: "+code+": ")) {
			t.Errorf("no check is marked with exit code %s", code)
		}
	}
}

func section(t *testing.T, text []byte, from, to string) []byte {
	t.Helper()
	_, rest, ok := bytes.Cut(text, []byte(from))
	if !ok {
		t.Fatalf("no %q", from)
	}
	part, _, ok := bytes.Cut(rest, []byte(to))
	if !ok {
		t.Fatalf("no %q", to)
	}
	return part
}
