//go:build linux

package provision

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// broken is one way in which somebody, or something, broke a host.
type broken struct {
	fault string // what is done to the host, as root
	// want are the lines of check, without the one fix that most share.
	want []string
	// undo is what its fix says; "" is to set the host up again.
	undo string
}

// again ends the lines whose fix is to set the host up again.
const again = "; fix: set the host up again (hostwarrant host provision … -o setup.sh, then sh setup.sh there as root)"

// nextTick waits until a file that changes now is newer than the pid file: the clock of files is a coarse one.
const nextTick = "until touch /root/tick && [ /root/tick -nt /run/sshd.pid ]; do :; done"

// reload is the fix for an sshd that goes by older files; then it waits for the pid file that sshd writes anew.
const reload = `before=$(stat -c '%i %z' /run/sshd.pid); systemctl reload ssh 2>/dev/null || kill -HUP $(cat /run/sshd.pid)
until [ -s /run/sshd.pid ] && [ "$(stat -c '%i %z' /run/sshd.pid)" != "$before" ]; do sleep 0.01; done; ` + nextTick

// unread is the line for an sshd that has not read a part of its configuration.
func unread(path string) string {
	return "sshd: has not read " + path + " since that changed, and goes by what was there before; fix: systemctl reload ssh || kill -HUP $(cat /run/sshd.pid)"
}

// brokenHosts are those of the table below whose fault is in what the setup puts there.
func brokenHosts() map[string]broken {
	return map[string]broken{
		"another shim": {
			"sed -i 's/# check: 2: .*//' /opt/kpssh/kpssh-shim", []string{"/opt/kpssh/kpssh-shim: is another program: its sha256 is *" + again}, "",
		},
		"a shim that a group may write": {
			"chmod 775 /opt/kpssh/kpssh-shim", []string{"/opt/kpssh/kpssh-shim: has mode 0775, not 0755; fix: chmod 0755 /opt/kpssh/kpssh-shim"}, "chmod 0755 /opt/kpssh/kpssh-shim",
		},
		"no shim": {
			"rm /opt/kpssh/kpssh-shim", []string{"/opt/kpssh/kpssh-shim: is missing" + again}, "",
		},
		"a directory of trust that its user may write": {
			"chown kpssh /etc/kpssh", []string{"/etc/kpssh: belongs to user *, not to root; fix: chown root:root /etc/kpssh"}, "chown root:root /etc/kpssh",
		},
		"one more signer": {
			`echo 'kpssh namespaces="kpssh" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAdEk1mMXBO0m7IjIdqvlSwlEwXy4V4DFA8Rl8Yp2JIX' >>/etc/kpssh/allowed_signers`,
			[]string{`/etc/kpssh/allowed_signers: has a line that is not of the policy: "kpssh namespaces=\"kpssh\" ssh-ed25519 *` + again},
			"",
		},
		"a signer list that nobody can read": {
			"printf 'x\\n' >/etc/kpssh/allowed_signers", []string{
				`/etc/kpssh/allowed_signers: has a line that is not of the policy: "x"` + again, "/etc/kpssh/allowed_signers: is no list of signers: *" + again,
			}, "",
		},
		"no revocations": {
			"rm /etc/kpssh/revoked_keys", []string{"/etc/kpssh/revoked_keys: is missing" + again}, "",
		},
		"half a revocation list": {
			"head -c 20 /etc/kpssh/revoked_keys >/root/x && cat /root/x >/etc/kpssh/revoked_keys", []string{
				"/etc/kpssh/revoked_keys: holds other bytes than the policy gives (20, not 44)" + again, "/etc/kpssh/revoked_keys: is no list of revoked keys: *; every run is refused with 23" + again,
			}, "",
		},
		"a directory of revocations": {
			"rm /etc/kpssh/revoked_keys && mkdir /etc/kpssh/revoked_keys",
			[]string{"/etc/kpssh/revoked_keys: is no plain file; fix: rm -r /etc/kpssh/revoked_keys, then set the host up again *"},
			"rm -r /etc/kpssh/revoked_keys; /root/setup.sh",
		},
		"another cluster": {
			"sed -i 's/10.9.8.7/10.6.6.6/' /etc/kpssh/cluster", []string{`/etc/kpssh/cluster: has a line that is not of the policy: "endpoint https://10.6.6.6:6443"` + again}, "",
		},
		"a lower floor": {
			"sed -i 's/40/4/' /etc/kpssh/floors", []string{`/etc/kpssh/floors: has a line that is not of the policy: "tls-bootstrap 4"` + again}, "",
		},
		"no roots": {
			": >/etc/kpssh/root_signers", []string{`/etc/kpssh/root_signers: lacks a line: "root namespaces=\"hostwarrant-statement\" ssh-ed25519 *` + again}, "",
		},
		"longer validity": {
			"sed -i 's/max-validity=90d/max-validity=900d/' /etc/kpssh/shim.conf", []string{`/etc/kpssh/shim.conf: has a line that is not of the policy: "max-validity=900d"` + again}, "",
		},
		"a login key without restrictions": {
			"echo ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAdEk1mMXBO0m7IjIdqvlSwlEwXy4V4DFA8Rl8Yp2JIX >>/etc/kpssh/authorized_keys",
			[]string{`/etc/kpssh/authorized_keys: has a line that is not of the policy: "ssh-ed25519 *` + again},
			"",
		},
		"a link in place of a file": {
			"mv /etc/kpssh/floors /root/floors && ln -s /root/floors /etc/kpssh/floors", []string{"/etc/kpssh/floors: is no plain file; fix: rm -r /etc/kpssh/floors, then *"}, "rm -r /etc/kpssh/floors; /root/setup.sh",
		},
	}
}

