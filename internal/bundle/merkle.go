package bundle

import (
	"crypto/sha256"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// The words that keep hashes of leaves, nodes and nothing apart.
const (
	leafWord  = "kubescape-bundle-leaf"
	emptyWord = "kubescape-bundle-empty"
	nodeWord  = "\x01"
)

type digest = [sha256.Size]byte

// Step is one level of the way from a leaf to the root: the hash beside it, and on which side.
type Step struct {
	Side Side   `json:"side"`
	Hash string `json:"hash"`
}

// Side is where a Step's hash stands.
type Side string

// The sides.
const (
	Left  Side = "left"
	Right Side = "right"
)

// maxSteps is more than any tree has that fits into memory.
const maxSteps = 64

func (l Leaf) hash() digest {
	return sha256.Sum256([]byte(strings.Join([]string{leafWord, l.Class, l.Signer, l.Digest}, "\x00")))
}

func node(left, right digest) digest {
	return sha256.Sum256([]byte(nodeWord + string(left[:]) + string(right[:])))
}

// rootOf is the root over the leaves in their order.
func rootOf(leaves []Leaf) string {
	if len(leaves) == 0 {
		return hexOf(sha256.Sum256([]byte(emptyWord)))
	}
	level := hashes(leaves)
	for len(level) > 1 {
		level = above(level)
	}
	return hexOf(level[0])
}

func hashes(leaves []Leaf) []digest {
	level := make([]digest, len(leaves))
	for i, leaf := range leaves {
		level[i] = leaf.hash()
	}
	return level
}

// above is the next level; the last node of an odd one goes up as it is.
func above(level []digest) []digest {
	up := make([]digest, 0, (len(level)+1)/2)
	for i := 0; i+1 < len(level); i += 2 {
		up = append(up, node(level[i], level[i+1]))
	}
	if len(level)%2 == 1 {
		up = append(up, level[len(level)-1])
	}
	return up
}

// Proof shows that a leaf, by its index, is under the root; nil where there is no such leaf.
func (c *Composite) Proof(leaf int) []Step {
	if leaf < 0 || leaf >= len(c.Leaves) {
		return nil
	}
	steps := []Step{}
	level := hashes(c.Leaves)
	for ; len(level) > 1; level = above(level) {
		switch {
		case leaf%2 == 1:
			steps = append(steps, Step{Left, hexOf(level[leaf-1])})
		case leaf+1 < len(level):
			steps = append(steps, Step{Right, hexOf(level[leaf+1])})
		}
		leaf /= 2
	}
	return steps
}

// VerifyProof reports whether the proof leads from the leaf to the root. The error
// carries Tampered, Malformed or TooLarge.
func VerifyProof(root string, leaf Leaf, proof []Step) error {
	// check: TooLarge: a proof is work that its giver chooses
	if len(proof) > maxSteps {
		return decision.Errorf(decision.TooLarge, "the proof has %d steps, more than %d", len(proof), maxSteps)
	}
	// check: Malformed: with a NUL inside, the hash of one leaf is that of another
	if strings.ContainsRune(leaf.Class+leaf.Signer+leaf.Digest, 0) {
		return decision.Errorf(decision.Malformed, "class, signer or digest of the leaf has a NUL")
	}
	at := leaf.hash()
	for i, step := range proof {
		beside, err := parseHash(step.Hash)
		if err != nil {
			return decision.From(err).At(indexed("proof", i))
		}
		// check: Malformed: a step that stands on no side would be taken for one or the other
		if step.Side != Left && step.Side != Right {
			return decision.Errorf(decision.Malformed, "side %.20q is neither left nor right", step.Side).At(indexed("proof", i))
		}
		if step.Side == Left {
			at = node(beside, at)
		} else {
			at = node(at, beside)
		}
	}
	// check: Tampered: a fragment that is not under the root is no member, whatever is said of it
	if hexOf(at) != root {
		return decision.Errorf(decision.Tampered, "the proof leads to root %.16s…, not to %.16s…", hexOf(at), root)
	}
	return nil
}
