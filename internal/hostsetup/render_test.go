package hostsetup

import (
	"bytes"
	gocmp "cmp"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func sumOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

func parsedKeys(t *testing.T, text string) *allowedsigners.List {
	t.Helper()
	keys, err := allowedsigners.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// scripts are all that is rendered for a shell.
func scripts(t *testing.T) map[string][]byte {
	t.Helper()
	s := newWorld(t).setup(t)
	return map[string][]byte{
		"setup": s.Shell(), "removal": RemovalShell(false), "removal that forgets": RemovalShell(true), "facts": s.FactsScript(), "reload": reloadScript(), "unread": unreadScript(),
	}
}

func TestShellcheckFindsNothingInWhatIsRendered(t *testing.T) {
	shellcheck := testkit.Tool(t, "shellcheck")
	for name, script := range scripts(t) {
		for _, shell := range []string{"sh", "dash"} {
			cmd := exec.CommandContext(t.Context(), shellcheck, "-s", shell, "-")
			cmd.Stdin = bytes.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
}

func TestEveryShellReadsWhatIsRendered(t *testing.T) {
	for name, script := range scripts(t) {
		for _, shell := range [][]string{{"dash", "-n"}, {"bash", "--posix", "-n"}, {"busybox", "sh", "-n"}} {
			cmd := exec.CommandContext(t.Context(), testkit.Tool(t, shell[0]), shell[1:]...)
			cmd.Stdin = bytes.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s under %s: %v\n%s", name, shell[0], err, out)
			}
		}
	}
}

// A script that was cut short calls nothing: its last line is the one that does.
func TestTheLastLineIsTheFirstThatDoesSomething(t *testing.T) {
	for _, script := range [][]byte{scripts(t)["setup"], RemovalShell(false)} {
		lines := strings.Split(strings.TrimSuffix(string(script), "\n"), "\n")
		if lines[len(lines)-1] != `main "$@"` {
			t.Errorf("it ends with %q", lines[len(lines)-1])
		}
	}
}

// What the script stages is, file by file, what the setup says.
func TestTheThreeFormsHoldTheSameFiles(t *testing.T) {
	s := newWorld(t).setup(t)
	script := string(s.Shell())
	role := map[string]string{}
	for _, f := range s.Ansible() {
		role[f.Path] = string(f.Content)
	}
	var vars struct {
		Files       []roleEntry `yaml:"hostwarrant_files"`
		SSHD        roleEntry   `yaml:"hostwarrant_sshd"`
		Keys        roleEntry   `yaml:"hostwarrant_keys"`
		Directories []roleEntry `yaml:"hostwarrant_directories"`
		Absent      []string    `yaml:"hostwarrant_absent"`
		Address     string      `yaml:"hostwarrant_login_address"`
		Pinned      []string    `yaml:"hostwarrant_pinned"`
	}
	d := yaml.NewDecoder(strings.NewReader(role["vars/main.yml"]))
	d.KnownFields(true)
	if err := d.Decode(&vars); err != nil {
		t.Fatal(err)
	}
	entries := append(append([]roleEntry{}, vars.Files...), vars.SSHD, vars.Keys)
	if len(entries) != len(s.Files) {
		t.Errorf("the role has %d files, the setup %d", len(entries), len(s.Files))
	}
	for i, f := range s.Files {
		if entries[i].Path != f.Path || entries[i].Mode != fmt.Sprintf("0%o", f.Mode) || role["files/"+entries[i].Src] != string(f.Content) || entries[i].Statement != string(f.Statement) || entries[i].Seed != f.Seed {
			t.Errorf("the role has %+v for %s", entries[i], f.Path)
		}
		line := fmt.Sprintf(" %s %o %s %s <<'END_OF_FILE'\n", f.Path, f.Mode, sumOf(f.Content), gocmp.Or(string(f.Statement), "-"))
		if strings.Count(script, line) != 1 {
			t.Errorf("the script lacks %q", line)
		}
		if plain(f.Content) && !strings.Contains(script, "\n"+string(f.Content)+"END_OF_FILE\n") {
			t.Errorf("the script does not hold %s as it is", f.Path)
		}
	}
	if diff := cmp.Diff(s.pinned(), vars.Pinned); diff != "" || vars.Address != s.LoginAddress || len(vars.Directories) != len(s.Directories) {
		t.Errorf("the role's other variables: %s", diff)
	}
	cloud, err := s.CloudInit()
	if err != nil || !strings.HasPrefix(string(cloud), "#cloud-config\n") {
		t.Errorf("user data: %v", err)
	}
}

type roleEntry struct {
	Path, Src, Mode, Statement, Validate string
	Seed                                 bool
}

func TestTextThatCouldEndItselfIsEncoded(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "a\n": true, "ä\n": true, "a": false, "a\r\n": false, "a\x00\n": false, "\xff\n": false, "a\nEND_OF_FILE\nreboot\n": false,
	} {
		if plain([]byte(text)) != want {
			t.Errorf("%q: want %v", text, want)
		}
		f := File{Path: "/x", Mode: 0o644, Content: []byte(text)}
		var b bytes.Buffer
		f.stage(&b)
		cmd := exec.CommandContext(t.Context(), testkit.Tool(t, "dash"), "-c", "reboot() { echo rebooted; }; stage() { cat; }; stage_base64() { base64 -d; }; "+b.String())
		if out, err := cmd.Output(); err != nil || string(out) != text {
			t.Errorf("%q arrives as %q, %v", text, out, err)
		}
	}
}
