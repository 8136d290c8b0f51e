//go:build linux

package provision

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// envelope is what a controller sends (docs/spec/envelope.md).
func envelope(phase, script, signature string) string {
	if script == "" {
		return fmt.Sprintf("kpssh-envelope: 1\nphase: %s\n", phase)
	}
	return envelopeWith(phase, "", script, signature)
}

func envelopeWith(phase, params, script, signature string) string {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return fmt.Sprintf("kpssh-envelope: 1\nphase: %s\nparams-b64: %s\nsig-b64: %s\nscript-b64: %s\n", phase, b64(params), b64(signature), b64(script))
}

// listing is all of a setup on a host: owners, modes, contents, times of change, and the accounts.
const listing = `for f in $(find /etc/kpssh /opt/kpssh /var/lib/hostwarrant /etc/sudoers.d /etc/ssh/sshd_config.d); do
stat -c '%A %u %g %z %n' "$f"; [ ! -f "$f" ] || sha256sum "$f"; done; getent passwd kpssh; getent shadow kpssh; id kpssh`

func TestTheScriptMakesAPoolHostOfAnEmptyOne(t *testing.T) {
	w := newWorld(t)
	h := w.bare(t, nil)
	if r := w.check(t, h); r.code != 1 || !strings.Contains(r.out, "account kpssh: is missing; fix: ") || !strings.Contains(r.out, "/opt/kpssh/kpssh-shim: is missing; fix: ") {
		t.Errorf("before the setup: exit %d, %s%s", r.code, r.out, r.err)
	}
	put(t, h, "/root/setup.sh", []byte(w.provision(t, w.flags(t, w.dir)...)), 0o700)
	first := h.Must(t, "/root/setup.sh")
	for _, says := range []string{"made /opt/kpssh", "made the account kpssh", "wrote /etc/sudoers.d/kpssh", "wrote /etc/ssh/sshd_config.d/kpssh.conf", "reloaded sshd, process ", "15 changes: this host is as trust policy 1 (sha256:"} {
		if !strings.Contains(first, "hostwarrant: "+says) {
			t.Errorf("the first run does not say %q:\n%s", says, first)
		}
	}
	wantGreen(t, w.check(t, h))

	before := h.Must(t, listing)
	if second := h.Must(t, "/root/setup.sh"); strings.Count(second, "\n") != 1 || !strings.HasPrefix(second, "hostwarrant: nothing to change: this host is as trust policy 1 (sha256:") {
		t.Errorf("the second run says\n%s", second)
	}
	if after := h.Must(t, listing); after != before {
		t.Errorf("the second run changed something:\n%s\n%s", before, after)
	}

	if r := w.send(t, h, envelope("probe", "", "")); r.code != 0 || strings.Count(r.out, "\n") < 3 {
		t.Errorf("probe over ssh: %+v", r)
	}
	script := "#!/bin/bash\nid -u; echo \"$0\" | grep -c /run/kpssh/\n"
	if r := w.send(t, h, envelope("join", script, testkit.Sign(t, w.signer, "kpssh", []byte(script)))); r.code != 0 || r.out != "0\n1\n" {
		t.Errorf("a signed script: %+v", r)
	}
	if r := w.send(t, h, envelope("join", script, testkit.Sign(t, w.root, "kpssh", []byte(script)))); r.code != 2 {
		t.Errorf("a script that a root signed: %+v", r)
	}
	wantGreen(t, w.check(t, h))
}

