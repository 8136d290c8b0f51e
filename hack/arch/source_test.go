package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const root = "../.." // of the tree, seen from this package

// callRule forbids the use of functions of other packages by name.
type callRule struct {
	name    string
	applies func(file string) bool
	uses    map[string][]string // import path → exported names
	allowed map[string]string   // file → why it may
}

func callRules() []callRule {
	return []callRule{
		{
			name:    "the trust core takes the time as an argument",
			applies: func(file string) bool { return strings.HasPrefix(file, "internal/") },
			uses: map[string][]string{"time": {
				"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer",
			}},
		},
		{
			name: "no private signing key is loaded or used outside signer/",
			applies: func(file string) bool {
				return !strings.HasPrefix(file, "signer/") && !supports(file)
			},
			uses: map[string][]string{
				"golang.org/x/crypto/ssh": {
					"ParsePrivateKey", "ParsePrivateKeyWithPassphrase", "ParseRawPrivateKey", "ParseRawPrivateKeyWithPassphrase",
					"NewSignerFromKey", "NewSignerFromSigner", "MarshalPrivateKey", "MarshalPrivateKeyWithPassphrase",
				},
				"golang.org/x/crypto/ssh/agent": {"NewClient", "NewKeyring"},
				"crypto/x509":                   {"ParsePKCS8PrivateKey", "ParsePKCS1PrivateKey", "ParseECPrivateKey"},
				"crypto/ed25519":                {"GenerateKey", "NewKeyFromSeed", "Sign"},
				"crypto/ecdsa":                  {"GenerateKey", "Sign", "SignASN1"},
				"crypto/rsa":                    {"GenerateKey", "SignPKCS1v15", "SignPSS"},
				module + "/internal/sshsig":     {"Sign"},
			},
			allowed: loginKeyFiles(),
		},
	}
}

// loginKeyFiles are the places where an SSH *login* key is read: it opens a connection
// to a host and can sign nothing that the host's shim would run.
func loginKeyFiles() map[string]string {
	return map[string]string{
		"relay/transport/loginkey.go": "the relay logs in to hosts with it",
	}
}

// supports says that a file is part of no program: it tests, or keeps house.
func supports(file string) bool { return belowAny(file, supporting()) }

func supporting() []string { return []string{"e2e", "hack", "testkit", "relay/fakesshd"} }

// misuses lists what the rules forbid in the files of a tree, tests left out.
func misuses(rules []callRule, tree fs.FS) ([]string, error) {
	var found []string
	err := goFiles(tree, func(file string, parsed *ast.File, at func(token.Pos) int) {
		for _, rule := range rules {
			if !rule.applies(file) || rule.allowed[file] != "" {
				continue
			}
			for _, use := range usesOf(parsed, rule.uses) {
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", file, at(use.pos), use.name, rule.name))
			}
		}
	})
	return found, err
}

type use struct {
	name string
	pos  token.Pos
}

func usesOf(file *ast.File, forbidden map[string][]string) []use {
	var uses []use
	names := map[string]string{} // name in this file → import path
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || forbidden[imported] == nil {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." { // its uses could not be told
			uses = append(uses, use{"import . of " + imported, spec.Pos()})
		}
		names[name] = imported
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && slices.Contains(forbidden[names[of.Name]], selector.Sel.Name) {
			uses = append(uses, use{of.Name + "." + selector.Sel.Name, selector.Pos()})
		}
		return true
	})
	return uses
}

// goFiles calls do for each Go file of a tree that is no test.
func goFiles(tree fs.FS, do func(file string, parsed *ast.File, line func(token.Pos) int)) error {
	return fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(file)
		if entry.IsDir() {
			if file != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		do(file, parsed, func(p token.Pos) int { return fset.Position(p).Line })
		return nil
	})
}

func TestClocksAndPrivateKeysStayWhereTheyBelong(t *testing.T) {
	found, err := misuses(callRules(), os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, misuse := range found {
		t.Error(misuse)
	}
}

func TestCallRulesSeeTheirNearMiss(t *testing.T) {
	const (
		clock    = "package p\nimport \"time\"\nvar _ = time.Now\n"
		duration = "package p\nimport \"time\"\nvar _ = time.Second\n"
		renamed  = "package p\nimport t \"time\"\nvar _ = t.Now\n"
		dotted   = "package p\nimport . \"time\"\nvar _ = Now\n"
		foreign  = "package p\nimport time \"example.com/time\"\nvar _ = time.Now\n"
		loads    = "package p\nimport \"golang.org/x/crypto/ssh\"\nvar _ = ssh.ParsePrivateKey\n"
		reads    = "package p\nimport \"golang.org/x/crypto/ssh\"\nvar _ = ssh.ParsePublicKey\n"
		signs    = "package p\nimport \"" + module + "/internal/sshsig\"\nvar _ = sshsig.Sign\n"
		verifies = "package p\nimport \"" + module + "/internal/sshsig\"\nvar _ = sshsig.Parse\n"
	)
	tests := map[string]struct {
		file, source string
		want         []string
	}{
		"the clock in the core":                {"internal/a/a.go", clock, []string{"internal/a/a.go:3: time.Now: the trust core takes the time as an argument"}},
		"a duration in the core":               {"internal/a/a.go", duration, nil},
		"the clock under another name":         {"internal/a/a.go", renamed, []string{"internal/a/a.go:3: t.Now: the trust core takes the time as an argument"}},
		"the clock without a name":             {"internal/a/a.go", dotted, []string{"internal/a/a.go:2: import . of time: the trust core takes the time as an argument"}},
		"another package called time":          {"internal/a/a.go", foreign, nil},
		"the clock in a test of the core":      {"internal/a/a_test.go", clock, nil},
		"the clock in the webhook":             {"webhook/a.go", clock, nil},
		"a private key in the relay":           {"relay/a.go", loads, []string{"relay/a.go:3: ssh.ParsePrivateKey: no private signing key is loaded or used outside signer/"}},
		"a private key in the core":            {"internal/a/a.go", loads, []string{"internal/a/a.go:3: ssh.ParsePrivateKey: no private signing key is loaded or used outside signer/"}},
		"a private key in the signer":          {"signer/a.go", loads, nil},
		"the login key where it belongs":       {"relay/transport/loginkey.go", loads, nil},
		"the login key one file further":       {"relay/transport/pin.go", loads, []string{"relay/transport/pin.go:3: ssh.ParsePrivateKey: no private signing key is loaded or used outside signer/"}},
		"a private key in the relay's test":    {"relay/fakesshd/server.go", loads, nil},
		"a public key in the relay":            {"relay/a.go", reads, nil},
		"a signature made in the webhook":      {"webhook/a.go", signs, []string{"webhook/a.go:3: sshsig.Sign: no private signing key is loaded or used outside signer/"}},
		"a signature read in the webhook":      {"webhook/a.go", verifies, nil},
		"a private key made in the lab's code": {"e2e/lab/a.go", loads, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := misuses(callRules(), fstest.MapFS{test.file: {Data: []byte(test.source)}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
