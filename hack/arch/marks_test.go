package arch

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/hack/mutants/mark"
)

const (
	decisionDir = "internal/decision"
	shimFile    = "shim/kpssh-shim"
)

// unmarkedReasons need no mark: they name no refusal that a check decides on.
func unmarkedReasons() map[string]string {
	return map[string]string{
		"Verified":  "the answer that allows",
		"Unguarded": "an answer that allows",
		"Waived":    "an answer that allows",
		"Internal":  "the answer to a fault of our own, which is not a condition one can take away",
	}
}

// unmarkedExits need no mark, for the same reason.
func unmarkedExits() map[string]string {
	return map[string]string{
		"0":  "done",
		"1":  "a fault of our own",
		"10": "the script's own failure, reported and not decided",
	}
}

// shimExits are the codes of docs/spec/shim.md.
func shimExits() []string {
	return strings.Fields("1 2 3 4 5 10 11 12 13 14 15 16 17 18 20 21 22 23")
}

// census is what a tree uses and what it marks.
type census struct {
	reasons    []string            // defined
	used       map[string][]string // reason or exit code → first places
	marked     map[string]int
	problems   []string
	goMarks    int
	shellMarks int
}

func takeCensus(tree fs.FS) (*census, error) {
	c := &census{used: map[string][]string{}, marked: map[string]int{}}
	if err := goFiles(tree, c.readGo); err != nil {
		return nil, err
	}
	if err := c.readShim(tree); err != nil {
		return nil, err
	}
	found, err := mark.InTree(tree)
	if err != nil {
		return nil, err
	}
	for _, p := range found.Problems {
		c.problems = append(c.problems, p.String())
	}
	for _, m := range found.Marks {
		known := shimExits()
		if strings.HasSuffix(m.File, ".go") {
			known, c.goMarks = c.reasons, c.goMarks+1
		} else {
			c.shellMarks++
		}
		for _, code := range m.Codes {
			c.marked[code]++
			if !slices.Contains(known, code) {
				c.problems = append(c.problems, fmt.Sprintf("%s:%d: %q is no reason of %s and no exit code of the shim", m.File, m.Line, code, decisionDir))
			}
		}
	}
	return c, nil
}

func (c *census) readGo(file string, parsed *ast.File, line func(token.Pos) int) {
	switch {
	case strings.HasPrefix(file, decisionDir+"/"):
		c.reasons = append(c.reasons, reasonsOf(parsed)...)
		return
	case supports(file):
		return
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && of.Name == "decision" {
			c.uses(selector.Sel.Name, file, line(selector.Pos()))
		}
		return true
	})
}

func (c *census) uses(code, file string, line int) {
	c.used[code] = append(c.used[code], fmt.Sprintf("%s:%d", file, line))
}

// reasonsOf lists the constants of type Reason in a file.
func reasonsOf(file *ast.File) []string {
	var reasons []string
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, spec := range block.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok || len(values.Names) != len(values.Values) {
				continue
			}
			typed, ok := values.Type.(*ast.Ident)
			if !ok || typed.Name != "Reason" {
				continue
			}
			for _, name := range values.Names {
				reasons = append(reasons, name.Name)
			}
		}
	}
	return reasons
}