func TestCheckOverSSH(t *testing.T) {
	w := newWorld(t)
	h := w.setUp(t)
	h.Must(t, "useradd --create-home admin && mkdir -m 700 /home/admin/.ssh && cp /root/.ssh/authorized_keys /home/admin/.ssh/ && chown -R admin: /home/admin/.ssh")
	testkit.WriteFile(t, w.dir, "login", w.login.PEM)
	if err := os.Chmod(filepath.Join(w.dir, "login"), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, w.dir, "known_hosts", []byte(h.KnownHostLine()+"\n"))
	config := testkit.WriteFile(t, w.dir, "ssh_config", fmt.Appendf(nil,
		"Host %s\n\tIdentityFile %s/login\n\tIdentitiesOnly yes\n\tUserKnownHostsFile %s/known_hosts\n\tBatchMode yes\n", h.Addr, w.dir, w.dir))
	check := func(user string, more ...string) result {
		return w.hostwarrant(t, append(append([]string{"host", "check"}, append(w.flags(t, w.dir), "--ssh", user+"@"+h.Addr.String(), "--ssh-config", config)...), more...)...)
	}
	before := h.Must(t, listing)
	wantGreen(t, check("root"))
	if r := check("admin"); r.code != 3 || !strings.Contains(r.err, "asking the host: exit status 1: sudo: a password is required") {
		t.Errorf("as a user who may not: %+v", r)
	}
	h.Must(t, "echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin && chmod 440 /etc/sudoers.d/admin")
	wantGreen(t, check("admin"))
	h.Must(t, "rm /etc/sudoers.d/admin")
	if after := h.Must(t, listing); without(after, "/etc/sudoers.d") != without(before, "/etc/sudoers.d") {
		t.Errorf("looking changed something:\n%s\n%s", before, after)
	}
	h.Must(t, "chmod 666 /etc/kpssh/floors")
	r := check("root", "-o", "json")
	var found struct {
		Host     string
		Findings []struct{ Where, Fault, Fix string }
	}
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 1 {
		t.Fatalf("%v: %+v", err, r)
	}
	if len(found.Findings) != 1 || found.Findings[0].Where != "/etc/kpssh/floors" || found.Findings[0].Fix != "chmod 0644 /etc/kpssh/floors" || found.Host != "root@"+h.Addr.String() {
		t.Errorf("found %+v", found)
	}
}

// without leaves out the lines that end in a path, whose time of change is not what is looked at.
func without(text, end string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasSuffix(line, " "+end) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// What could lock somebody out, or let somebody in, leaves the host as it was.
func TestTheScriptStopsBeforeItDoesHarm(t *testing.T) {
	w := newWorld(t)
	script := []byte(w.provision(t, w.flags(t, w.dir)...))
	sshd := "/etc/ssh/sshd_config.d/kpssh.conf"
	for name, c := range map[string]struct {
		before string // the host, before
		wants  string // on stderr
		after  string // what then holds
	}{
		"sshd does not include": {
			"sed -i /Include/d /etc/ssh/sshd_config", `sshd still does not say "authenticationmethods publickey" for the user kpssh; the file was put back`,
			"! test -e " + sshd + " && ! test -e /etc/kpssh/authorized_keys && sshd -t",
		},
		"an earlier block wins": {
			"printf 'Match User kpssh\\nPermitTTY yes\\nMatch all\\n' >/etc/ssh/sshd_config.d/10-mine.conf", `sshd still does not say "permittty no"`,
			"! test -e " + sshd + " && sshd -t",
		},
		"sshd is broken already": {
			"echo Nonsense yes >>/etc/ssh/sshd_config", "sshd does not take its present configuration, before anything was changed",
			"! test -e /opt/kpssh && ! test -e /etc/kpssh && ! getent passwd kpssh",
		},
		"sudo does not include": {
			"sed -i /includedir/d /etc/sudoers", "sudo does not read /etc/sudoers.d/kpssh", "! test -e " + sshd + " && visudo -cq",
		},
		"an older file of ours": {
			"printf 'Match User kpssh\\nForceCommand /opt/kpssh/kpssh-shim\\nMatch all\\n' >" + sshd + "; printf 'Match User kpssh\\nPermitTTY yes\\n' >>/etc/ssh/sshd_config.d/a.conf",
			`sshd still does not say "permittty no"`, "grep -q ForceCommand " + sshd + " && ! grep -q PermitTTY " + sshd,
		},
		"a program is missing": {
			"rm /usr/bin/logger", "these programs are missing: logger", "! test -e /opt/kpssh",
		},
		"OpenSSH is old": {
			"printf '#!/bin/sh\\necho OpenSSH_8.1p1 >&2\\n' >/usr/bin/ssh", "OpenSSH 8.2 or newer is needed, this is OpenSSH_8.1p1", "! test -e /opt/kpssh",
		},
		"something is in the way": {
			"ln -s /tmp /opt/kpssh", "/opt/kpssh is in the way: it is no directory", "! getent passwd kpssh",
		},
		"the account is root": {
			"echo kpssh:x:0:0::/root:/bin/sh >>/etc/passwd", "the account kpssh is root under another name", "! test -e " + sshd + " && sed -i /^kpssh:/d /etc/passwd /etc/shadow && ! getent passwd kpssh && /root/setup.sh",
		},
		"the script was changed on its way": {
			"sed -i 's/^floor/floor/; s/^tls-bootstrap 40/tls-bootstrap 39/' /root/setup.sh", "the content of /etc/kpssh/floors is damaged in this script", "! test -e /opt/kpssh",
		},
		"the script was cut short": {
			"head -c -20 /root/setup.sh >/root/s && cat /root/s >/root/setup.sh; printf '\\nexit 1\\n' >>/root/setup.sh", "", "! test -e /opt/kpssh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := w.bare(t, nil)
			put(t, h, "/root/setup.sh", script, 0o700)
			h.Must(t, c.before)
			if r := on(t, h, "/root/setup.sh"); r.code == 0 || !strings.Contains(r.err, c.wants) {
				t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.out, r.err)
			}
			if r := on(t, h, c.after); r.code != 0 {
				t.Errorf("afterwards it does not hold that %s", c.after)
			}
			if out := h.Must(t, "ls -d /run/hostwarrant.?????? 2>/dev/null || echo nothing"); out != "nothing\n" {
				t.Errorf("left behind: %s", out)
			}
		})
	}
}

