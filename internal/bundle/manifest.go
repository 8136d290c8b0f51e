package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// MaxManifest is how long a manifest may be to stand in an annotation: half of what all
// annotations of an object may have.
const MaxManifest = 128 << 10

// maxManifestFile bounds what is read of one: some hundred thousand members.
const maxManifestFile = 64 << 20

// Manifest names the members of a composite in the order of assembly, and their root.
type Manifest struct {
	Root   string `json:"root"`
	Leaves []Leaf `json:"leaves"`
}

// Manifest is the composite's, as JSON.
func (c *Composite) Manifest() ([]byte, error) {
	return json.Marshal(Manifest{Root: c.Root, Leaves: c.Leaves})
}

// Annotation is what of a manifest stands in an annotation: itself, or its digest
// "sha256:…" where it is longer than MaxManifest.
func Annotation(manifest []byte) string {
	if len(manifest) <= MaxManifest {
		return string(manifest)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(manifest))
}

// ParseManifest reads what Manifest writes, and nothing else. The composite has no spec.
// The error carries Malformed, NotCanonical, TooLarge or Tampered.
func ParseManifest(text []byte) (*Composite, error) {
	// check: TooLarge: reading must be bounded
	if len(text) > maxManifestFile {
		return nil, decision.Errorf(decision.TooLarge, "the manifest has %d bytes, more than %d", len(text), maxManifestFile)
	}
	var m Manifest
	// check: Malformed: what is no JSON has no leaves
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, decision.Errorf(decision.Malformed, "the manifest: %v", err)
	}
	c := &Composite{Root: m.Root, Leaves: m.Leaves}
	again, err := c.Manifest()
	if err != nil {
		return nil, decision.Errorf(decision.Malformed, "the manifest: %v", err)
	}
	// check: NotCanonical: fields that are unknown, repeated or spelt differently are read differently by others
	if !bytes.Equal(again, text) {
		return nil, decision.Errorf(decision.NotCanonical, "the manifest is not written as one is: unknown, repeated, reordered or differently spelt fields, or white space")
	}
	// check: Tampered: a root over other leaves would vouch for these
	if rootOf(c.Leaves) != c.Root {
		return nil, decision.Errorf(decision.Tampered, "the leaves have root %.16s…, the manifest says %.16s…", rootOf(c.Leaves), c.Root)
	}
	return c, nil
}

func hexOf(h digest) string { return hex.EncodeToString(h[:]) }

func parseHash(text string) (h digest, err error) {
	raw, err := hex.DecodeString(text)
	// check: Malformed: one hash has one spelling
	if err != nil || len(raw) != len(h) || hex.EncodeToString(raw) != text {
		return h, decision.Errorf(decision.Malformed, "%.80q is not 64 lower-case hex digits", text)
	}
	return digest(raw), nil
}

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
