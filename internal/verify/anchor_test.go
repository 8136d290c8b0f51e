package verify_test

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestParseAnchor(t *testing.T) {
	root := testkit.NewSigner(t, "ed25519").Line
	tests := map[string]struct {
		roots, id string
		where     string // of the refusal; empty for none
	}{
		"good":                {root, "prod-1", ""},
		"a final newline":     {root + "\n", "prod-1\n", ""},
		"any":                 {root, "any", ""},
		"63 characters":       {root, strings.Repeat("a", 63), ""},
		"64 characters":       {root, strings.Repeat("a", 64), "cluster-id"},
		"two final newlines":  {root, "prod-1\n\n", "cluster-id"},
		"no id":               {root, "", "cluster-id"},
		"an id in upper case": {root, "Prod", "cluster-id"},
		"two words":           {root, "prod 1", "cluster-id"},
		"no roots":            {"", "prod-1", "roots"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, err := verify.ParseAnchor([]byte(tt.roots), []byte(tt.id))
			if tt.where == "" {
				if err != nil || a.ClusterID != strings.TrimSuffix(tt.id, "\n") || a.Roots.Threshold != 1 {
					t.Errorf("got %+v, %v", a, err)
				}
				return
			}
			if e := decision.From(err); err == nil || e.Reason != decision.PolicyMalformed || e.Where != tt.where {
				t.Errorf("got %+v, %v, want PolicyMalformed at %s", a, err, tt.where)
			}
		})
	}
}
