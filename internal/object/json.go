package object

import (
	"encoding/json"
	"maps"
	"slices"

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
	where := name
	if path != "" {
		where = path + "." + name
	}
	// check: Malformed: a field of another type must not be read as empty
	if err := json.Unmarshal(raw, v); err != nil {
		return malformed(where, "not of the type this field has")
	}
	return nil
}

// getAll decodes several fields and stops at the first error, by name.
func (f fields) getAll(path string, into map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if err := f.get(path, name, into[name]); err != nil {
			return err
		}
	}
	return nil
}
