package policyfile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// Hash is the canonical hash of a JSON document, as 64 hex digits: what a signature
// of the format covers. Array order is not part of it, nor is .status.conditions.
func Hash(document []byte) (string, error) {
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		return "", malformed("not JSON: %v", err)
	}
	return hash(v, ""), nil
}

func hash(value any, path string) string {
	switch v := value.(type) {
	case nil:
		return sum("null")
	case bool:
		if v {
			return sum("true")
		}
		return sum("false")
	case string:
		return sum(v)
	case float64:
		return sum(string(binary.BigEndian.AppendUint64(nil, math.Float64bits(v))))
	case []any:
		parts := make([]string, len(v))
		for i, element := range v {
			parts[i] = hash(element, path)
		}
		return join(parts)
	case map[string]any:
		var parts []string
		for key, element := range v {
			if inner := path + "." + key; inner != ".status.conditions" {
				parts = append(parts, sum(key)+":"+hash(element, inner))
			}
		}
		return join(parts)
	default:
		return "" // encoding/json makes no other type
	}
}

func join(parts []string) string {
	slices.Sort(parts)
	return sum(strings.Join(parts, "|"))
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}
