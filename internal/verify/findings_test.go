package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

func TestFindingsAreBoundedByTheScriptsSize(t *testing.T) {
	const head = "#!/usr/bin/env bash\nset -x\necho \"$KPSSH_BOOTSTRAP_TOKEN\"\n"
	for name, c := range map[string]struct {
		size   int
		linted bool
	}{
		"64 KiB":        {64 << 10, true},
		"one byte more": {64<<10 + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := head + strings.Repeat("#", c.size-len(head)-1) + "\n"
			got := verify.Findings([]byte(text), script.Join)
			const skipped = "join: over 64 KiB, not linted here: hostwarrant lint FILE"
			if len(got) == 0 || slices.Contains(got, skipped) == c.linted {
				t.Errorf("got %q", got)
			}
		})
	}
}