func (c *census) readShim(tree fs.FS) error {
	source, err := fs.ReadFile(tree, shimFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	constant := regexp.MustCompile(`^([A-Z_]+)=([0-9]+)$`)
	leaves := regexp.MustCompile(`\b(?:(?:refuse|finish|exit)\s+|code=)"?(?:\$([A-Z_]+)\b|([0-9]+)\b)`)
	codes := map[string]string{}
	for i, text := range strings.Split(string(source), "\n") {
		if named := constant.FindStringSubmatch(text); named != nil {
			codes[named[1]] = named[2]
		}
		if strings.HasPrefix(strings.TrimSpace(text), "#") {
			continue
		}
		for _, match := range leaves.FindAllStringSubmatch(text, -1) {
			if code := match[2] + codes[match[1]]; code != "" {
				c.uses(code, shimFile, i+1)
			}
		}
	}
	return nil
}

// unmarked lists the reasons and exit codes in use that no mark names.
func (c *census) unmarked() []string {
	var found []string
	for _, code := range slices.Sorted(maps.Keys(c.used)) {
		_, notNumber := strconv.Atoi(code)
		exempt := unmarkedReasons()[code]
		if notNumber == nil {
			exempt = unmarkedExits()[code]
		} else if !slices.Contains(c.reasons, code) {
			continue // a type or function of the package
		}
		if exempt == "" && c.marked[code] == 0 {
			found = append(found, fmt.Sprintf("%s is used at %s and no check is marked with it", code, c.used[code][0]))
		}
	}
	return found
}

func TestEveryRefusalHasAMarkedCheck(t *testing.T) {
	c, err := takeCensus(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range c.problems {
		t.Error(problem)
	}
	for _, code := range c.unmarked() {
		t.Error(code)
	}
	t.Logf("%d reasons defined; %d marks in Go, %d in the shim", len(c.reasons), c.goMarks, c.shellMarks)
	for _, place := range []string{decisionDir, shimFile} {
		if _, err := os.Stat(root + "/" + place); err != nil {
			t.Logf("%s is not there yet: nothing of it was counted", place)
		}
	}
}

// A mutant that the shell cannot read would be killed for the wrong reason.
func TestMutantsOfTheShimAreScripts(t *testing.T) {
	source, err := os.ReadFile(root + "/" + shimFile)
	if errors.Is(err, fs.ErrNotExist) && !whole() {
		t.Logf("%s is not there yet", shimFile)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mark.InShell(shimFile, source).Marks {
		cmd := exec.CommandContext(t.Context(), "/bin/dash", "-n")
		cmd.Stdin = bytes.NewReader(m.Mutant(source))
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: without its line the script cannot be read: %s", m, output)
		}
	}
}

func TestCensusSeesItsNearMiss(t *testing.T) {
	const (
		reasons = "package decision\ntype Reason string\nconst (\n\tVerified Reason = \"Verified\"\n\tUnsigned Reason = \"Unsigned\"\n\tExpired Reason = \"Expired\"\n)\nconst limit = 3\n"
		marked  = "package p\nfunc f() {\n\t// check: Unsigned: why\n\tif true {\n\t\tg(decision.Unsigned)\n\t}\n\tg(decision.Verified)\n\tg(decision.Decision{})\n}\n"
		bare    = "package p\nfunc f() {\n\tif true {\n\t\tg(decision.Expired)\n\t}\n}\n"
		unknown = "package p\nfunc f() {\n\t// check: Unsinged: why\n\tif true {\n\t}\n}\n"
		shim    = "#!/bin/sh\n# exit 9 is nothing\n# check: 4: why\n[ x ] || refuse 4 no\nexit 0\n"
		shimGap = "#!/bin/sh\n[ x ] || refuse 2 no\n"
		shimVar = "#!/bin/sh\nBUSY=12\nGRACE=20\n[ x ] || refuse \"$BUSY\" no\nsleep $GRACE\n"
		shimBad = "#!/bin/sh\n# check: 99: why\n[ x ] || true\n"
	)
	tests := map[string]struct {
		file, source string
		problems     []string
		unmarked     []string
	}{
		"a reason with its mark":            {"internal/p/p.go", marked, nil, nil},
		"a reason without a mark":           {"internal/p/p.go", bare, nil, []string{"Expired is used at internal/p/p.go:4 and no check is marked with it"}},
		"the same in a test":                {"internal/p/p_test.go", bare, nil, nil},
		"a mark with a misspelt reason":     {"internal/p/p.go", unknown, []string{`internal/p/p.go:3: "Unsinged" is no reason of internal/decision and no exit code of the shim`}, nil},
		"an exit code with its mark":        {shimFile, shim, nil, nil},
		"an exit code without a mark":       {shimFile, shimGap, nil, []string{"2 is used at shim/kpssh-shim:2 and no check is marked with it"}},
		"an exit code by name":              {shimFile, shimVar, nil, []string{"12 is used at shim/kpssh-shim:4 and no check is marked with it"}},
		"a mark with a code that is none":   {shimFile, shimBad, []string{`shim/kpssh-shim:2: "99" is no reason of internal/decision and no exit code of the shim`}, nil},
		"an exit code marked in Go instead": {"internal/p/p.go", strings.ReplaceAll(unknown, "Unsinged", "4"), []string{`internal/p/p.go:3: "4" is no reason of internal/decision and no exit code of the shim`}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := takeCensus(fstest.MapFS{
				decisionDir + "/reason.go": {Data: []byte(reasons)},
				test.file:                  {Data: []byte(test.source)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.problems, c.problems); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.unmarked, c.unmarked()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
