package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"math"
	"slices"
	"strconv"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// MaxValues bounds the values of a document. In honest ones a value takes sixteen bytes and
// more, so that 8 MiB, the bound of the format, stay below it; but a few kilobytes of gzip
// make millions of empty ones, and the hash is made before a signature is judged.
const MaxValues = 1 << 19

// Hash is the canonical hash of a JSON document, as 64 hex digits. The error carries
// Malformed or TooLarge.
func Hash(document []byte) (string, error) {
	// check: Malformed: what is no JSON is read by each reader as it likes
	if !json.Valid(document) {
		return "", decision.Errorf(decision.Malformed, "not JSON")
	}
	h := hasher{scanner: scanner{text: document}, buffer: sha256.New(), left: MaxValues}
	sum, err := h.value(root)
	return hex.EncodeToString(sum[:]), err
}

// sum is a SHA-256. Sums order as their hex digits do.
type sum = [sha256.Size]byte

// place says where a value stands, as far as leaving out .status.conditions needs it.
type place int

const (
	elsewhere place = iota
	root
	status
)

// member is a field of an object: the hash of its name and that of its value.
type member struct{ name, value sum }

type hasher struct {
	scanner
	buffer hash.Hash
	left   int // values that may still come
}

func (h *hasher) value(at place) (sum, error) {
	h.left--
	// check: TooLarge: small gzip makes millions of values, each of which is hashed and sorted
	if h.left < 0 {
		return sum{}, decision.Errorf(decision.TooLarge, "more than %d values", MaxValues)
	}
	switch token := h.token(); token[0] {
	case '{':
		return h.object(at)
	case '[':
		return h.list(at)
	case '"':
		return sha256.Sum256(unquote(token)), nil
	case 't', 'f', 'n':
		return sha256.Sum256(token), nil
	default:
		return number(token)
	}
}

func number(token []byte) (sum, error) {
	f, err := strconv.ParseFloat(string(token), 64)
	// check: Malformed: a number beyond float64 has no value that readers agree on
	if err != nil {
		return sum{}, decision.Errorf(decision.Malformed, "not JSON that has a hash: a number is too large")
	}
	var bits [8]byte
	binary.BigEndian.PutUint64(bits[:], math.Float64bits(f))
	return sha256.Sum256(bits[:]), nil
}

// list hashes the elements in the order of their hashes, so that theirs does not count.
func (h *hasher) list(at place) (sum, error) {
	var elements []sum
	for h.more(']') {
		element, err := h.value(at)
		if err != nil {
			return sum{}, err
		}
		elements = append(elements, element)
	}
	slices.SortFunc(elements, func(a, b sum) int { return bytes.Compare(a[:], b[:]) })
	h.buffer.Reset()
	for i, element := range elements {
		h.write(i > 0, element)
	}
	return sum(h.buffer.Sum(nil)), nil
}

// object hashes the fields in the order of their names' hashes. Of a name that stands there twice the last one counts.
func (h *hasher) object(at place) (sum, error) {
	var members []member
	for h.more('}') {
		name := unquote(h.token())
		h.token() // the colon
		value, err := h.value(below(at, name))
		if err != nil {
			return sum{}, err
		}
		if !excluded(at, name) {
			members = append(members, member{sha256.Sum256(name), value})
		}
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.name[:], b.name[:]) })
	h.buffer.Reset()
	first := true
	for i, m := range members {
		if i+1 < len(members) && members[i+1].name == m.name {
			continue
		}
		h.write(!first, m.name)
		h.buffer.Write([]byte(":"))
		h.write(false, m.value)
		first = false
	}
	return sum(h.buffer.Sum(nil)), nil
}

// write adds a sum in hex, after a bar where another one stands before it.
func (h *hasher) write(bar bool, s sum) {
	var digits [1 + 2*sha256.Size]byte
	digits[0] = '|'
	hex.Encode(digits[1:], s[:])
	if bar {
		h.buffer.Write(digits[:])
		return
	}
	h.buffer.Write(digits[1:])
}

// below is the place of the value of a field. Lists do not count as a level.
func below(at place, name []byte) place {
	if at == root && string(name) == "status" {
		return status
	}
	return elsewhere
}

// excluded reports whether a field's path is .status.conditions: as two levels, or as one name with a dot in it.
func excluded(at place, name []byte) bool {
	return at == status && string(name) == "conditions" || at == root && string(name) == "status.conditions"
}
