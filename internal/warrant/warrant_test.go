package warrant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// page is the example of docs/spec/warrant.md.
const page = `#!/usr/bin/env bash
#warrant: v1
#warrant: profile tls-bootstrap
#warrant: phase join
#warrant: serial 42
#warrant: not-before 1795000000
#warrant: not-after 1802776000
#warrant: target class bm-amd64
#warrant: param KPSSH_NODE_NAME required type dns1123
#warrant: param KPSSH_BOOTSTRAP_TOKEN required secret re [a-z0-9]{6}[.][a-z0-9]{16}
#warrant: param KPSSH_VAR_clusterDNS optional type ip
#warrant: timeout 300
#warrant: end
set -euo pipefail
`

func example() *warrant.Warrant {
	return &warrant.Warrant{
		Profile: "tls-bootstrap", Phase: "join", Serial: 42, NotBefore: 1795000000, HasNotBefore: true, NotAfter: 1802776000,
		Targets: []warrant.Target{{Kind: "class", Value: "bm-amd64"}},
		Params: []warrant.Param{
			{Name: "KPSSH_NODE_NAME", Required: true, Matcher: warrant.Matcher{Kind: "type", Value: "dns1123"}},
			{Name: "KPSSH_BOOTSTRAP_TOKEN", Required: true, Secret: true, Matcher: warrant.Matcher{Kind: "re", Value: "[a-z0-9]{6}[.][a-z0-9]{16}"}},
			{Name: "KPSSH_VAR_clusterDNS", Matcher: warrant.Matcher{Kind: "type", Value: "ip"}},
		},
		Timeout: 300,
	}
}

func TestFindReadsTheExample(t *testing.T) {
	w, err := warrant.Find([]byte(page))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(example(), w); d != "" {
		t.Error(d)
	}
}

func TestSetAndStripUndoEachOther(t *testing.T) {
	bare, err := warrant.Strip([]byte(page))
	if err != nil || string(bare) != "#!/usr/bin/env bash\nset -euo pipefail\n" {
		t.Fatalf("Strip: %v, %q", err, bare)
	}
	for name, from := range map[string][]byte{"without a block": bare, "with a block": []byte(page)} {
		if got, err := warrant.Set(from, example()); err != nil || string(got) != page {
			t.Errorf("Set on a script %s: %v, %q", name, err, got)
		}
	}
}
