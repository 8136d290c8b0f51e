package object

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzTake holds our own reader of JSON objects against encoding/json's: what it takes
// apart is what that one reads, and it refuses nothing but names that stand there twice.
func FuzzTake(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, ` { "a" : [ 1 , {"b":null} , "x\"}" ] , "c" : {} } `, `{"sp\u0065c":{"a":"\ud83d\ude00"},"b":-1.5e3}`, `{"a":{"b":1,"b":2}}`,
		`{"a":[[],[{}],{"x":[{"y":1,"y":1}]}]}`, "{\"\xff\":1,\"\xfe\":2}", `{"":"","\\":"\\","\"":"\\\""}`, `{"a":true,"b":false,"c":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := bytes.TrimSpace(raw)
		if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
			t.Skip()
		}
		got, err := take(text)
		if twice := repeats(text); twice != (err != nil) {
			t.Fatalf("%q: a name twice: %v, but %v", text, twice, err)
		}
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %d fields, want %d", text, len(got), len(want))
		}
		for name, value := range want {
			if !reflect.DeepEqual(plainly(t, got[name]), plainly(t, value)) {
				t.Fatalf("%q: %q is %q, want %q", text, name, got[name], value)
			}
		}
		if !same(text, text, 1) || !sameObjects(text, append([]byte(" "), text...), 1) {
			t.Fatalf("%q differs from itself", text)
		}
	})
}

func plainly(t *testing.T, raw []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

// repeats asks the token reader whether some object has a name twice.
func repeats(text []byte) bool {
	type frame struct {
		names map[string]bool // nil in a list
		value bool            // the next token is a value
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var stack []*frame
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		var top *frame
		if len(stack) > 0 {
			top = stack[len(stack)-1]
		}
		if name, ok := token.(string); ok && top != nil && top.names != nil && !top.value {
			if top.names[name] {
				return true
			}
			top.names[name], top.value = true, true
			continue
		}
		if top != nil {
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, &frame{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, &frame{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}
