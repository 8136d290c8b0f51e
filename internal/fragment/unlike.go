package fragment

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// unlike says why content is not as the format writes it. Again is what the types make of it.
func unlike(content, again []byte) error {
	if field := unknownField(content, again); field != "" {
		return unknown(field)
	}
	return decision.Errorf(decision.NotCanonical, "the content is not as the format writes it: repeated, reordered or otherwise spelled fields").
		Try("sign it with hostwarrant sign, which writes it so")
}

// unknown is not a sign of tampering: whoever signed may have newer types.
func unknown(field string) error {
	return decision.Errorf(decision.NotCanonical, "unknown field %.80q", field).At(field).
		Try("leave the field out, or use a release that knows it")
}

// unknownField is the path of a field that text has and again, which is the same by
// the types, has not; "" where there is none. An empty field may be left out.
func unknownField(text, again []byte) string {
	var was, is any
	if json.Unmarshal(text, &was) != nil || json.Unmarshal(again, &is) != nil {
		return ""
	}
	return missing(was, is)
}

// missing builds the path on the way back: on the way down, that of deep content would
// be copied at each level, and take time in the square of its depth.
func missing(was, is any) string {
	switch was := was.(type) {
	case map[string]any:
		is := as[map[string]any](is)
		for _, name := range slices.Sorted(maps.Keys(was)) {
			field, known := is[name]
			if !known && (!empty(was[name]) || folds(is, name)) {
				return name
			}
			if found := missing(was[name], field); known && found != "" {
				return name + separator(found) + found
			}
		}
	case []any:
		is := as[[]any](is)
		for i, element := range was[:min(len(was), len(is))] {
			if found := missing(element, is[i]); found != "" {
				return fmt.Sprintf("[%d]%s%s", i, separator(found), found)
			}
		}
	}
	return ""
}

// folds reports whether a name is that of a field in other letters: encoding/json reads it as that field.
func folds(fields map[string]any, name string) bool {
	for known := range fields {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// as gives a value as one of a type, the type's zero value where it is another.
func as[T any](value any) T {
	if of, ok := value.(T); ok {
		return of
	}
	var zero T
	return zero
}

// separator stands before a field, and not before an index.
func separator(path string) string {
	if path[0] == '[' {
		return ""
	}
	return "."
}

// empty reports whether a value is one that a type may leave out.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case float64:
		return value == 0
	case json.Number:
		return value == "0"
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}

// mistyped is the error of signed content that the types cannot take.
func mistyped(err error) error { return typeError(decision.Tampered, err) }

// misshapen is that of a stored object.
func misshapen(err error) error { return typeError(decision.Malformed, err).At("spec") }

func typeError(reason decision.Reason, err error) *decision.Error {
	if already, ok := errors.AsType[*decision.Error](err); ok {
		return already
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return decision.Errorf(reason, "%.80q has a value of another type (%.20s)", wrong.Field, wrong.Value)
	}
	return decision.Errorf(reason, "not of the types that the kind has: %.80v", err)
}
