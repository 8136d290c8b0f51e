package fragment

import (
	"reflect"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/fragment/specpath"
)

// SpecPaths are the parts of a ContainerProfile's spec that a class may allow.
func SpecPaths() []string { return specpath.Names() }

// Set are the SpecPaths that the spec sets, in their order: whatever is not empty.
func (p *ProfileSpec) Set() []string {
	set := map[string]bool{}
	spec := reflect.ValueOf(*p)
	for _, field := range reflect.VisibleFields(spec.Type()) {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !unset(spec.FieldByIndex(field.Index)) {
			set[specpath.Of(key)] = true
		}
	}
	return slices.DeleteFunc(SpecPaths(), func(name string) bool { return !set[name] })
}

// unset reports whether a field is empty. A struct is only where nothing in it differs from its zero value.
func unset(field reflect.Value) bool {
	switch field.Kind() {
	case reflect.Slice, reflect.Map:
		return field.Len() == 0
	default:
		return field.IsZero()
	}
}
