package trustpolicy_test

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Each pattern takes what lies in it, and nothing that reaches beyond: wildcards in a value least of all.
func TestWildcardsInAValueSlipThroughNoPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, value string
		want           bool
	}{
		{"/usr/bin/id", "/usr/bin/id", true},
		{"/usr/bin/id", "/usr/bin/id2", false},
		{"/usr/bin/id", "/usr/bin/⋯", false},
		{"/usr/bin/id", "*", false},
		{"/usr/bin/*", "/usr/bin/id", true},
		{"/usr/bin/*", "/usr/bin/a/b", true},
		{"/usr/bin/*", "/usr/bin", true}, // any number of elements may be none
		{"/usr/bin/*", "/usr/binary", false},
		{"/usr/bin/*", "/usr/bin⋯", false},
		{"/usr/bin/*", "/usr/sbin/id", false},
		{"/usr/bin/*", "/usr/bin/../../bin/sh", false},
		{"/usr/bin/*", "/usr/bin/..", false},
		{"/usr/bin/*", "/usr/bin/./sh", false},
		{"/usr/bin/*", "/usr/bin/..x", true},
		{"/usr/bin/*", "/usr/bin/⋯", true},
		{"/usr/bin/*", "/usr/bin/⋯⋯", true},
		{"/usr/bin/*", "/usr/bin/*", true},
		{"/usr/bin/*", "/usr/⋯/sh", false},
		{"/usr/bin/*", "/usr/*", false},
		{"/usr/bin/*", "/⋯/bin/id", false},
		{"/usr/bin/*", "⋯⋯", false},
		{"/usr/bin/*", "*", false},
		{"/usr/bin/*", "", false},
		{"/usr/bin/py*", "/usr/bin/python3", true},
		{"/usr/bin/py*", "/usr/bin/p⋯", false},
		{"/tmp/⋯/x", "/tmp/⋯/x", true},
		{"/tmp/⋯/x", "/tmp/a/x", false},
		{"*", "⋯⋯", true},
		{"*", "", true},
		{"*", "/a/../b", true},
		{"*.svc.cluster.local.", "redis.svc.cluster.local.", true},
		{"*.svc.cluster.local.", "*.svc.cluster.local.", true},
		{"*.svc.cluster.local.", "svc.cluster.local.", false},
		{"*.svc.cluster.local.", "*.cluster.local.", false},
		{"*.svc.cluster.local.", "a.svc.cluster.local.⋯", false},
		{"*.svc.cluster.local.", "a.svc.cluster.local.*", false},
		{"*.svc.cluster.local.", "a.svc.cluster.local.example.com.", false},
		{"*local.", "⋯⋯local.", true},
		{"CAP_NET_*", "CAP_NET_RAW", true},
		{"CAP_NET_*", "CAP_SYS_ADMIN", false},
	} {
		if got := trustpolicy.MatchesValue(tt.pattern, tt.value); got != tt.want {
			t.Errorf("%q takes %q: %v", tt.pattern, tt.value, got)
		}
	}
}

func TestRangesInAValueSlipThroughNoPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, value string
		want           bool
	}{
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.10", false},
		{"10.0.0.*", "10.0.0.7", true},
		{"10.0.0.*", "10.0.0.0/8", false},
		{"10.0.0.*", "10.0.0.1-10.9.9.9", false},
		{"10.0.0.*", "10.0.0.*", true}, // the same text
		{"10.0.*", "10.0.0.*", false},
		{"10.0.0.0/16", "10.0.3.4", false},
		{"10.0.0.0/*", "10.0.0.0/8", false},
		{"10.0.0.0/8", "10.0.0.0/8", true},
		{"fd00:*", "fd00::1", true},
		{"fd00:*", "fe80::1", false},
		{"fd00:*", "fd00::/8", false},
		{"10.0.*", "::ffff:10.0.0.1", false},
		{"*", "0.0.0.0/0", true},
		{"10.0.0.*", "", false},
		{"10.0.0.0/8", "", false},
	} {
		if got := trustpolicy.MatchesAddress(tt.pattern, tt.value); got != tt.want {
			t.Errorf("%q takes %q: %v", tt.pattern, tt.value, got)
		}
	}
}

func TestAPathWithoutValuesTakesAny(t *testing.T) {
	c := trustpolicy.FragmentClass{AllowedSpecPaths: []string{"execs", "egress"}, Values: map[string][]string{"execs": {"/bin/a", "/bin/b"}}}
	for path, values := range map[string]map[string]bool{
		"execs":  {"/bin/a": true, "/bin/b": true, "/bin/c": false},
		"egress": {"anything": true},
	} {
		for value, want := range values {
			if c.Takes(path, value) != want || c.TakesAddress(path, value) != want {
				t.Errorf("%s takes %q: %v", path, value, !want)
			}
		}
	}
	if !c.MaySet("execs") || c.MaySet("opens") || !(trustpolicy.FragmentClass{AllowedSpecPaths: []string{"*"}}).MaySet("opens") {
		t.Error("paths are mixed up")
	}
}

func TestAResetIsForOneVersionOfOneSlot(t *testing.T) {
	p := &trustpolicy.Policy{Resets: []trustpolicy.Reset{{Slot: "pay/redis/base/x", Serial: 3, Digest: "sha256:aa"}, {Profile: "x", Serial: 3, Digest: "sha256:aa"}}}
	if r, ok := p.SlotResetOf("pay/redis/base/x", 3, "aa"); !ok || r.ID() != p.Resets[0].ID() {
		t.Errorf("%+v, %v", r, ok)
	}
	for name, ok := range map[string]bool{
		"another slot":    second(p.SlotResetOf("pay/redis/base/y", 3, "aa")),
		"another version": second(p.SlotResetOf("pay/redis/base/x", 4, "aa")),
		"other content":   second(p.SlotResetOf("pay/redis/base/x", 3, "bb")),
		"no slot":         second(p.SlotResetOf("", 3, "aa")),
	} {
		if ok {
			t.Errorf("%s is reset", name)
		}
	}
}

func second[T any](_ T, ok bool) bool { return ok }
