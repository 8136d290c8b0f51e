package bundle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// treeOf is a composite of n members.
func treeOf(t *testing.T, n int) *bundle.Composite {
	t.Helper()
	var all []*fragment.Fragment
	for i := range n {
		all = append(all, runs(fmt.Sprint("base/m", i), alice, 1, "/x"))
	}
	return assembled(t, all)
}

// Each leaf of each tree has a proof, and no proof serves another leaf or root.
func TestProofs(t *testing.T) {
	for n := 1; n <= 33; n++ {
		c := treeOf(t, n)
		for i, leaf := range c.Leaves {
			proof := c.Proof(i)
			if err := bundle.VerifyProof(c.Root, leaf, proof); err != nil {
				t.Errorf("leaf %d of %d: %v", i, n, err)
			}
			if n > 1 {
				wantReason(t, bundle.VerifyProof(c.Root, c.Leaves[(i+1)%n], proof), decision.Tampered)
				wantReason(t, bundle.VerifyProof(c.Root, leaf, proof[1:]), decision.Tampered)
			}
			wantReason(t, bundle.VerifyProof(treeOf(t, n+1).Root, leaf, proof), decision.Tampered)
		}
		if c.Proof(-1) != nil || c.Proof(n) != nil {
			t.Errorf("a tree of %d proves leaves that it has not", n)
		}
	}
}

func TestProofsSayOnlyWhatTheyProve(t *testing.T) {
	c := treeOf(t, 5)
	leaf, proof := c.Leaves[2], c.Proof(2)
	for name, tt := range map[string]struct {
		leaf   func(*bundle.Leaf)
		change func([]bundle.Step) []bundle.Step
		want   decision.Reason
	}{
		"as it is":       {nil, nil, decision.Verified},
		"another class":  {func(l *bundle.Leaf) { l.Class = "overlay" }, nil, decision.Tampered},
		"another signer": {func(l *bundle.Leaf) { l.Signer = bob }, nil, decision.Tampered},
		"another digest": {func(l *bundle.Leaf) { l.Digest = hexOf("x") }, nil, decision.Tampered},
		"class and signer shifted": {func(l *bundle.Leaf) {
			l.Class, l.Signer, l.Digest = l.Class+"\x00"+l.Signer, l.Digest, ""
		}, nil, decision.Malformed},
		"the other side":     {nil, func(s []bundle.Step) []bundle.Step { s[0].Side = bundle.Left; return s }, decision.Tampered},
		"no side":            {nil, func(s []bundle.Step) []bundle.Step { s[0].Side = ""; return s }, decision.Malformed},
		"a hash in capitals": {nil, func(s []bundle.Step) []bundle.Step { s[0].Hash = strings.ToUpper(s[0].Hash); return s }, decision.Malformed},
		"half a hash":        {nil, func(s []bundle.Step) []bundle.Step { s[0].Hash = s[0].Hash[:62]; return s }, decision.Malformed},
		"no hash":            {nil, func(s []bundle.Step) []bundle.Step { s[0].Hash = strings.Repeat("z", 64); return s }, decision.Malformed},
		"65 steps":           {nil, func(s []bundle.Step) []bundle.Step { return slices.Repeat(s[:1], 65) }, decision.TooLarge},
		"64 steps":           {nil, func(s []bundle.Step) []bundle.Step { return slices.Repeat(s[:1], 64) }, decision.Tampered},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := leaf, slices.Clone(proof)
			if tt.leaf != nil {
				tt.leaf(&l)
			}
			if tt.change != nil {
				p = tt.change(p)
			}
			wantReason(t, bundle.VerifyProof(c.Root, l, p), tt.want)
		})
	}
	// A node is no leaf: its children do not prove a member.
	if err := bundle.VerifyProof(c.Root, bundle.Leaf{}, proof); err == nil {
		t.Error("an empty leaf is a member")
	}
}

func TestManifest(t *testing.T) {
	c := assembled(t, bundle37(t))
	text, err := c.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"root":"` + c.Root + `","leaves":[{"class":"base","signer":"key:162a08d59135652ee095ad2e0d927104c9e4eefe94f4ae844e7387ba1a7352d2",` +
		`"name":"bundle37-base","contentDigest":"f8da0b152166331932e2ef25576b91f81c4e9d5189a3c095ddf082e1b00732ff","version":0},`; !strings.HasPrefix(string(text), want) {
		t.Errorf("the manifest is %s", text)
	}
	for name, tt := range map[string]struct {
		text string
		want decision.Reason
	}{
		"as it is":             {string(text), decision.Verified},
		"no JSON":              {"{", decision.Malformed},
		"white space":          {string(text) + "\n", decision.NotCanonical},
		"an unknown field":     {strings.Replace(string(text), `"root"`, `"x":1,"root"`, 1), decision.NotCanonical},
		"a field in capitals":  {strings.Replace(string(text), `"root"`, `"Root"`, 1), decision.NotCanonical},
		"another class":        {strings.Replace(string(text), `"class":"base"`, `"class":"site"`, 1), decision.Tampered},
		"another root":         {strings.Replace(string(text), c.Root, hexOf("x"), 1), decision.Tampered},
		"more than is read":    {string(text) + strings.Repeat(" ", 64<<20), decision.TooLarge},
		"nobody, under a root": {`{"root":"` + c.Root + `","leaves":null}`, decision.Tampered},
		"nobody":               {`{"root":"` + hexOf("kubescape-bundle-empty") + `","leaves":null}`, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			again, err := bundle.ParseManifest([]byte(tt.text))
			wantReason(t, err, tt.want)
			if err == nil && len(again.Leaves) > 0 {
				if err := bundle.VerifyProof(c.Root, again.Leaves[1], again.Proof(1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestALongManifestStandsElsewhere(t *testing.T) {
	short := []byte(strings.Repeat("x", bundle.MaxManifest))
	if got := bundle.Annotation(short); got != string(short) {
		t.Errorf("%d bytes are replaced by %.80s", len(short), got)
	}
	long := append(slices.Clone(short), 'x')
	if got, want := bundle.Annotation(long), "sha256:"+hexOf(string(long)); got != want {
		t.Errorf("annotation %.80s, want %s", got, want)
	}
}
