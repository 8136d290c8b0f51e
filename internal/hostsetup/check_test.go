package hostsetup

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// goodFacts are what a host says that is as the setup says.
func goodFacts(s *Setup) []string {
	lines := []string{
		fmt.Sprintf("time %d", testkit.Now().Unix()), "boot 63b6dfb6-deb7-461a-8897-8f68ba802974", "openssh OpenSSH_9.2p1 Debian-2+deb12u10",
		"passwd kpssh:x:990:990:hostwarrant relay:/opt/kpssh:/bin/sh", "groups kpssh", "password impossible", "visudo /etc/sudoers: parsed OK",
		"sudo Matching Defaults entries for kpssh on host-a:", "sudo     env_reset, log_input", "sudo ", "sudo Runas and Command-specific defaults for kpssh:",
		"sudo     Defaults!/opt/kpssh/kpssh-shim !log_input, !log_output, !requiretty, env_reset, !setenv", "sudo ",
		"sudo User kpssh may run the following commands on host-a:", `sudo     (root) NOPASSWD: /opt/kpssh/kpssh-shim ""`, "sshd maxauthtries 6", "run tmpfs",
	}
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
		stateFile("time-floor", "1700000000\n"),
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
		"a file that is missing":      {"entry 81a4 0 0 " + clusterPath, nil, []string{clusterPath + ": is missing"}},
		"a file too large":            {"content " + clusterPath, nil, []string{clusterPath + ": is too large to be read"}},
		"a mark with another order": {"", append(stateFile("marks/a", "serial 1\njoin "+caDigest+"\ninstall "+caDigest+"\n"), "entry 41c0 0 0 "+StateDir+"/marks"),
			[]string{StateDir + "/marks/a: is no mark"}},
		"a mark without its end":      {"", append(stateFile("marks/a", "serial 1"), "entry 41c0 0 0 "+StateDir+"/marks"), []string{StateDir + "/marks/a: is no mark"}},
		"an empty mark":               {"", append(stateFile("marks/a", ""), "entry 41c0 0 0 "+StateDir+"/marks"), []string{StateDir + "/marks/a: is no mark"}},
		"a mark of no profile":        {"", append(stateFile("marks/A", "serial 1\n"), "entry 41c0 0 0 "+StateDir+"/marks"), []string{StateDir + "/marks/A: is not the mark of any profile"}},
		"marks that others may write": {"", []string{"entry 41ff 0 0 " + StateDir + "/marks"}, []string{StateDir + "/marks: has mode 0777: others than root may write it"}},
		"marks that are a file":       {"", []string{"entry 81a4 0 0 " + StateDir + "/marks"}, []string{StateDir + "/marks: is no directory"}},
		"a statement that is not kept to": {"", append(stateFile("statements/revoke", "x"), "entry 41c0 0 0 "+StateDir+"/statements"),
			[]string{TrustDir + "/revoked_keys: is not what the accepted revoke statement says"}},
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
	good := factsHead + "\ntime 1\nentry 81a4 0 0 /a b\ncontent /a b\nend\n"
	for name, text := range map[string]string{
		"empty": "", "without a head": "time 1\nend\n", "cut short": factsHead + "\ntime 1\n", "without the last LF": strings.TrimSuffix(good, "\n"),
		"with more behind": good + "x\n", "with something before": "Welcome!\n" + good, "an unknown word": factsHead + "\nx y\nend\n",
		"a time that is none": factsHead + "\ntime x\nend\n", "an entry without a path": factsHead + "\nentry 81a4 0 0\nend\n",
		"an entry without a mode": factsHead + "\nentry x 0 0 /a\nend\n", "an entry without an owner": factsHead + "\nentry 81a4 x 0 /a\nend\n",
		"a content that is no base64": factsHead + "\ncontent /a !\nend\n", "too much": factsHead + "\n" + strings.Repeat("sshd x\n", MaxFacts/7) + "end\n",
	} {
		f, err := ParseFacts([]byte(text))
		if f != nil {
			t.Errorf("%s: it is read", name)
		}
		wantReason(t, err, decision.Malformed)
	}
	f, err := ParseFacts([]byte(factsHead + "\nentry 81a4 7 0 /a b\nend\n"))
	if err != nil || f.Entries["/a b"].owner != 7 || !f.Entries["/a b"].isFile() || f.Entries["/a b"].permission() != 0o644 {
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
