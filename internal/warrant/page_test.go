package warrant_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// specification is docs/spec/warrant.md.
func specification(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "spec", "warrant.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expressions are those that the page names, with all names filled in.
func expressions(t *testing.T, text string) map[string]string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "```ere\n")
	block, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatal("the page has no block of expressions")
	}
	named := map[string]string{}
	for line := range strings.Lines(block) {
		name, ere, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "= ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		named[strings.TrimSpace(name)] = fill(ere, named)
	}
	return named
}

func fill(ere string, named map[string]string) string {
	return regexp.MustCompile(`<[a-z0-9]+>`).ReplaceAllStringFunc(ere, func(name string) string { return named[strings.Trim(name, "<>")] })
}

func TestThePageHasTheExampleAndEveryType(t *testing.T) {
	text := specification(t)
	if !strings.Contains(text, "```\n"+page+"```\n") {
		t.Error("the example of the page is not the one that is tested")
	}
	named := expressions(t, text)
	var types []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9]+)` \\| ([0-9]+) \\| `(.*)` \\|$").FindAllStringSubmatch(text, -1) {
		ere, most := warrant.TypeRule(row[1])
		if got := fill(strings.ReplaceAll(row[3], `\|`, "|"), named); got != ere {
			t.Errorf("type %s: the page says\n%s, the code\n%s", row[1], got, ere)
		}
		if row[2] != strconv.Itoa(most) {
			t.Errorf("type %s: the page says %s bytes, the code %d", row[1], row[2], most)
		}
		types = append(types, row[1])
	}
	if !slices.Equal(types, warrant.Types()) {
		t.Errorf("the page has the types %q, the code %q", types, warrant.Types())
	}
	for kind, ere := range warrant.TargetRules() {
		if named[kind] != ere {
			t.Errorf("target %s: the page says %s, the code %s", kind, named[kind], ere)
		}
	}
	if ere, most := warrant.AddressRule(); most != 253 || fill("<subdomain>|<ipv6>", named) != ere {
		t.Errorf("addresses: the code says %s", ere)
	}
}
