package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/hostwarrant/hostwarrant"

// pkg is a package of this module as `go list` sees it, without its tests.
type pkg struct {
	ImportPath string
	Imports    []string // direct
	Deps       []string // direct and indirect
}

// importRule forbids imports to the packages below one directory. A forbidden path
// stands for itself and all below it.
type importRule struct {
	name   string
	within string // top-level directory of this module
	direct []string
	any    []string
}

func importRules() []importRule {
	ours := func(dirs ...string) []string {
		for i, dir := range dirs {
			dirs[i] = module + "/" + dir
		}
		return dirs
	}
	rules := []importRule{
		{
			name: "the trust core knows no cluster, network or process", within: "internal",
			any: append(ours("api", "signer", "webhook", "relay", "shim"),
				"k8s.io", "sigs.k8s.io", "net/http", "os/exec"),
		},
		// Direct imports only: golang.org/x/crypto/ssh itself imports net and os.
		{
			name: "the trust core opens no file and no socket", within: "internal",
			direct: []string{"os", "io/ioutil", "net", "syscall", "golang.org/x/sys"},
		},
		{
			name: "the API types know no program", within: "api",
			any: ours("signer", "webhook", "relay", "shim"),
		},
		{
			name: "the signer works without Kubernetes", within: "signer",
			any: append(ours("api", "webhook", "relay"), "k8s.io", "sigs.k8s.io/controller-runtime"),
		},
		{
			name: "the webhook shares no code with signer or relay but the core", within: "webhook",
			any: ours("signer", "relay"),
		},
		{
			name: "the relay shares no code with signer or webhook but the core", within: "relay",
			any: ours("signer", "webhook"),
		},
		{
			name: "the shim package needs no other", within: "shim",
			any: ours("signer", "webhook", "relay"),
		},
	}
	for i := range rules {
		rules[i].any = append(rules[i].any, ours(supporting()...)...)
	}
	return rules
}

func breaches(rules []importRule, packages []pkg) []string {
	var found []string
	for _, rule := range rules {
		for _, p := range packages {
			inside := strings.TrimPrefix(p.ImportPath, module+"/")
			if !below(inside, rule.within) || supports(inside) {
				continue
			}
			for _, imported := range p.Imports {
				if belowAny(imported, rule.direct) {
					found = append(found, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, rule.name))
				}
			}
			for _, imported := range p.Deps {
				if belowAny(imported, rule.any) {
					found = append(found, fmt.Sprintf("%s reaches %s: %s", p.ImportPath, imported, rule.name))
				}
			}
		}
	}
	return found
}

func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func belowAny(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(path, dir) })
}

func TestImportDirections(t *testing.T) {
	packages := listPackages(t)
	for _, breach := range breaches(importRules(), packages) {
		t.Error(breach)
	}
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []pkg
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}

func TestImportRulesSeeTheirNearMiss(t *testing.T) {
	direct := func(dir, imported string) pkg {
		return pkg{ImportPath: module + "/" + dir, Imports: []string{imported}, Deps: []string{imported}}
	}
	indirect := func(dir, imported string) pkg {
		return pkg{ImportPath: module + "/" + dir, Deps: []string{imported}}
	}
	tests := map[string]struct {
		bad  pkg
		good pkg
	}{
		"Kubernetes in the core":           {indirect("internal/verify", "k8s.io/api/core/v1"), indirect("webhook", "k8s.io/api/core/v1")},
		"controller-runtime in the core":   {indirect("internal/verify", "sigs.k8s.io/yaml"), indirect("internal/verify", "go.yaml.in/yaml/v3")},
		"HTTP in the core":                 {indirect("internal/verify", "net/http"), indirect("internal/verify", "net/url")},
		"processes in the core":            {indirect("internal/verify", "os/exec"), indirect("internal/verify", "os")},
		"files in the core":                {direct("internal/verify", "os"), direct("signer", "os")},
		"sockets in the core":              {direct("internal/envelope", "net"), indirect("internal/envelope", "net")},
		"a program in the core":            {indirect("internal/verify", module+"/relay/dial"), indirect("relay/dial", module+"/internal/verify")},
		"API types in the core":            {indirect("internal/object", module+"/api/v1alpha1"), indirect("webhook", module+"/api/v1alpha1")},
		"a program in the API types":       {indirect("api/v1alpha1", module+"/webhook"), indirect("api/v1alpha1", "k8s.io/apimachinery/pkg/runtime")},
		"Kubernetes in the signer":         {indirect("signer", "k8s.io/client-go/rest"), indirect("signer", module+"/internal/verify")},
		"the relay in the webhook":         {indirect("webhook", module+"/relay/dial"), indirect("webhook", module+"/internal/verify")},
		"the signer in the relay":          {indirect("relay", module+"/signer/keys"), indirect("relay", module+"/internal/sshsig")},
		"tests in a product":               {indirect("shim", module+"/e2e/lab"), indirect("e2e/demo", module+"/e2e/lab")},
		"a fake host in the relay":         {indirect("relay/runner", module+"/relay/fakesshd"), indirect("relay/runner", module+"/relay/transport")},
		"test keys beside a fake host":     {indirect("relay/transport", module+"/testkit"), indirect("relay/fakesshd", module+"/testkit")},
		"test keys in a product":           {indirect("relay", module+"/testkit"), indirect("e2e/lab", module+"/testkit")},
		"a directory with a like name":     {direct("internal", "os"), direct("internals/x", "os")},
		"a package with a like path":       {indirect("internal/x", "net/http/httputil"), indirect("internal/x", "net/httpx")},
		"a direct import beside a subpath": {direct("internal/x", "golang.org/x/sys/unix"), direct("internal/x", "golang.org/x/crypto/ssh")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := breaches(importRules(), []pkg{test.bad}); len(got) == 0 {
				t.Errorf("%v breaks no rule", test.bad)
			}
			if diff := cmp.Diff([]string(nil), breaches(importRules(), []pkg{test.good})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
