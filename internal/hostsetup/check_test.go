package hostsetup

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// statementFiles are the facts of an accepted statement, and of the list of digests that goes with it.
func statementFiles(text, rendered string) []string {
	kind := strings.Fields(text)[2]
	return slices.Concat([]string{"entry 41c0 0 0 " + statementsDir}, stateFile("statements/"+kind, text+"-----BEGIN SSH SIGNATURE-----\n"), stateFile("statements/rendered", rendered))
}

// What a statement says stands in place of what the policy says.
func TestFilesOfAcceptedStatements(t *testing.T) {
	w := newWorld(t)
	s := w.setup(t)
	frame := func(kind, body string) string {
		return "hostwarrant-statement: v1 " + kind + "\nserial 2\nissued 1700000000\ncluster prod-1\n" + body + "end\n"
	}
	revoked := func(fingerprints ...string) string {
		b, err := krl.Render(fingerprints, 0, testkit.Now().Add(hours(1)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	signers := "expires 1900000000\nmax-validity 90d\nthreshold install 1\nthreshold join 1\nthreshold leave 1\nthreshold uninstall 1\n"
	line := "join@a namespaces=\"kpssh\" " + w.bob.Line
	for name, c := range map[string]struct {
		text, file, good, bad, difference string
	}{
		"floor":   {frame("floor", "floor a 9\n"), "floors", "a 9\n", "a 8\n", `has a line that is not of it: "a 8"`},
		"roots":   {frame("roots", "threshold 1\nkey "+w.alice.Line+"\n"), "root_signers", "root namespaces=\"hostwarrant-statement\" " + w.alice.Line + "\n", "", `lacks a line: "root namespaces`},
		"signers": {frame("signers", signers+"signer "+line+"\n"), "allowed_signers", line + "\n", line + "\n" + line + "\n", "has its lines twice"},
		"revoke":  {frame("revoke", "revoke "+w.bob.Fingerprint+"\n"), "revoked_keys", revoked(w.bob.Fingerprint), revoked(), "it does not revoke exactly those 1 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			listed := sumOf([]byte(c.text+"-----BEGIN SSH SIGNATURE-----\n")) + "  " + statementsDir + "/" + name + "\n"
			check := func(text, rendered, content string) ([]Finding, []Note) {
				content = "content " + TrustDir + "/" + c.file + " " + base64.StdEncoding.EncodeToString([]byte(content))
				return s.Check(facts(t, append(append(goodFacts(s), statementFiles(text, rendered)...), content)), testkit.Now())
			}
			for _, rendered := range []string{listed, "", strings.Repeat("0", 64) + "  " + statementsDir + "/" + name + "\n"} {
				if findings, notes := check(c.text, rendered, c.good); len(findings) != 0 || len(notes) != 1 {
					t.Errorf("as it says: %v, %v", findings, notes)
				}
			}
			for mode, want := range map[string]int{"8180": 0, "81b4": 1} { // the shim's own mode; one that a group may write
				content := "content " + TrustDir + "/" + c.file + " " + base64.StdEncoding.EncodeToString([]byte(c.good))
				lines := append(append(goodFacts(s), statementFiles(c.text, listed)...), content, "entry "+mode+" 0 0 "+TrustDir+"/"+c.file)
				if findings, _ := s.Check(facts(t, lines), testkit.Now()); len(findings) != want {
					t.Errorf("mode %s: %v", mode, findings)
				}
			}
			findings, _ := check(c.text, listed, c.bad)
			if len(findings) != 1 || !strings.HasPrefix(findings[0].Fault, "is not what the accepted "+name+" statement says: "+c.difference) {
				t.Errorf("otherwise: %v", findings)
			}
			for _, damaged := range []string{strings.Replace(c.text, "serial 2", "serial 3", 1), strings.Replace(c.text, "end\n", "", 1)} {
				findings, _ = check(damaged, listed, c.good)
				if len(findings) != 1 || findings[0].String() != statementsDir+"/"+name+": is not the statement that was accepted: every run is refused with 22; fix: hostwarrant host repair --statement "+name {
					t.Errorf("damaged: %v", findings)
				}
			}
			kind := Repair{Statement: name}
			broken := hostFacts(t, statementFiles(strings.Replace(c.text, "serial 2", "serial 3", 1), listed))
			if actions, _, err := kind.Plan(broken); err != nil || len(actions) != 1 || actions[0].Deed != SetAside || actions[0].Path != statementsDir+"/"+name {
				t.Errorf("repair by name: %v, %v", actions, err)
			}
			if actions, unmended, err := (Repair{}).Plan(broken); err != nil || actions != nil || len(unmended) != 1 {
				t.Errorf("repair of all: %v, %q, %v", actions, unmended, err)
			}
			_, _, err := kind.Plan(hostFacts(t, statementFiles(c.text, listed)))
			wantReason(t, err, decision.InUse)
		})
	}
	_, _, err := Repair{Statement: "floors"}.Plan(hostFacts(t))
	wantReason(t, err, decision.Malformed)
}

// A host of a later generation of roots counts from there, and keeps what it has.
func TestALinkOfTheRootsIsASeed(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.RootLink = []byte("hostwarrant-statement: v1 roots\nserial 2\nissued 1700000000\ncluster prod-1\nthreshold 1\nkey " + w.root.Line + "\nend\n")
	s, _, err := New(w.policy(t), testkit.Now(), shipped(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(s.Shell()), "\tstage "+statementsDir+"/roots 600 "+sumOf(o.RootLink)+" seed <<") || !strings.Contains(string(s.Shell()), "\tdirectory "+statementsDir+" 700\n") {
		t.Error("the script has no seed")
	}
	if findings, notes := s.Check(facts(t, goodFacts(s)), testkit.Now()); len(findings) != 0 || len(notes) != 1 {
		t.Errorf("findings %v, notes %v", findings, notes)
	}
	lines := slices.DeleteFunc(goodFacts(s), func(l string) bool { return strings.Contains(l, " "+statementsDir+"/roots") })
	if findings, _ := s.Check(facts(t, lines), testkit.Now()); len(findings) != 1 || findings[0].Where != statementsDir+"/roots" || findings[0].Fault != "is missing" {
		t.Errorf("without it: %v", findings)
	}
}

// goodFacts are what a host says that is as the setup says.
func goodFacts(s *Setup) []string {
	lines := []string{
		fmt.Sprintf("time %d", testkit.Now().Unix()), "boot 63b6dfb6-deb7-461a-8897-8f68ba802974", "openssh OpenSSH_9.2p1 Debian-2+deb12u10",
		"passwd kpssh:x:990:990:hostwarrant relay:/opt/kpssh:/bin/sh", "groups kpssh", "password impossible", "visudo /etc/sudoers: parsed OK",
		"sudo Matching Defaults entries for kpssh on host-a:", "sudo     env_reset, log_input", "sudo ", "sudo Runas and Command-specific defaults for kpssh:",
		"sudo     Defaults!/opt/kpssh/kpssh-shim !log_input, !log_output, !requiretty, env_reset, !setenv", "sudo ",
		"sudo User kpssh may run the following commands on host-a:", `sudo     (root) NOPASSWD: /opt/kpssh/kpssh-shim ""`, "sshd maxauthtries 6", "run tmpfs",
		"loaded 1700000000.000000005 /run/sshd.pid", "changed 1699999999.000000009 /etc/ssh/sshd_config",
	}
	lines = append(lines, stateFile("time-floor", "1700000000\n")...)
	for _, line := range s.pinned() {
		lines = append(lines, "sshd "+line)
	}
	for _, d := range s.Directories {
		lines = append(lines, fmt.Sprintf("entry %x 0 0 %s", typeDirectory|uint32(d.Mode), d.Path))
	}
	for _, f := range s.Files {
		lines = append(lines, fmt.Sprintf("entry %x 0 0 %s", typeFile|uint32(f.Mode), f.Path))
		if f.Path == ShimPath {
			lines = append(lines, "digest "+sumOf(f.Content)+"  -")
		} else {
			lines = append(lines, "content "+f.Path+" "+base64.StdEncoding.EncodeToString(f.Content))
		}
	}
	return lines
}

func facts(t *testing.T, lines []string) *Facts {
	t.Helper()
	f, err := ParseFacts([]byte(factsHead + "\n" + strings.Join(lines, "\n") + "\n" + factsEnd + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// stateFile are the facts of one file that the host remembers by.
func stateFile(name, text string) []string {
	path := StateDir + "/" + name
	return []string{"entry 8180 0 0 " + path, "content " + path + " " + base64.StdEncoding.EncodeToString([]byte(text))}
}

func TestAGoodHostHasNoFindings(t *testing.T) {
	s := newWorld(t).setup(t)
	lines := goodFacts(s)
	for _, more := range [][]string{
		{"entry 41c0 0 0 " + StateDir + "/marks", "entry 41c0 0 0 " + RunDir},
		stateFile("marks/tls-bootstrap", "serial 42\ninstall "+caDigest+"\nuninstall "+caDigest+"\n"),
		stateFile("marks/web", "serial 0\n"),
		stateFile("running", ""),
	} {
		lines = append(lines, more...)
	}
	findings, notes := s.Check(facts(t, lines), testkit.Now().Add(maxSkew))
	if len(findings)+len(notes) > 0 {
		t.Errorf("findings %v, notes %v", findings, notes)
	}
}

// Here is what no real host of the tests can be, or what a real one shows less exactly.
func TestFindingsOfOneFact(t *testing.T) {
	s := newWorld(t).setup(t)
	for name, c := range map[string]struct {
		drop string   // facts that begin so are not there
		add  []string // further facts
		want []string // beginnings of the lines
	}{
		"no OpenSSH":                  {"openssh", []string{"openssh sh: ssh: not found"}, []string{`openssh: "sh: ssh: not found" is no version`}},
		"an OpenSSH of tomorrow":      {"openssh", []string{"openssh OpenSSH_11.0p1"}, nil},
		"OpenSSH 8.2":                 {"openssh", []string{"openssh OpenSSH_8.2p1 Ubuntu-4"}, nil},
		"OpenSSH 8.1":                 {"openssh", []string{"openssh OpenSSH_8.1p1"}, []string{"openssh: OpenSSH_8.1 is older than 8.2"}},
		"a clock too far ahead":       {"time", []string{fmt.Sprintf("time %d", testkit.Now().Add(hours(1)).Unix())}, []string{"clock: is 1h0m0s ahead of here"}},
		"no account":                  {"passwd", nil, []string{"account kpssh: is missing"}},
		"an account that is root":     {"passwd", []string{"passwd kpssh:x:0:0::/opt/kpssh:/bin/sh"}, []string{"account kpssh: is root under another name"}},
		"an account without password": {"password", []string{"password none"}, []string{"account kpssh: has no password at all"}},
		"a locked account":            {"password", []string{"password locked"}, []string{"account kpssh: is locked (!)"}},
		"a home of its own":           {"passwd", []string{"passwd kpssh:x:990:990::/home/kpssh:/bin/sh"}, []string{`account kpssh: has the home "/home/kpssh"`}},
		"sudo says nothing":           {"sudo", nil, slices.Concat([]string{"sudo: does not let kpssh start the shim"}, slices.Repeat([]string{"sudo: lacks the default "}, 5))},
		"a setting twice":             {"", []string{"sshd permittty yes"}, []string{`sshd: says "permittty yes" for kpssh`}},
		"a setting that is missing":   {"sshd permittty", nil, []string{`sshd: says "permittty nothing" for kpssh`}},
		"a configuration that was read as it was written": {"", []string{"changed 1700000000.000000005 " + sshdPath}, nil},
		"a configuration that changed after it was read": {
			"",
			[]string{"changed 1700000000.000000004 /etc/ssh/sshd_config", "changed 1700000000.000000006 " + sshdPath, "changed 1700000000.000000006 /etc/ssh/sshd_config.d"},
			[]string{"sshd: has not read " + sshdPath + " since that changed, and goes by what was there before; fix: systemctl reload ssh || kill -HUP $(cat /run/sshd.pid)"},
		},
		"a file that is missing": {"entry 81a4 0 0 " + clusterPath, nil, []string{clusterPath + ": is missing"}},
		"a file too large":       {"content " + clusterPath, nil, []string{clusterPath + ": is too large to be read"}},
		"a mark with another order": {
			"", append(stateFile("marks/a", "serial 1\njoin "+caDigest+"\ninstall "+caDigest+"\n"), "entry 41c0 0 0 "+StateDir+"/marks"),
			[]string{StateDir + "/marks/a: is no mark"},
		},
		"a mark without its end":      {"", append(stateFile("marks/a", "serial 1"), "entry 41c0 0 0 "+StateDir+"/marks"), []string{StateDir + "/marks/a: is no mark"}},
		"an empty mark":               {"", append(stateFile("marks/a", ""), "entry 41c0 0 0 "+StateDir+"/marks"), []string{StateDir + "/marks/a: is no mark"}},
		"a mark of no profile":        {"", append(stateFile("marks/A", "serial 1\n"), "entry 41c0 0 0 "+StateDir+"/marks"), []string{StateDir + "/marks/A: is not the mark of any profile"}},
		"marks that others may write": {"", []string{"entry 41ff 0 0 " + StateDir + "/marks"}, []string{StateDir + "/marks: has mode 0777: others than root may write it"}},
		"marks that are a file":       {"", []string{"entry 81a4 0 0 " + StateDir + "/marks"}, []string{StateDir + "/marks: is no directory"}},
		"marks without a time floor": {
			"entry 8180 0 0 " + StateDir + "/time-floor", append(stateFile("marks/a", "serial 1\n"), "entry 41c0 0 0 "+StateDir+"/marks"),
			[]string{StateDir + "/time-floor: is missing although there are marks"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines := slices.DeleteFunc(goodFacts(s), func(l string) bool { return c.drop != "" && strings.HasPrefix(l, c.drop) })
			findings, _ := s.Check(facts(t, append(lines, c.add...)), testkit.Now())
			if len(findings) != len(c.want) {
				t.Fatalf("findings %v, want %q", findings, c.want)
			}
			for i, f := range findings {
				if !strings.HasPrefix(f.String(), c.want[i]) || f.Fix == "" {
					t.Errorf("got %q, want %q", f, c.want[i])
				}
			}
		})
	}
}

// An sshd that no pid file names may start for each session and read its configuration then: that is no fault.
func TestAnSSHDWithoutAPIDFileIsNoted(t *testing.T) {
	s := newWorld(t).setup(t)
	lines := slices.DeleteFunc(goodFacts(s), func(l string) bool { return strings.HasPrefix(l, "loaded ") })
	findings, notes := s.Check(facts(t, append(lines, "changed 1800000000.000000000 /etc/ssh/sshd_config")), testkit.Now())
	if len(findings) != 0 || len(notes) != 1 || !strings.HasPrefix(notes[0].Text, "no pid file names a running sshd: ") {
		t.Errorf("findings %v, notes %v", findings, notes)
	}
}

func TestAFileThatTheSetupDoesNotHaveIsNamed(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.Cluster, o.WarrantRequired = "bare-1", false
	s, _, err := New(w.policy(t), testkit.Now(), shipped(t), o)
	if err != nil {
		t.Fatal(err)
	}
	findings, _ := s.Check(facts(t, append(goodFacts(s), "entry 81a4 0 0 "+clusterPath)), testkit.Now())
	if len(findings) != 1 || findings[0].String() != clusterPath+": is there, and the policy says nothing for it; fix: rm "+clusterPath {
		t.Errorf("findings %v", findings)
	}
}

func TestDifferencesOfTexts(t *testing.T) {
	for _, c := range []struct{ want, got, says string }{
		{"a\n", "a\n", ""},
		{"a\n", "a\nb\n", `has a line that is not of the policy: "b"`},
		{"a\nb\n", "b\n", `lacks a line: "a"`},
		{"a\nb\n", "b\na\n", "has its lines twice, or in another order"},
		{"a\n", "a\na\n", "has its lines twice, or in another order"},
		{"\x00", "a\n", "holds other bytes than the policy gives (2, not 1)"},
	} {
		if got := compare([]byte(c.want), []byte(c.got)); got != c.says {
			t.Errorf("%q and %q: %q, want %q", c.want, c.got, got, c.says)
		}
	}
}

func TestFactsAreReadWholeOrNotAtAll(t *testing.T) {
	good := factsHead + "\ntime 1\nentry 81a4 0 0 /a\ncontent /a b\nend\n"
	for name, text := range map[string]string{
		"empty": "", "without a head": "time 1\nend\n", "cut short": factsHead + "\ntime 1\n", "without the last LF": strings.TrimSuffix(good, "\n"),
		"with more behind": good + "x\n", "with something before": "Welcome!\n" + good, "an unknown word": factsHead + "\nx y\nend\n",
		"a time that is none": factsHead + "\ntime x\nend\n", "an entry without a path": factsHead + "\nentry 81a4 0 0\nend\n",
		"a path that is a command": factsHead + "\nentry 81a4 990 0 /a;reboot\nend\n", "a content of such a path": factsHead + "\ncontent /a$(reboot) \nend\n",
		"a program that is a command": factsHead + "\nmissing a;reboot\nend\n", "a directory that is a command": factsHead + "\nodd /a;reboot\nend\n",
		"a pid file that is a command": factsHead + "\nloaded 1.000000000 /a$(reboot)\nend\n", "a part that is a command": factsHead + "\nchanged 1.000000000 /a;reboot\nend\n",
		"a time of a file that is none": factsHead + "\nloaded 1.0 /a\nend\n", "one without a fraction": factsHead + "\nchanged 1 /a\nend\n", "one without a path": factsHead + "\nloaded 1.000000000\nend\n",
		"an entry without a mode": factsHead + "\nentry x 0 0 /a\nend\n", "an entry without an owner": factsHead + "\nentry 81a4 x 0 /a\nend\n",
		"a content that is no base64": factsHead + "\ncontent /a !\nend\n", "too much": factsHead + "\n" + strings.Repeat("sshd x\n", MaxFacts/7) + "end\n",
	} {
		f, err := ParseFacts([]byte(text))
		if f != nil {
			t.Errorf("%s: it is read", name)
		}
		wantReason(t, err, decision.Malformed)
	}
	f, err := ParseFacts([]byte(factsHead + "\nentry 81a4 7 0 /a-b\nend\n"))
	if err != nil || f.Entries["/a-b"].owner != 7 || !f.Entries["/a-b"].isFile() || f.Entries["/a-b"].permission() != 0o644 {
		t.Errorf("%+v, %v", f, err)
	}
}

// Each path that the setup has is one that the facts tell of.
func TestTheFactsTellOfAllThatTheSetupHas(t *testing.T) {
	s := newWorld(t).setup(t)
	script := strings.NewReplacer("$trust", TrustDir, `"$state"`, StateDir, "$state", StateDir).Replace(string(s.FactsScript()))
	for _, f := range s.Files {
		if !strings.Contains(script, f.Path) {
			t.Errorf("nothing of %s", f.Path)
		}
	}
	for _, d := range s.Directories {
		if !strings.Contains(script, d.Path) {
			t.Errorf("nothing of %s", d.Path)
		}
	}
	if diff := cmp.Diff(len(s.Files), len(removed())); diff != "" {
		t.Errorf("what a removal takes away: %s", diff)
	}
}
