package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// Key is what a verdict about a carrier depends on: its guarded content, and the policy
// that was asked. Versions are no part of it: they are judged each time (Compose).
type Key struct {
	content [sha256.Size]byte
	policy  string
}

// KeyOf gives the key of a carrier under the policy of that digest.
func KeyOf(o *fragment.Object, policyDigest string) Key {
	h := sha256.New()
	for _, text := range []string{o.APIVersion, o.Kind, o.Namespace, o.Name} {
		writeText(h, text)
	}
	writeMap(h, o.Labels, func(string) bool { return true })
	writeMap(h, o.Annotations, guarded)
	writeText(h, string(o.Spec))
	return Key{content: [sha256.Size]byte(h.Sum(nil)), policy: policyDigest}
}

// guarded reports whether an annotation is part of what is judged.
func guarded(annotation string) bool {
	return strings.HasPrefix(annotation, "signature.kubescape.io/") || annotation == "kubescape.io/managed-by"
}

// writeText writes a text and its length, so that no two lists of texts are written alike.
func writeText(h hash.Hash, text string) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
	h.Write([]byte(text))
}

func writeMap(h hash.Hash, of map[string]string, counts func(string) bool) {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(key string) bool { return !counts(key) })
	for _, key := range keys {
		writeText(h, key)
		writeText(h, of[key])
	}
	writeText(h, "") // no key is empty: here the map ends
}

// Verdicts remembers what was found of carriers, so that nothing that is as it was is
// verified again. It keeps at most twice its limit, and all that was asked for among the
// last limit of them; many may ask at once. Its zero value remembers nothing.
type Verdicts struct {
	limit int

	mu         sync.Mutex
	young, old map[Key]Verified
}

// Verified is what was found of a carrier.
type Verified struct {
	Fragment *fragment.Fragment
	Refusal  *decision.Error
}

// NewVerdicts remembers at least limit verdicts.
func NewVerdicts(limit int) *Verdicts { return &Verdicts{limit: limit} }

// Of gives the verdict under the key, which verify makes where it is not known.
func (v *Verdicts) Of(key Key, verify func() Verified) Verified {
	found, ok := v.get(key)
	if !ok {
		found = verify()
	}
	v.put(key, found)
	return found
}

func (v *Verdicts) get(key Key) (Verified, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if found, ok := v.young[key]; ok {
		return found, true
	}
	found, ok := v.old[key]
	return found, ok
}

// put makes the key a young one. When there are as many as the limit, the young ones grow
// old, and the old ones are forgotten.
func (v *Verdicts) put(key Key, found Verified) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.young[key]; !ok && len(v.young) >= v.limit {
		v.young, v.old = nil, v.young
	}
	if v.young == nil {
		v.young = map[Key]Verified{}
	}
	v.young[key] = found
}