// An account that is there already, upstream's for example, is taken over and pinned.
func TestTheScriptTakesAnAccountOver(t *testing.T) {
	w := newWorld(t)
	h := w.bare(t, nil)
	h.Must(t, "useradd --create-home --shell /bin/bash --groups sudo --password x kpssh")
	put(t, h, "/root/setup.sh", []byte(w.provision(t, w.flags(t, w.dir)...)), 0o700)
	out := h.Must(t, "/root/setup.sh")
	for _, says := range []string{"gave the account kpssh the shell /bin/sh", "took the password of the account kpssh", "took the account kpssh out of other groups than its own (kpssh sudo)"} {
		if !strings.Contains(out, says) {
			t.Errorf("it does not say %q:\n%s", says, out)
		}
	}
	wantGreen(t, w.check(t, h))
}

// What the host remembers survives a second run, and what statements said is not undone.
func TestTheScriptLeavesStateAndStatementsAlone(t *testing.T) {
	w := newWorld(t)
	h := w.setUp(t)
	put(t, h, "/root/floor", (&statement.Statement{Kind: statement.KindFloor, Serial: 4, Issued: time.Now().Unix(), Cluster: "lab-1", Floors: []statement.Floor{{Profile: "web-*", Serial: 9}}}).Text(), 0o600)
	h.Must(t, `cd /var/lib/hostwarrant && umask 077 && mkdir marks statements && printf 'serial 77\n' >marks/tls-bootstrap && echo 1700000000 >time-floor &&
echo 'web-* 9' >/etc/kpssh/floors && cp /root/floor statements/floor && sha256sum /var/lib/hostwarrant/statements/floor /etc/kpssh/floors >statements/rendered`)
	before := h.Must(t, listing)
	out := h.Must(t, "/root/setup.sh")
	if !strings.Contains(out, "kept /etc/kpssh/floors: this host has accepted a floor statement, which says what is in it\n") || !strings.Contains(out, "1 file kept as accepted statements say") {
		t.Errorf("it says\n%s", out)
	}
	if after := h.Must(t, listing); after != before {
		t.Errorf("it changed something:\n%s\n%s", before, after)
	}
	r := w.check(t, h)
	wantGreen(t, r)
	if !strings.Contains(r.err, "note: /etc/kpssh/floors is as the accepted floor statement of serial 4 says, not as the policy does") {
		t.Errorf("stderr %q", r.err)
	}
	// The right bytes in the wrong hands: its owner may write others tomorrow.
	for _, c := range []struct{ fault, want, fix string }{
		{"chown kpssh", "belongs to user *, not to root", "chown root:root"},
		{"chmod g+w", "has mode 0620: others than root may write it", "chmod go-w"},
	} {
		kept := state + "/statements/floor"
		h.Must(t, c.fault+" "+kept)
		want := kept + ": " + c.want + "; fix: look into it, then " + c.fix + " " + kept
		if r := w.check(t, h); r.code != 1 || cmp.Diff([]string{want}, matched([]string{want}, r.out)) != "" {
			t.Errorf("after %s: %+v", c.fault, r)
		}
		h.Must(t, c.fix+" "+kept)
		wantGreen(t, w.check(t, h))
	}
	h.Must(t, "echo 'web-* 3' >/etc/kpssh/floors && sed -i 's/^serial 4/serial 5/' /var/lib/hostwarrant/statements/floor")
	r = w.check(t, h)
	for _, says := range []string{`/etc/kpssh/floors: is not what the accepted floor statement says: has a line that is not of it: "web-* 3"; fix: `, "/statements/floor: is not the statement that was accepted: every run is refused with 22; fix: hostwarrant host repair --statement floor\n"} {
		if r.code != 1 || !strings.Contains(r.out, says) {
			t.Errorf("it does not say %q: %+v", says, r)
		}
	}
	h.Must(t, "hostwarrant host repair --statement floor && /root/setup.sh")
	wantGreen(t, w.check(t, h))
}