func brokenPrograms() map[string]broken {
	const sshd = "/etc/ssh/sshd_config.d/"
	const sudoFix = "; fix: sudo -l -U kpssh shows it, visudo mends it; its rule is in /etc/sudoers.d/kpssh"
	shows := func(key string) string {
		return "; fix: grep -rniE '^\\s*(match|include|" + key + ")' /etc/ssh/sshd_config* shows who says it; the first that holds wins"
	}
	return map[string]broken{
		"a Match block before ours": {
			"printf 'Match User kpssh\\nPermitTTY yes\\nAcceptEnv LD_*\\nMatch all\\n' >" + sshd + "10-mine.conf", []string{
				`sshd: says "permittty yes" for kpssh from ADDR, not "permittty no"` + shows("permittty"),
				`sshd: says "acceptenv LD_*" for kpssh from ADDR, not "acceptenv KPSSH_NOTHING"` + shows("acceptenv"),
				unread(sshd + "10-mine.conf"),
			}, "rm " + sshd + "10-mine.conf; " + reload,
		},
		"a Match block before ours that sshd still goes by": {
			"printf 'Match User kpssh\\nPermitTTY yes\\nMatch all\\n' >" + sshd + "10-mine.conf; " + reload + "; rm " + sshd + "10-mine.conf",
			[]string{unread(strings.TrimSuffix(sshd, "/"))},
			"", // the setup itself has sshd read what it goes by
		},
		"an environment of the user's": {
			"sed -i '1i PermitUserEnvironment yes' /etc/ssh/sshd_config",
			[]string{`sshd: says "permituserenvironment yes" for kpssh from ADDR, not "permituserenvironment no"` + shows("permituserenvironment"), unread("/etc/ssh/sshd_config")},
			"sed -i 1d /etc/ssh/sshd_config; " + reload,
		},
		"an sshd that cannot start": {
			"echo Nonsense yes >" + sshd + "10-mine.conf", []string{"sshd: does not take its configuration: " + sshd + "10-mine.conf: line 1: Bad configuration option: Nonsense *; fix: sshd -t"}, "rm " + sshd + "10-mine.conf; " + reload,
		},
		"a rule for any argument": {
			`sed -i 's/ ""$//' /etc/sudoers.d/kpssh`, []string{
				`/etc/sudoers.d/kpssh: has a line that is not of the policy: "kpssh ALL=(root) NOPASSWD: /opt/kpssh/kpssh-shim"` + again,
				`sudo: lets kpssh start the shim with any argument: its rule lacks the ""` + sudoFix, "sudo: does not let kpssh start the shim" + again,
			}, "",
		},
		"one more rule": {
			"echo 'kpssh ALL=(ALL) NOPASSWD: /usr/bin/env' >/etc/sudoers.d/more && chmod 440 /etc/sudoers.d/more", []string{`sudo: lets kpssh do more than start the shim: "(ALL) NOPASSWD: /usr/bin/env"` + sudoFix}, "rm /etc/sudoers.d/more",
		},
		"input that is logged": {
			"echo 'Defaults!/opt/kpssh/kpssh-shim log_input, setenv' >/etc/sudoers.d/zz && chmod 440 /etc/sudoers.d/zz", []string{
				`sudo: says "log_input" for the shim, not "!log_input"` + sudoFix, `sudo: says "setenv" for the shim, not "!setenv"` + sudoFix,
			}, "rm /etc/sudoers.d/zz",
		},
		"sudoers that nobody can read": {
			"echo nonsense >/etc/sudoers.d/zz && chmod 440 /etc/sudoers.d/zz", []string{"sudo: does not take its configuration: *; fix: visudo -c"}, "rm /etc/sudoers.d/zz",
		},
		"an old ssh": {
			"mv /usr/bin/ssh /usr/bin/ssh.new && printf '#!/bin/sh\\necho OpenSSH_8.1p1 >&2\\n' >/usr/bin/ssh && chmod 755 /usr/bin/ssh",
			[]string{"openssh: OpenSSH_8.1 is older than 8.2, the first that can verify; fix: apt-get install openssh-server openssh-client, from a newer release"},
			"mv /usr/bin/ssh.new /usr/bin/ssh",
		},
		"a program that is missing": {
			"mv /usr/bin/flock /root/", []string{"flock: is not installed; fix: apt-get install openssh-server openssh-client sudo bash coreutils util-linux bsdutils"}, "mv /root/flock /usr/bin/",
		},
		"an account with a password": {
			"usermod --password x kpssh", []string{"account kpssh: has a password; fix: usermod --password '*' kpssh"}, "usermod --password '*' kpssh",
		},
		"an account with a shell that reads files": {
			"usermod --shell /bin/bash kpssh", []string{`account kpssh: has the shell "/bin/bash", which may read files before the shim starts; fix: usermod --shell /bin/sh kpssh`}, "usermod --shell /bin/sh kpssh",
		},
		"an account in a group": {
			"usermod --groups adm kpssh", []string{"account kpssh: is in other groups than its own: kpssh adm; fix: usermod --groups '' kpssh"}, "usermod --groups '' kpssh",
		},
	}
}

