//go:build linux

package hosts

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
)

// TestTheAccountCanPlantNothing: what somebody with the account's rights tries to leave for the next run. Each try
// fails, or changes nothing.
func TestTheAccountCanPlantNothing(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "echo \"$KPSSH_BOOTSTRAP_TOKEN\"\n")
	o.params = "KPSSH_BOOTSTRAP_TOKEN=" + token + "\n"
	for name, command := range map[string]string{
		"the work directory":           "mkdir /run/kpssh",
		"a link for the work dir":      "ln -s /tmp /run/kpssh",
		"a file in the work directory": "touch /run/kpssh/1.script",
		"a mark":                       "touch /var/lib/hostwarrant/marks",
		"the lock":                     "echo 1 1 1 >/var/lib/hostwarrant/running",
		"a record":                     "ls /var/lib/hostwarrant",
		"a signer":                     "echo x >>/etc/kpssh/allowed_signers",
		"another signer list":          "mv /etc/kpssh/allowed_signers /etc/kpssh/old",
		"a login key":                  "mkdir -p ~/.ssh",
		"the shim":                     "echo x >>/opt/kpssh/kpssh-shim",
		"another shim":                 "rm -f /opt/kpssh/kpssh-shim",
		"a signal to what root runs":   "kill -TERM 1",
	} {
		t.Run(name, func(t *testing.T) {
			w.runs(t, o) // so that there is a work directory
			before := w.image(t)
			if got := w.user(t, "", command); got.code == 0 {
				t.Errorf("the account may: %s", command)
			}
			w.unchanged(t, before)
		})
	}
	t.Run("links in /tmp", func(t *testing.T) {
		planted := w.user(t, "", `cd /tmp && for n in kpssh kpssh-shim script sig params $(seq 1 500); do ln -s /etc/kpssh/allowed_signers $n; ln -s /etc/shadow $n.script; done; mkdir -p sh-thd && ls | wc -l`)
		if planted.code != 0 {
			t.Fatalf("planting: %+v", planted)
		}
		signers := w.read(t, etcDir+"/allowed_signers")
		if got := w.runs(t, o); got.stdout != token+"\n" || w.read(t, etcDir+"/allowed_signers") != signers {
			t.Errorf("answered %+v", got)
		}
		if after := w.root(t, "ls /tmp | wc -l"); after != planted.stdout {
			t.Errorf("/tmp held %s names and holds %s", planted.stdout, after)
		}
	})
}

// planting is what somebody left on the host, as root's command, and what the shim says to it.
type planting struct {
	plant string
	code  envelope.ExitCode
	says  string
}

// plantings runs a table: the host refuses, and without the planting it runs.
func (w *world) plantings(t *testing.T, o order, cases map[string]planting) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			w.root(t, c.plant)
			w.refuses(t, o.text(), c.code, c.says)
			w.reset(t, nil)
			w.runs(t, o)
		})
	}
}

// TestAWorkDirectoryThatAnotherMadeIsRefused, as after a mistake of some other program that runs as root.
func TestAWorkDirectoryThatAnotherMadeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.plantings(t, w.join(t, ""), map[string]planting{
		"the account's":           {"install -d -m 700 -o kpssh /run/kpssh", 23, workDir},
		"open to all":             {"install -d -m 777 /run/kpssh", 23, workDir},
		"open to read":            {"install -d -m 755 /run/kpssh", 23, workDir},
		"a link to the account's": {"install -d -m 700 -o kpssh /tmp/w; ln -s /tmp/w /run/kpssh", 23, workDir},
		"a link to root's":        {"install -d -m 700 /run/w; ln -s /run/w /run/kpssh", 23, workDir},
		"a link to nowhere":       {"ln -s /tmp/nowhere /run/kpssh", 23, workDir},
		"a file":                  {"touch /run/kpssh", 23, workDir},
		"a disk":                  {"mkdir /var/tmp/w; chmod 700 /var/tmp/w; mkdir /run/kpssh; mount --bind /var/tmp/w /run/kpssh", 23, "tmpfs"},
	})
}

// TestAStateDirectoryOfAnotherIsRefused.
func TestAStateDirectoryOfAnotherIsRefused(t *testing.T) {
	w := newWorld(t)
	w.plantings(t, w.join(t, ""), map[string]planting{
		"the account's":     {"chown kpssh " + stateDir, 22, stateDir},
		"open to read":      {"chmod 755 " + stateDir, 22, stateDir},
		"open to the group": {"chmod 770 " + stateDir, 22, stateDir},
	})
	for name, c := range map[string]struct{ plant, undo string }{
		"missing":             {"mv " + stateDir + " /root/state", "mv /root/state " + stateDir},
		"a link to root's":    {"mv " + stateDir + " /root/state; ln -s /root/state " + stateDir, "rm " + stateDir + "; mv /root/state " + stateDir},
		"a link to another's": {"mv " + stateDir + " /root/state; install -d -m 700 -o kpssh /tmp/state; ln -s /tmp/state " + stateDir, "rm " + stateDir + "; mv /root/state " + stateDir},
		"a file":              {"mv " + stateDir + " /root/state; touch " + stateDir, "rm " + stateDir + "; mv /root/state " + stateDir},
	} {
		t.Run(name, func(t *testing.T) {
			w.root(t, c.plant)
			w.refuses(t, w.join(t, "").text(), 22, stateDir)
			w.root(t, c.undo)
			w.runs(t, w.join(t, ""))
		})
	}
}