func TestRemoveLeavesNothingButWhatItSays(t *testing.T) {
	w := newWorld(t)
	h := w.bare(t, nil)
	whole := `find /etc /opt /var/lib /run -xdev ! -name '*-' ! -name .pwd.lock ! -path /run/sshd.pid ! -path /run/motd.dynamic | sort; cat /etc/passwd /etc/shadow /etc/group`
	before := h.Must(t, whole)
	put(t, h, "/root/setup.sh", []byte(w.provision(t, w.flags(t, w.dir)...)), 0o700)
	put(t, h, "/root/remove.sh", []byte(w.provision(t, "--remove")), 0o700)
	put(t, h, "/root/purge.sh", []byte(w.provision(t, "--remove", "--purge")), 0o700)
	h.Must(t, "/root/setup.sh")
	if r := w.send(t, h, envelope("probe", "", "")); r.code != 0 {
		t.Fatalf("probe: %+v", r)
	}
	h.Must(t, "echo mine >/etc/kpssh/mine")
	out := h.Must(t, "/root/remove.sh")
	for _, says := range []string{"removed the account kpssh", "reloaded sshd, process ", "kept /etc/kpssh: it holds what the setup did not put there", "kept /var/lib/hostwarrant: what this host has seen"} {
		if !strings.Contains(out, says) {
			t.Errorf("it does not say %q:\n%s", says, out)
		}
	}
	h.Must(t, "rm /etc/kpssh/mine && rmdir /etc/kpssh && sshd -t && visudo -cq")
	if again := h.Must(t, "/root/remove.sh"); !strings.HasSuffix(again, "hostwarrant: nothing to remove\n") {
		t.Errorf("the second time it says\n%s", again)
	}
	if purged := h.Must(t, "/root/purge.sh"); !strings.Contains(purged, "removed /var/lib/hostwarrant") {
		t.Errorf("purge says\n%s", purged)
	}
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(h.Must(t, whole), "\n")); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
	// A run that goes on stops it.
	h.Must(t, "/root/setup.sh")
	h.Must(t, "exec 9>/var/lib/hostwarrant/running && flock 9 && ! /root/remove.sh 2>/tmp/e && grep -q 'a phase script is running' /tmp/e && getent passwd kpssh")
}
