package decision_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestReasonsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "spec", "reasons.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range decision.Reasons() {
		if n := strings.Count(string(page), "`"+string(r)+"`"); n == 0 {
			t.Errorf("docs/spec/reasons.md does not list %s", r)
		}
	}
}