// TestRevocationsThatCannotBeReadRefuseEverybody.
func TestRevocationsThatCannotBeReadRefuseEverybody(t *testing.T) {
	w := newWorld(t)
	w.root(t, "cd /root && echo '"+w.rita.Line+"' >rita.pub && ssh-keygen -q -k -f krl rita.pub")
	o := w.join(t, "")
	const file = etcDir + "/revoked_keys"
	w.plantings(t, o, map[string]planting{
		"missing":               {"rm " + file, 23, "revoked_keys is missing"},
		"a directory":           {"rm " + file + "; mkdir " + file, 23, "revoked_keys"},
		"a link":                {"mv " + file + " /root/r; ln -s /root/r " + file, 23, "revoked_keys"},
		"a link to nowhere":     {"rm " + file + "; ln -s /nowhere " + file, 23, "revoked_keys"},
		"a device":              {"rm " + file + "; ln -s /dev/null " + file, 23, "revoked_keys"},
		"a truncated KRL":       {"head -c 40 /root/krl >" + file, 23, "revoked_keys"},
		"a KRL without its end": {"head -c -1 /root/krl >" + file, 23, "revoked_keys"},
		"a KRL with more":       {"{ cat /root/krl; echo x; } >" + file, 23, "revoked_keys"},
		"garbage":               {"echo garbage >" + file, 23, "revoked_keys"},
		"a fingerprint":         {"echo 'SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0' >" + file, 23, "revoked_keys"},
		"a byte order mark":     {"printf '\\357\\273\\277%s\\n' '" + w.rita.Line + "' >" + file, 23, "revoked_keys"},
		"others may write it":   {"chmod 666 " + file, 23, "revoked_keys"},
		"of another user":       {"chown kpssh " + file, 23, "revoked_keys"},
	})
	rita := w.join(t, "", w.rita)
	for name, plant := range map[string]string{"a list": "true", "a KRL": "cat /root/krl >" + file} {
		t.Run("rita in "+name, func(t *testing.T) {
			w.reset(t, nil)
			w.root(t, plant)
			w.refuses(t, rita.text(), 13, "revoked")
			w.runs(t, o)
		})
	}
	w.reset(t, map[string]string{"revoked_keys": "# none\n"})
	w.runs(t, rita)
}

// TestASignerListThatIsDamagedAddsNobody: lines that no reader should take, with an honest one beside them or alone.
func TestASignerListThatIsDamagedAddsNobody(t *testing.T) {
	w := newWorld(t)
	honest, mallory := w.join(t, ""), w.join(t, "", w.mallory)
	alice := "join@*,leave@* namespaces=\"kpssh\" " + w.alice.Line
	for name, c := range map[string]struct {
		list string
		code envelope.ExitCode
	}{
		"missing":                   {"", 2},
		"empty":                     {"\n", 2},
		"garbage alone":             {"\x01\x02 garbage\n", 2},
		"garbage beside the honest": {"!!! ??? garbage\n" + alice + "\n", 0},
		"a byte order mark":         {"\xef\xbb\xbf" + alice + "\n", 2},
		"a NUL before the key":      {strings.Replace(alice, " ", "\x00 ", 1) + "\n", 2},
		"a NUL line beside":         {"\x00\n" + alice + "\n", 0},
		"CR LF":                     {alice + "\r\n", 0},
		"no line feed at the end":   {alice, 0},
		"another namespace":         {strings.Replace(alice, "\"kpssh\"", "\"git\"", 1) + "\n", 2},
		"a negated principal":       {"!join@*," + alice + "\n", 2},
		"a key cut short":           {alice[:len(alice)-8] + "\n", 2},
		"an option unknown":         {strings.Replace(alice, "namespaces", "everything,namespaces", 1) + "\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, map[string]string{"allowed_signers": c.list})
			says := "signers of this host"
			if name == "missing" {
				says = "allowed_signers is missing"
			}
			w.refuses(t, mallory.text(), 2, says)
			if c.code == 0 {
				w.runs(t, honest)
				return
			}
			w.refuses(t, honest.text(), c.code, says)
		})
	}
	const file = etcDir + "/allowed_signers"
	w.plantings(t, honest, map[string]planting{
		"a directory":              {"rm " + file + "; mkdir " + file, 23, "allowed_signers"},
		"a link":                   {"mv " + file + " /root/a; ln -s /root/a " + file, 23, "allowed_signers"},
		"others may write it":      {"chmod 666 " + file, 23, "allowed_signers"},
		"of another user":          {"chown kpssh " + file, 23, "allowed_signers"},
		"its directory open":       {"chmod 777 " + etcDir, 23, etcDir},
		"its directory of another": {"chown kpssh " + etcDir, 23, etcDir},
	})
}

