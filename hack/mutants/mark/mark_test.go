package mark_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/hack/mutants/mark"
)

const goSource = `package p

func f(a, b bool) error {
	// check: Unsigned: nothing runs unsigned
	if a {
		return errA
	}
	// check: Expired,NotYetValid: a long reason
	// that goes on here
	if err := g(); err != nil || b {
		return err
	}
	return nil
}
`

const shSource = `#!/bin/sh
read_envelope() {
	# check: 4: a field twice
	[ "$n" -eq 1 ] || refuse 4 "twice"
	run
}
`

const shCase = `#!/bin/sh
case $1 in
a) ;;
# check: 5: an unknown phase
*) refuse 5 "unknown" ;;
esac
`

func TestMutantsOfMarkedChecks(t *testing.T) {
	tests := map[string]struct {
		file, source string
		want         []string // text that each mutant has instead of the check
		gone         []string
	}{
		"a Go condition becomes false and its init statement stays": {
			file: "p.go", source: goSource,
			want: []string{"if false && (a) {", "if err := g(); false && (err != nil || b) {"},
			gone: []string{"if a {", "; err != nil || b {"},
		},
		"a shell line goes and the lines around it stay": {
			file: "shim", source: shSource,
			want: []string{"a field twice\n:\n\trun"},
			gone: []string{"refuse"},
		},
		"a branch of a case goes without a trace": {
			file: "shim", source: shCase,
			want: []string{"an unknown phase\n\nesac"},
			gone: []string{"refuse"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := find(t, test.file, test.source)
			if len(found.Problems) > 0 || len(found.Marks) != len(test.want) {
				t.Fatalf("found %v and problems %v, want %d marks", found.Marks, found.Problems, len(test.want))
			}
			for i, m := range found.Marks {
				mutant := string(m.Mutant([]byte(test.source)))
				if !strings.Contains(mutant, test.want[i]) || strings.Contains(mutant, test.gone[i]) {
					t.Errorf("mutant of %v:\n%s", m, mutant)
				}
			}
		})
	}
}

func TestMarksSayWhatTheyAre(t *testing.T) {
	var got []string
	for _, m := range find(t, "p.go", goSource).Marks {
		got = append(got, m.String())
	}
	want := []string{"p.go:4: Unsigned: nothing runs unsigned", "p.go:8: Expired,NotYetValid: a long reason"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnusableMarksAreProblems(t *testing.T) {
	tests := map[string]struct{ file, source, want string }{
		"no reason":                   {"p.go", "package p\nfunc f() {\n// check: : why\nif true {\n}\n}\n", "p.go:3: malformed mark"},
		"no attack":                   {"p.go", "package p\nfunc f() {\n// check: Unsigned\nif true {\n}\n}\n", "p.go:3: malformed mark"},
		"no space after the sign":     {"p.go", "package p\nfunc f() {\n//check: Unsigned: why\nif true {\n}\n}\n", "p.go:3: malformed mark"},
		"above a switch":              {"p.go", "package p\nfunc f() {\n// check: Unsigned: why\nswitch {\n}\n}\n", "p.go:3: the mark does not stand directly above an if"},
		"a line between mark and if":  {"p.go", "package p\nfunc f() {\n// check: Unsigned: why\n\nif true {\n}\n}\n", "p.go:3: the mark does not stand directly above an if"},
		"sh: above an empty line":     {"shim", "#!/bin/sh\n# check: 4: why\n\nx\n", "shim:2: the mark does not stand directly above a line"},
		"sh: last line":               {"shim", "#!/bin/sh\n# check: 4: why", "shim:2: the mark does not stand directly above a line"},
		"sh: check of several lines":  {"shim", "#!/bin/sh\n# check: 4: why\n[ x ] ||\n\trefuse 4\n", "shim:2: the line below the mark goes on"},
		"sh: check with continuation": {"shim", "#!/bin/sh\n# check: 4: why\n[ x ] \\\n|| refuse 4\n", "shim:2: the line below the mark goes on"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := find(t, test.file, test.source)
			if len(found.Marks) != 0 || len(found.Problems) != 1 || !strings.HasPrefix(found.Problems[0].String(), test.want) {
				t.Errorf("found %v and %v, want the problem %q", found.Marks, found.Problems, test.want)
			}
		})
	}
}

func TestOtherCommentsAndFilesAreNoMarks(t *testing.T) {
	root := fstest.MapFS{
		"internal/p/p.go":      {Data: []byte("package p\n// checks are marked\nfunc f() {\n// a check: not a mark\nif true {\n}\n}\n")},
		"internal/p/p_test.go": {Data: []byte(goSource)},
		"hack/tool.go":         {Data: []byte(goSource)},
		"shim/testdata/x":      {Data: []byte(shSource)},
		"notes.txt":            {Data: []byte("# check: 4: no script\nx\n")},
	}
	found, err := mark.InTree(root)
	if err != nil || len(found.Marks)+len(found.Problems) > 0 {
		t.Errorf("found %v, %v, error %v; want nothing", found.Marks, found.Problems, err)
	}
}

func find(t *testing.T, file, source string) mark.Found {
	t.Helper()
	found, err := mark.InTree(fstest.MapFS{file: {Data: []byte(source)}})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
