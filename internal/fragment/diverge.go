package fragment

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/fragment/specpath"
)

// pathOf is the name under which a field of a kind's spec is reported.
func pathOf(kind, field string) string {
	switch kind {
	case KindContainerProfile:
		return cmp.Or(specpath.Of(field), UnknownPath)
	case KindRules:
		if field == "rules" {
			return field
		}
		return UnknownPath
	default:
		return field
	}
}

// diverges names the parts of a stored spec that differ from the signed one, in the order
// of SpecPaths. What is empty at any depth counts as absent, and sets have no order: storage
// drops, adds and sorts such.
func diverges(kind string, stored, signed json.RawMessage) []string {
	was, is := fieldsOf(signed), fieldsOf(stored)
	differ := map[string]bool{}
	for _, fields := range []map[string]any{was, is} {
		for name := range fields {
			if !reflect.DeepEqual(was[name], is[name]) {
				differ[pathOf(kind, name)] = true
			}
		}
	}
	var names []string
	for _, name := range SpecPaths() {
		if kind == KindContainerProfile && differ[name] {
			names = append(names, name)
			delete(differ, name)
		}
	}
	return append(names, slices.Sorted(maps.Keys(differ))...)
}

// fieldsOf are the fields of a spec that are not empty.
func fieldsOf(spec json.RawMessage) map[string]any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(spec))
	decoder.UseNumber() // as float64, large numbers would be equal that are not
	if decoder.Decode(&value) != nil {
		return nil
	}
	return as[map[string]any](prune("", value))
}

// prune takes what is empty out of objects, at all depths, but where names are a person's own;
// there, and in lists, what is empty stays, as nil. Name is that of the field the value stands in.
func prune(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if value[key] = prune(key, field); value[key] == nil && !slices.Contains(ownNames(), name) {
				delete(value, key)
			}
		}
		if len(value) == 0 {
			return nil
		}
		return value
	case []any:
		for i, element := range value {
			value[i] = prune("", element)
		}
		if len(value) == 0 {
			return nil
		}
		if slices.Contains(sets(), name) {
			return asSet(value)
		}
		return value
	default:
		if empty(value) {
			return nil
		}
		return value
	}
}

// asSet sorts a list of strings, each once; any other list stays as it is.
func asSet(list []any) []any {
	texts := make([]string, len(list))
	for i, element := range list {
		text, ok := element.(string)
		if !ok {
			return list
		}
		texts[i] = text
	}
	slices.Sort(texts)
	set := make([]any, 0, len(texts))
	for _, text := range slices.Compact(texts) {
		set = append(set, text)
	}
	return set
}

// ownNames are the fields that map names which their author chose.
func ownNames() []string { return []string{"rulePolicies", "matchLabels", "headers", "state"} }

// sets are the lists whose order says nothing; kubescape's storage sorts them.
func sets() []string { return []string{"architectures", "capabilities", "syscalls", "processAllowed"} }
