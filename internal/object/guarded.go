package object

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// SameGuarded reports whether an update leaves the guarded content of an object
// of the given kind as it was: its spec and, for an SSHHost, the host-class
// label too. Such an update is exempt from judgement, so that an object whose
// signature expired can still be labelled, released and deleted. When in doubt
// the answer is false, and the object is judged.
func SameGuarded(kind string, oldJSON, newJSON []byte) bool {
	was, wasErr := guarded(kind, oldJSON)
	is, isErr := guarded(kind, newJSON)
	return wasErr == nil && isErr == nil && reflect.DeepEqual(was, is)
}

// guarded returns the guarded content as plain values.
func guarded(kind string, raw []byte) ([]any, error) {
	m, _, err := parseAny(raw)
	if err != nil {
		return nil, err
	}
	var top fields
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, err
	}
	var spec any
	decoder := json.NewDecoder(bytes.NewReader(top["spec"]))
	decoder.UseNumber() // float64 would make large numbers equal that are not
	if err := decoder.Decode(&spec); err != nil {
		return nil, err
	}
	content := []any{m.Kind, spec}
	switch kind {
	case KindJoinProfile, KindTrustPolicy:
	case KindHost:
		class, ok := m.Labels[HostClassLabel]
		content = append(content, class, ok)
	default:
		return nil, malformed("kind", "no rule says what is guarded in a %.60q", kind)
	}
	return content, nil
}
