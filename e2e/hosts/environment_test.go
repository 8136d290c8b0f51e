//go:build linux

package hosts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestNoParameterSteersTheShell: names that a shell, the loader or a function table would take up.
func TestNoParameterSteersTheShell(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	for name, line := range map[string]string{
		"BASH_ENV": "BASH_ENV=/tmp/evil", "ENV": "ENV=/tmp/evil", "LD_PRELOAD": "LD_PRELOAD=/tmp/evil.so", "LD_AUDIT": "LD_AUDIT=/tmp/evil.so",
		"PATH": "PATH=/tmp", "IFS": "IFS=/", "SHELLOPTS": "SHELLOPTS=xtrace", "BASHOPTS": "BASHOPTS=extdebug", "PS4": "PS4=$(touch /tmp/evil)",
		"a function": "BASH_FUNC_echo%%=() { touch /tmp/evil; }", "an old function": "echo=() { touch /tmp/evil; }",
		"a prefix of ours": "KPSSHX=1", "nothing behind the prefix": "KPSSH_=1", "lower case": "kpssh_A=1", "a bracket": "KPSSH_A[0]=1",
		"a space before it": " KPSSH_A=1", "an export": "export KPSSH_A=1", "a command": "KPSSH_A;touch /tmp/evil=1", "no value": "KPSSH_A",
	} {
		t.Run(name, func(t *testing.T) {
			w.refuses(t, o.with("KPSSH_NODE_NAME=node-1\n"+line+"\n").text(), 3, "not KPSSH_NAME=value")
		})
	}
	w.runs(t, o)
}

