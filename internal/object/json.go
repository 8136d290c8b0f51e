package object

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// fields is a JSON object with exact, case-sensitive names.
type fields map[string]json.RawMessage

func malformed(where, format string, args ...any) *decision.Error {
	return decision.Errorf(decision.Malformed, format, args...).At(where)
}

// get decodes the field at path.name into v. A field that is absent or null
// leaves v alone, as the API server reads it.
func (f fields) get(path, name string, v any) error {
	raw, ok := f[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	// check: Malformed: a field of another type must not be read as empty
	if err := decode(raw, v); err != nil {
		return malformed(join(path, name), "not of the type this field has")
	}
	return nil
}

// decode is json.Unmarshal but that objects and lists of objects are taken apart in place.
func decode(raw json.RawMessage, v any) error {
	switch v := v.(type) {
	case *fields:
		// check: Malformed: a field of another type must not be read as empty
		if len(raw) == 0 || raw[0] != '{' {
			return malformed("", "no object")
		}
		var err error
		*v, err = take(raw)
		return err
	case *string:
		// check: Malformed: a field of another type must not be read as empty
		if len(raw) == 0 || raw[0] != '"' {
			return malformed("", "no text")
		}
		*v = spelt(raw)
		return nil
	default:
		return json.Unmarshal(raw, v)
	}
}

// getAll decodes several fields and stops at the first error, by name.
func (f fields) getAll(path string, into map[string]any) error {
	names := slices.Sorted(maps.Keys(into))
	for key := range f {
		folds := func(name string) bool { return key != name && strings.EqualFold(key, name) }
		// check: Malformed: "Spec" beside "spec" is one field to readers that fold case, and the other one counts there
		if i := slices.IndexFunc(names, folds); i >= 0 {
			return malformed(join(path, names[i]), "is written %.60q", key)
		}
	}
	for _, name := range names {
		if err := f.get(path, name, into[name]); err != nil {
			return err
		}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
