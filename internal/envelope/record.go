package envelope

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// unknownValue stands in a record for a value that the host does not know.
const unknownValue = "-"

// maxDigits bounds a number on the wire: 0|[1-9][0-9]{0,14}.
const maxDigits = 15

// maxExit is the highest status a process can have.
const maxExit = 255

// recordFields reads "NAME: v1 k=v k=v …" with exactly the keys given, in order,
// single spaces, nothing before or after.
func recordFields(line, name string, keys []string) ([]string, error) {
	rest, ok := strings.CutPrefix(line, name+": v1 ")
	if !ok {
		return nil, malformed(name, "does not begin with %q", name+": v1 ")
	}
	words := strings.Split(rest, " ")
	if len(words) != len(keys) {
		return nil, malformed(name, "%d words, not %d", len(words), len(keys))
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		value, ok := strings.CutPrefix(words[i], key+"=")
		if !ok {
			return nil, malformed(name, "word %d is not %s=", i+1, key)
		}
		values[i] = value
	}
	return values, nil
}

// recordLine is the inverse of recordFields, without a line feed.
func recordLine(name string, keys, values []string) string {
	var out strings.Builder
	out.WriteString(name + ": v1")
	for i, key := range keys {
		fmt.Fprintf(&out, " %s=%s", key, values[i])
	}
	return out.String()
}

func parseNumber(s string) (int64, bool) {
	if s == "" || len(s) > maxDigits || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func parseExit(s string) (int, bool) {
	n, ok := parseNumber(s)
	return int(n), ok && n <= maxExit
}

func parseDigest(s string) ([32]byte, bool) {
	var sum [32]byte
	if len(s) != hex.EncodedLen(len(sum)) || !lowerHex(s) {
		return sum, false
	}
	n, err := hex.Decode(sum[:], []byte(s))
	return sum, err == nil && n == len(sum)
}

func parseBit(s string) (bool, bool) {
	return s == "1", s == "0" || s == "1"
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