func brokenStates() map[string]broken {
	return map[string]broken{
		"no state": {
			"mv " + state + " /root/state", []string{state + ": is missing: every run is refused with 22; fix: hostwarrant host repair --state"}, "hostwarrant host repair --state; mv /root/state/time-floor " + state + "; rm -r /root/state",
		},
		"a state that others may enter": {
			"chmod 755 " + state, []string{state + ": has mode 0755, not 0700; fix: chmod 0700 " + state}, "chmod 0700 " + state,
		},
		"a mark that cannot be read": {
			"mkdir -m 700 " + state + "/marks; echo serial 042 >" + state + "/marks/tls-bootstrap",
			[]string{state + "/marks/tls-bootstrap: is no mark: every run of tls-bootstrap is refused with 22; fix: hostwarrant host repair --mark tls-bootstrap"},
			"hostwarrant host repair --mark tls-bootstrap",
		},
		"a mark of the user's": {
			"mkdir -p -m 700 " + state + "/marks; echo serial 1 >" + state + "/marks/a; chown kpssh " + state + "/marks/a",
			[]string{state + "/marks/a: belongs to user *, not to root; fix: look into it, then chown root:root " + state + "/marks/a"},
			"hostwarrant host repair --mark a --serial 7; rm " + state + "/marks/a",
		},
		"marks without a floor of time": {
			"mkdir -p -m 700 " + state + "/marks; echo serial 1 >" + state + "/marks/a; rm " + state + "/time-floor",
			[]string{state + "/time-floor: is missing although there are marks: every run is refused with 22; fix: hostwarrant host repair --time-floor"},
			"hostwarrant host repair --time-floor; rm " + state + "/marks/a",
		},
		"a clock behind the floor": {
			"echo 3000000000 >" + state + "/time-floor", []string{"clock: is * behind the time floor, what this host knows to have passed; fix: timedatectl set-ntp true"}, "hostwarrant host repair --time-floor",
		},
		"a floor of time that is none": {
			"echo yesterday >" + state + "/time-floor", []string{state + "/time-floor: is not a time; fix: hostwarrant host repair --time-floor"}, "hostwarrant host repair --yes",
		},
		"a torn run lock": {
			"echo 17 >" + state + "/running", []string{state + "/running: is no run lock; fix: hostwarrant host repair --lock"}, "hostwarrant host repair --lock",
		},
		"work files on a disk": {
			"rm -rf /run/kpssh; mkdir -m 700 /run/kpssh /opt/disk && mount --bind /opt/disk /run/kpssh",
			[]string{"/run/kpssh: is on *, not on a tmpfs: secrets of a run would stay on a disk; fix: umount /run/kpssh; mount -t tmpfs tmpfs /run, and again at each boot"},
			"umount /run/kpssh; rmdir /opt/disk",
		},
		"work files that others may read": {
			"mkdir -p /run/kpssh; chmod 755 /run/kpssh", []string{"/run/kpssh: has mode 0755, not 0700; fix: chmod 0700 /run/kpssh"}, "chmod 0700 /run/kpssh",
		},
		"a clock that is wrong": {
			"echo 1700000000 >" + state + "/time-floor; mv /usr/bin/date /usr/bin/date.real && printf '#!/bin/sh\\nexec /usr/bin/date.real -d \"1 hour ago\" \"$@\"\\n' >/usr/bin/date && chmod 755 /usr/bin/date",
			[]string{"clock: is * behind here: what has expired looks good down to the time floor; fix: timedatectl set-ntp true"},
			"mv /usr/bin/date.real /usr/bin/date",
		},
		"a name that nothing of ours makes": {
			"mkdir -p -m 700 " + state + "/marks; : >'" + state + "/marks/a b'", []string{state + "/marks: has names in it that nothing of ours makes; fix: ls -lab " + state + "/marks"}, "rm " + state + "/marks/a*",
		},
	}
}

