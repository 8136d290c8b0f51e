package object

import "encoding/json"

// ParseSpec reads an object of any kind: its metadata, and its spec as it is written,
// nil where there is none. The error carries Malformed.
func ParseSpec(raw []byte) (Meta, json.RawMessage, error) {
	o, err := parseAny(raw)
	return o.Meta, o.text, err
}
