package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/fragment/specpath"
)

// specChanges compares two profiles, field by field in the order of the format: lists by their entries,
// maps by their keys, all else as a whole.
func specChanges(was, is fragment.ProfileSpec) ([]bundleChange, error) {
	before, err := fieldsOf(was)
	if err != nil {
		return nil, err
	}
	after, err := fieldsOf(is)
	if err != nil {
		return nil, err
	}
	var all []bundleChange
	for _, path := range specpath.All() {
		for _, field := range path.Keys {
			a, b := entriesOf(before[field]), entriesOf(after[field])
			for _, entry := range gone(a, b) {
				all = append(all, bundleChange{"-", field, entry})
			}
			for _, entry := range gone(b, a) {
				all = append(all, bundleChange{"+", field, entry})
			}
		}
	}
	return all, nil
}

func fieldsOf(spec fragment.ProfileSpec) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("writing a profile as JSON: %v", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("reading a profile as JSON: %v", err)
	}
	return fields, nil
}

// entriesOf takes a value apart: a list into its elements, a map into its members; what is empty has none.
func entriesOf(value json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		var all []string
		for _, element := range list {
			all = append(all, plainJSON(element))
		}
		return all
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) == nil {
		var all []string
		for _, name := range sortedKeys(members) {
			all = append(all, name+": "+plainJSON(members[name]))
		}
		return all
	}
	if text := plainJSON(value); text != "" && text != `""` {
		return []string{text}
	}
	return nil
}

// plainJSON writes a value for people: without the escapes that JSON in HTML needs.
func plainJSON(value json.RawMessage) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	var v any
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil || encoder.Encode(v) != nil {
		return string(value)
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