// Each fault is named in full and alone, and what its line says mends it.
func TestCheckNamesFaultAndFixOnBrokenHosts(t *testing.T) {
	w := newWorld(t)
	h := w.setUp(t)
	h.Must(t, "echo 1700000000 >"+state+"/time-floor; "+nextTick) // of a host that ran something
	address := shared.Lab(t).Addr().String()
	count := 0
	for _, table := range []map[string]broken{brokenHosts(), brokenPrograms(), brokenStates()} {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			b := table[name]
			count++
			t.Run(name, func(t *testing.T) {
				h.Must(t, b.fault)
				r := w.check(t, h)
				if diff := cmp.Diff(b.want, matched(b.want, strings.ReplaceAll(r.out, address, "ADDR"))); diff != "" || r.code != 1 {
					t.Errorf("exit %d, stderr %q (-want +got):\n%s", r.code, r.err, diff)
				}
				undo := b.undo
				if undo == "" {
					undo = "/root/setup.sh"
				}
				h.Must(t, undo)
				wantGreen(t, w.check(t, h))
			})
		}
	}
	if count < 20 {
		t.Errorf("only %d broken hosts", count)
	}
}

// matched gives the lines of a text, those that a pattern matches as the pattern: a * in it is any text.
func matched(patterns []string, text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for _, pattern := range patterns {
			if matches(pattern, line) {
				line = pattern
				break
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func matches(pattern, line string) bool {
	before, after, wild := strings.Cut(pattern, " *")
	if !wild || pattern == line {
		return pattern == line
	}
	return strings.HasPrefix(line, before) && strings.HasSuffix(line, strings.TrimPrefix(after, "*"))
}
