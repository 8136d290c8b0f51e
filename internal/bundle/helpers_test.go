package bundle_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// The signers of the tests; the order of their fingerprints is that of the alphabet.
const (
	alice = "key:aaaa"
	bob   = "key:bbbb"
)

func reason(err error) decision.Reason {
	if err == nil {
		return decision.Verified
	}
	return decision.From(err).Reason
}

func wantReason(t *testing.T, err error, want decision.Reason) {
	t.Helper()
	if got := reason(err); got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// part is a verified fragment of bundle "redis", named class/name.
func part(member, signer string, version int64, spec fragment.ProfileSpec) *fragment.Fragment {
	class, name, _ := strings.Cut(member, "/")
	content := fmt.Sprint(member, version, spec)
	return &fragment.Fragment{
		Kind: fragment.KindContainerProfile, Name: name, Bundle: "redis", Class: class, Version: version, Signer: signer,
		Digest: hexOf(content), Bytes: hexOf("bytes of " + content), Profile: &spec,
	}
}

// runs is a fragment that allows one program.
func runs(member, signer string, version int64, path string) *fragment.Fragment {
	return part(member, signer, version, fragment.ProfileSpec{Execs: []fragment.Exec{{Path: path}}})
}

func assembled(t *testing.T, members []*fragment.Fragment, priority ...string) *bundle.Composite {
	t.Helper()
	c, err := bundle.Assemble(members, priority)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// published reads a carrier of the public test data.
func published(t *testing.T, name string) *fragment.Object {
	t.Helper()
	text, err := yaml.YAMLToJSON(testkit.Corpus(t, "fragments/"+name))
	if err != nil {
		t.Fatal(err)
	}
	o, err := fragment.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func verified(t *testing.T, name string) *fragment.Fragment {
	t.Helper()
	f, err := fragment.Verify(published(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func bundle37(t *testing.T) []*fragment.Fragment {
	t.Helper()
	var all []*fragment.Fragment
	for _, class := range []string{"overlay", "base", "admission"} {
		all = append(all, verified(t, "node-agent/fragments/bundle37-"+class+"-signed.yaml"))
	}
	return all
}

// members are the leaves of a composite as class/name.
func members(c *bundle.Composite) []string {
	if c == nil {
		return nil
	}
	var all []string
	for _, leaf := range c.Leaves {
		all = append(all, bundle.MemberName(leaf.Class, leaf.Name))
	}
	return all
}