// TestAValueStaysAValue sends what would execute if any shell expanded it.
func TestAValueStaysAValue(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "printf '%s\\n' \"$KPSSH_VAR_text\"\n")
	for name, value := range map[string]string{
		"a function": "() { :; }; touch /tmp/evil", "a substitution": "$(touch /tmp/evil)", "backquotes": "`touch /tmp/evil`",
		"a command": "; touch /tmp/evil", "an assignment": "x=y BASH_ENV=/tmp/evil", "quotes": `'"\`, "a glob": "/*", "an option": "--help", "a percent": "%s%n",
	} {
		t.Run(name, func(t *testing.T) {
			with := o
			with.params = "KPSSH_VAR_text=" + value + "\n"
			if got := w.runs(t, with); got.stdout != value+"\n" {
				t.Errorf("the script saw %q", got.stdout)
			}
			if left := w.root(t, "ls -A /tmp"); left != "" {
				t.Errorf("in /tmp is %q", left)
			}
		})
	}
	for name, value := range map[string]string{"LF": "a\nb", "LF and a name": "a\nBASH_ENV=/tmp/evil", "CR": "a\rb", "NUL": "a\x00b", "two LF": "a\n\nKPSSH_VAR_b=c"} {
		t.Run(name, func(t *testing.T) {
			with := o
			with.params = "KPSSH_VAR_text=" + value + "\n"
			w.refuses(t, with.text(), 3, "params: ")
		})
	}
}

// laxSudo is a site whose sudo keeps what it should not, with a second command that shows it.
const laxSudo = `Defaults !env_reset, setenv, !secure_path
Defaults env_keep += "BASH_ENV ENV IFS SHELLOPTS PS4 TMPDIR LD_PRELOAD PATH KPSSH_EVIL KPSSH_SHIM_PID BASH_FUNC_evil%% SSH_ORIGINAL_COMMAND"
kpssh ALL=(root) NOPASSWD: /usr/bin/env ""
`

// dirty is an environment that steers shells, for the account's own commands.
const dirty = `env BASH_ENV=/tmp/evil ENV=/tmp/evil IFS=/ SHELLOPTS=xtrace PS4=evil TMPDIR=/tmp LD_PRELOAD=/tmp/evil.so KPSSH_EVIL=1 KPSSH_SHIM_PID=1 'BASH_FUNC_evil%%=() { touch /tmp/x; }' SSH_ORIGINAL_COMMAND=evil PATH=/usr/bin:/bin `

// TestTheAccountCannotGiveTheShimAnEnvironment: through sudo's env_keep, -E, an assignment on the sudo line, and by
// starting the shim itself.
func TestTheAccountCannotGiveTheShimAnEnvironment(t *testing.T) {
	w := newSite(t, map[string]string{"/etc/sudoers.d/zz-site": laxSudo})
	o := w.join(t, "env | grep -v -e '^PWD=' -e '^SHLVL=' -e '^OLDPWD=' -e '^_=' | sort\ntype -t evil || true\n")
	o.params = "KPSSH_NODE_NAME=node-1\n"
	w.root(t, "echo 'touch /tmp/ran-evil' >/tmp/evil; chmod 755 /tmp/evil")
	kept := w.user(t, "", dirty+"sudo -n /usr/bin/env")
	if kept.code != 0 || !strings.Contains(kept.stdout, "\nKPSSH_EVIL=1\n") {
		t.Fatalf("sudo keeps nothing, so this shows nothing: %+v", kept)
	}
	for name, command := range map[string]string{
		"the shim itself":                   dirty + "/opt/kpssh/kpssh-shim",
		"sudo":                              dirty + "sudo -n /opt/kpssh/kpssh-shim",
		"an assignment that sudo lets pass": "sudo -n KPSSH_EVIL=1 /opt/kpssh/kpssh-shim",
		"a list that sudo lets pass":        dirty + "sudo -n --preserve-env=KPSSH_EVIL /opt/kpssh/kpssh-shim",
	} {
		t.Run(name, func(t *testing.T) {
			before := w.read(t, ranFile)
			got := w.user(t, o.text(), command)
			want := "HOME=/root\nKPSSH_NODE_NAME=node-1\nLC_ALL=C\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
			if got.code != 0 || got.stdout != want || w.read(t, ranFile) != before+o.mark+"\n" {
				t.Errorf("answered %+v", got)
			}
			if left := w.root(t, "ls -A /tmp"); left != "evil\n" {
				t.Errorf("in /tmp is %q", left)
			}
		})
	}
	for name, command := range map[string]string{
		"sudo -E":                       dirty + "sudo -n -E /opt/kpssh/kpssh-shim",
		"an assignment on the line":     "sudo -n HW_EVIL=1 /opt/kpssh/kpssh-shim",
		"--preserve-env":                "HW_EVIL=1 sudo -n --preserve-env=HW_EVIL /opt/kpssh/kpssh-shim",
		"the guessed mark alone":        "sh -c 'KPSSH_SHIM_PID=$$ exec /opt/kpssh/kpssh-shim'",
		"a mark and one variable kept":  "KPSSH_EVIL=1 sh -c 'KPSSH_SHIM_PID=$$ exec /opt/kpssh/kpssh-shim'",
		"a mark and a function of bash": "bash -c 'evil() { :; }; export -f evil; KPSSH_SHIM_PID=$$ exec /opt/kpssh/kpssh-shim'",
	} {
		t.Run(name, func(t *testing.T) {
			before := w.image(t)
			if got := w.user(t, o.text(), command); got.code != 1 || got.stdout != "" {
				t.Errorf("answered %+v, want 1", got)
			}
			w.unchanged(t, before)
		})
	}
}

// TestSudoTakesTheShimWithoutArgumentsOnly, for nobody else, and nothing else.
func TestSudoTakesTheShimWithoutArgumentsOnly(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	for name, command := range map[string]string{
		"an option": "sudo -n /opt/kpssh/kpssh-shim --help", "a word": "sudo -n /opt/kpssh/kpssh-shim x", "an empty word": "sudo -n /opt/kpssh/kpssh-shim ''",
		"two": "sudo -n /opt/kpssh/kpssh-shim -x y", "another command": "sudo -n /bin/sh", "another user": "sudo -n -u nobody /opt/kpssh/kpssh-shim",
		"a shell": "sudo -n -s", "an editor": "sudo -n -e /etc/kpssh/allowed_signers", "a directory": "sudo -n -D /tmp /opt/kpssh/kpssh-shim",
	} {
		t.Run(name, func(t *testing.T) {
			before := w.image(t)
			if got := w.user(t, o.text(), command); got.code != 1 || got.stdout != "" {
				t.Errorf("answered %+v, want sudo's 1", got)
			}
			w.unchanged(t, before)
		})
	}
	for name, command := range map[string]string{"an option": "/opt/kpssh/kpssh-shim --help", "an empty word": "/opt/kpssh/kpssh-shim ''"} {
		t.Run("the shim itself with "+name, func(t *testing.T) {
			before := w.image(t)
			got := w.user(t, o.text(), command)
			if got.code != 4 || got.stdout != "" || !strings.Contains(got.stderr, "takes no arguments") {
				t.Errorf("answered %+v, want 4", got)
			}
			w.unchanged(t, before)
		})
	}
	if got := w.user(t, o.text(), "sudo -n /opt/kpssh/kpssh-shim"); got.code != 0 || w.read(t, ranFile) != o.mark+"\n" {
		t.Errorf("without an argument it answered %+v", got)
	}
}

const token = "abcdef.0123456789abcdef"

// TestSudoLogsNoEnvelope: a site that logs the input and output of all commands does not log the shim's.
func TestSudoLogsNoEnvelope(t *testing.T) {
	w := newSite(t, map[string]string{
		"/etc/sudoers.d/zz-site": "Defaults log_input, log_output, iolog_dir=/var/log/sudo-io\nkpssh ALL=(root) NOPASSWD: /usr/bin/env \"\"\n",
	})
	o := w.join(t, "echo \"$KPSSH_BOOTSTRAP_TOKEN\"\n")
	o.params = "KPSSH_BOOTSTRAP_TOKEN=" + token + "\n"
	if got := w.user(t, "", "sudo -n /usr/bin/env"); got.code != 0 {
		t.Fatalf("sudo env: %+v", got)
	}
	logged := w.root(t, "find /var/log/sudo-io -type f | sort")
	if logged == "" {
		t.Fatal("nothing is logged of another command, so this shows nothing")
	}
	if got := w.runs(t, o); got.stdout != token+"\n" {
		t.Errorf("the script printed %q", got.stdout)
	}
	if diff := cmp.Diff(logged, w.root(t, "find /var/log/sudo-io -type f | sort")); diff != "" {
		t.Errorf("sudo logged the shim (-before +after):\n%s", diff)
	}
	if found := w.exec(t, token, "sh", "-c", "grep -raf - /var/log /var/lib/hostwarrant /tmp /run 2>/dev/null"); found.stdout != "" {
		t.Errorf("the token is in %q", found.stdout)
	}
}

// TestNoUserSeesATokenInAnyProcess looks through all command lines for as long as a run lasts, from before it starts.
func TestNoUserSeesATokenInAnyProcess(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "while [ ! -e /root/go ]; do sleep 0.05; done\n")
	o.params = "KPSSH_BOOTSTRAP_TOKEN=" + token + "\n"
	w.root(t, "printf '%s\\n' "+token[:6]+" >/tmp/pattern")
	look := func(files string) string {
		return "n=0; while [ ! -e /tmp/stop ]; do cat " + files + " 2>/dev/null | tr '\\0' '\\n' | grep -acf /tmp/pattern >>/tmp/$(id -un); done"
	}
	done := make(chan answer, 3)
	go func() { done <- w.exec(t, "", "sh", "-c", look("/proc/[0-9]*/cmdline")) }()
	go func() { done <- w.user(t, "", look("/proc/[0-9]*/cmdline /proc/[0-9]*/environ")) }()
	go func() { done <- w.send(t, o.text()) }()
	testkit.Eventually(t, time.Minute, "run", func() bool { return w.read(t, ranFile) != "" })
	testkit.Eventually(t, time.Minute, "the script and its sleep, and no other process, to hold the token in their environment", func() bool {
		return w.root(t, "grep -alf /tmp/pattern /proc/[0-9]*/environ 2>/dev/null | wc -l") == "2\n"
	})
	w.root(t, "touch /root/go /tmp/stop")
	for range 3 {
		if got := <-done; got.code != 0 && got.code != 1 {
			t.Errorf("answered %+v", got)
		}
	}
	for _, user := range []string{"root", "kpssh"} {
		seen := w.read(t, "/tmp/"+user)
		if strings.Trim(seen, "0\n") != "" || strings.Count(seen, "0\n") < 3 {
			t.Errorf("%s saw the token in other processes: %q", user, seen)
		}
	}
}
