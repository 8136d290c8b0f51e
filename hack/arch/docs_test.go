package arch

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// deadLinks lists the relative links in the Markdown files of a tree that lead nowhere.
func deadLinks(tree fs.FS) ([]string, error) {
	var dead []string
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && strings.HasPrefix(path.Base(file), ".") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(file) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if fault := follow(tree, file, match[1]); fault != "" {
				dead = append(dead, fmt.Sprintf("%s: %s: %s", file, match[1], fault))
			}
		}
		return nil
	})
	return dead, err
}

func follow(tree fs.FS, from, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	name, anchor, _ := strings.Cut(target, "#")
	file := from
	if name != "" {
		file = path.Join(path.Dir(from), name)
	}
	if _, err := fs.Stat(tree, file); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	text, err := fs.ReadFile(tree, file)
	if err != nil {
		return err.Error()
	}
	if !strings.Contains(anchors(string(text)), "\n"+anchor+"\n") {
		return "there is no such heading"
	}
	return ""
}

// anchors gives the headings of a page as links name them, one a line.
func anchors(text string) string {
	list := "\n"
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for line := range strings.SplitSeq(text, "\n") {
		level := strings.TrimLeft(line, "#")
		if level == line || !strings.HasPrefix(level, " ") {
			continue
		}
		heading := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(level)), "")
		list += strings.ReplaceAll(heading, " ", "-") + "\n"
	}
	return list
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	dead, err := deadLinks(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range dead {
		t.Error(link)
	}
}

func TestDeadLinksAreSeen(t *testing.T) {
	dead, err := deadLinks(fstest.MapFS{
		"README.md":     {Data: []byte("[a](docs/a.md) [b](docs/a.md#one-thing) [web](https://example.com/x) `[no](link.md)`\n")},
		"docs/a.md":     {Data: []byte("# One thing\n[up](../README.md) [gone](b.md) [head](#two) [self](#one-thing)\n")},
		".git/index.md": {Data: []byte("[x](y)")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"docs/a.md: b.md: there is no such file", "docs/a.md: #two: there is no such heading"}
	if diff := cmp.Diff(want, dead); diff != "" {
		t.Error(diff)
	}
}

// goMod is what this package asks of a go.mod.
type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Tool    []struct{ Path string }
	Replace []struct{ Old struct{ Path string } }
}

func readGoMod(t *testing.T, dir string) goMod {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = filepath.Join(root, dir)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s/go.mod: %v", dir, err)
	}
	var mod goMod
	if err := json.Unmarshal(output, &mod); err != nil {
		t.Fatalf("%s/go.mod: %v", dir, err)
	}
	return mod
}

// unexplained lists the direct dependencies and tools that a page does not name.
func unexplained(page string, mods ...goMod) []string {
	var missing []string
	for _, mod := range mods {
		for _, require := range mod.Require {
			if !require.Indirect && !strings.Contains(page, "`"+require.Path+"`") {
				missing = append(missing, require.Path)
			}
		}
		for _, tool := range mod.Tool {
			if !strings.Contains(page, "`"+tool.Path+"`") {
				missing = append(missing, tool.Path)
			}
		}
	}
	return missing
}

func TestEachDependencyIsExplained(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var mods []goMod
	for _, dir := range []string{".", "tools", "tools/kustomize", "e2e/cluster", "e2e/certmanager", "e2e/storage/server"} {
		mods = append(mods, readGoMod(t, dir))
	}
	for _, dependency := range unexplained(string(page), mods...) {
		t.Errorf("docs/dependencies.md does not say why %s", dependency)
	}
}

func TestUnexplainedDependenciesAreSeen(t *testing.T) {
	var mod goMod
	text := `{"Require": [{"Path": "a.example/one"}, {"Path": "a.example/two"}, {"Path": "a.example/far", "Indirect": true}], "Tool": [{"Path": "a.example/tool"}]}`
	if err := json.Unmarshal([]byte(text), &mod); err != nil {
		t.Fatal(err)
	}
	got := unexplained("| `a.example/one` | why |\n| a.example/two |", mod)
	if diff := cmp.Diff([]string{"a.example/two", "a.example/tool"}, got); diff != "" {
		t.Error(diff)
	}
}

// unknownTests lists the tests that a page names and no file of the tree defines.
func unknownTests(page string, tree fs.FS) ([]string, error) {
	defined := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^(?:func (Test\w+)\(|(test_\w+)\(\))`)
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && strings.HasPrefix(path.Base(file), ".") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "tests/") {
			return nil
		}
		source, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		for _, match := range definition.FindAllStringSubmatch(string(source), -1) {
			defined[match[1]+match[2]] = true
		}
		return nil
	})
	var unknown []string
	for _, match := range regexp.MustCompile("`(Test[A-Z]\\w*|test_\\w+)`").FindAllStringSubmatch(page, -1) {
		if !defined[match[1]] {
			unknown = append(unknown, match[1])
		}
	}
	return unknown, err
}

func TestPagesNameRealTests(t *testing.T) {
	for _, name := range []string{"threat-model.md", "checklist.md", "attacks.md"} {
		t.Run(name, func(t *testing.T) {
			page, err := os.ReadFile(root + "/docs/" + name)
			if err != nil {
				t.Fatal(err)
			}
			unknown, err := unknownTests(string(page), os.DirFS(root))
			if err != nil {
				t.Fatal(err)
			}
			report := t.Errorf
			if !whole() {
				report = t.Logf
			}
			for _, test := range unknown {
				report("docs/%s names %s, which is no test of this tree", name, test)
			}
		})
	}
}

func TestUnknownTestsAreSeen(t *testing.T) {
	got, err := unknownTests("`TestOne` `TestTwo` `test_three` `test_four` `Tests` TestFive", fstest.MapFS{
		"a/a_test.go":     {Data: []byte("package a\nfunc TestOne(t *testing.T) {\n}\n// func TestTwo(\n")},
		"shim/tests/x.sh": {Data: []byte("test_three() {\n}\n")},
		"notes.sh":        {Data: []byte("test_four() {\n}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"TestTwo", "test_four"}, got); diff != "" {
		t.Error(diff)
	}
}
