package verify_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestParseAnchor(t *testing.T) {
	key := testkit.NewSigner(t, "ed25519")
	root := key.Line
	statementFor := func(cluster string, targets ...string) string {
		s := &statement.Statement{
			Kind: statement.KindRoots, Serial: 2, Issued: testkit.Now().Unix(), Cluster: cluster, Targets: targets,
			Roots: &statement.Roots{Threshold: 1, Keys: []ssh.PublicKey{key.PublicKey()}},
		}
		return string(s.Text())
	}
	tests := map[string]struct {
		roots, id string
		where     string // of the refusal; empty for none
	}{
		"good":                        {root, "prod-1", ""},
		"a final newline":             {root + "\n", "prod-1\n", ""},
		"any":                         {root, "any", ""},
		"63 characters":               {root, strings.Repeat("a", 63), ""},
		"64 characters":               {root, strings.Repeat("a", 64), "cluster-id"},
		"two final newlines":          {root, "prod-1\n\n", "cluster-id"},
		"no id":                       {root, "", "cluster-id"},
		"an id in upper case":         {root, "Prod", "cluster-id"},
		"two words":                   {root, "prod 1", "cluster-id"},
		"no roots":                    {"", "prod-1", "roots"},
		"a statement for it":          {statementFor("prod-1"), "prod-1", ""},
		"a statement for any":         {statementFor("", "any"), "prod-1", ""},
		"a statement for another":     {statementFor("prod-2"), "prod-1", "roots"},
		"a statement for a part":      {statementFor("prod-1", "class bm"), "prod-1", "roots"},
		"a statement for one, in any": {statementFor("prod-1"), "any", "roots"},
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
