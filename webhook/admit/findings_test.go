package admit

import (
	"slices"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

func TestFindingsAreRememberedByScriptAndPhase(t *testing.T) {
	f := NewFindings()
	traced := []byte("#!/usr/bin/env bash\nset -euxo pipefail\necho \"$KPSSH_BOOTSTRAP_TOKEN\"\n")
	want := verify.Findings(traced, script.Join)
	if len(want) == 0 {
		t.Fatal("lint says nothing of a script that traces a secret")
	}
	for _, when := range []string{"asked first", "asked again"} {
		if got := f.Of(traced, script.Join); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	for _, w := range f.Of(traced, script.Install) {
		if !strings.HasPrefix(w, "install: ") {
			t.Errorf("the install script is told %q", w)
		}
	}
	if f.known.Len() != 2 {
		t.Errorf("%d scripts are remembered, want 2", f.known.Len())
	}
}