// TestAMarkThatIsDamagedRefuses: whatever stands in its place, no script of the profile runs.
func TestAMarkThatIsDamagedRefuses(t *testing.T) {
	w := newWorld(t)
	digest := strings.Repeat("0a", 32)
	for name, plant := range map[string]string{
		"empty":                           ": >MARK",
		"an empty line":                   "echo >MARK",
		"a word":                          "echo serial >MARK",
		"a number":                        "echo 42 >MARK",
		"negative":                        "echo serial -1 >MARK",
		"a leading zero":                  "echo serial 042 >MARK",
		"too long":                        "echo serial 1000000000000000 >MARK",
		"two words":                       "echo serial 42 43 >MARK",
		"serial twice":                    "printf 'serial 1\\nserial 42\\n' >MARK",
		"a digest without a serial":       "echo join " + digest + " >MARK",
		"a digest cut short":              "printf 'serial 42\\njoin 0a0a\\n' >MARK",
		"a digest in capitals":            "printf 'serial 42\\njoin " + strings.ToUpper(digest) + "\\n' >MARK",
		"a phase twice":                   "printf 'serial 42\\njoin " + digest + "\\njoin " + digest + "\\n' >MARK",
		"an unknown phase":                "printf 'serial 42\\nprobe " + digest + "\\n' >MARK",
		"torn in its serial":              "printf 'serial 4' >MARK",
		"torn in a digest":                "head -c 60 MARK >/root/m; cat /root/m >MARK",
		"torn before its line feed":       "head -c -1 MARK >/root/m; cat /root/m >MARK",
		"an empty line at its end":        "echo >>MARK",
		"CR LF":                           "sed -i 's/$/\\r/' MARK",
		"a NUL":                           "printf 'serial 4\\0002\\n' >MARK",
		"garbage":                         "head -c 100 /dev/urandom >MARK",
		"of another user":                 "chown kpssh MARK",
		"of another group, who may write": "chgrp kpssh MARK; chmod 660 MARK",
		"others may write it":             "chmod 666 MARK",
		"a link":                          "mv MARK /root/m; ln -s /root/m MARK",
		"a link to nowhere":               "rm MARK; ln -s /root/nowhere MARK",
		"a directory":                     "rm MARK; mkdir MARK",
		"a device":                        "rm MARK; mknod MARK c 1 3",
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			profile := w.profile()
			w.judge(t, w.version(t, profile, serial, neverLeaves).join, verdict{})
			w.root(t, "umask 077; "+strings.ReplaceAll(plant, "MARK", stateDir+"/marks/"+profile))
			w.judge(t, w.version(t, profile, serial+1, neverLeaves).join, verdict{22, profile})
		})
	}
	w.judge(t, w.join(t, ""), verdict{}) // other profiles are as they were
	for name, c := range map[string]struct {
		floors string
		want   verdict
	}{
		"missing, and no floor":             {"", verdict{22, "no mark and no floor"}},
		"missing, and a floor of another":   {"web-* 1\n", verdict{22, "no mark and no floor"}},
		"missing, and a floor that matches": {"tls-* 1\n", verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, map[string]string{"floors": c.floors})
			w.judge(t, w.join(t, ""), c.want)
		})
	}
}

// TestFloorsThatCannotBeReadRefuse.
func TestFloorsThatCannotBeReadRefuse(t *testing.T) {
	w := newWorld(t)
	const file = etcDir + "/floors"
	w.plantings(t, w.join(t, ""), map[string]planting{
		"a word":              {"echo tls-1 >" + file, 23, file},
		"no number":           {"echo tls-1 x >" + file, 23, file},
		"two numbers":         {"echo tls-1 1 2 >" + file, 23, file},
		"a leading zero":      {"echo 'tls-* 01' >" + file, 23, file},
		"a * inside":          {"echo 't*s-1 1' >" + file, 23, file},
		"capitals":            {"echo 'TLS-* 1' >" + file, 23, file},
		"a bad one below":     {"printf 'tls-* 1\nweb-* x\n' >" + file, 23, file},
		"CR LF":               {"printf 'tls-* 1\r\n' >" + file, 23, file},
		"others may write it": {"chmod 666 " + file, 23, file},
		"of another user":     {"chown kpssh " + file, 23, file},
		"a directory":         {"rm " + file + "; mkdir " + file, 23, file},
		"a link":              {"mv " + file + " /root/f; ln -s /root/f " + file, 23, file},
	})
}
