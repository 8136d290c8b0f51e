package fragment

import (
	"bytes"
	"encoding/json"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Free is JSON of no fixed shape, in the one spelling that the canonical hash tells
// apart: no white space, each name once, numbers as the float64 that is hashed. The
// order of names is kept.
type Free json.RawMessage

// MarshalJSON gives the text as it is, null where there is none.
func (f Free) MarshalJSON() ([]byte, error) { return json.RawMessage(f).MarshalJSON() }

// UnmarshalJSON writes the text anew. The error carries NotCanonical.
func (f *Free) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var out bytes.Buffer
	if err := respell(decoder, &out); err != nil {
		return err
	}
	*f = out.Bytes()
	return nil
}

func respell(in *json.Decoder, out *bytes.Buffer) error {
	token, err := in.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		return respellList(in, out)
	case json.Delim('{'):
		return respellObject(in, out)
	default:
		text, err := json.Marshal(token)
		out.Write(text)
		return err
	}
}

func respellList(in *json.Decoder, out *bytes.Buffer) error {
	out.WriteByte('[')
	for first := true; in.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if err := respell(in, out); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	_, err := in.Token()
	return err
}

func respellObject(in *json.Decoder, out *bytes.Buffer) error {
	out.WriteByte('{')
	seen := map[json.Token]bool{}
	for first := true; in.More(); first = false {
		name, err := in.Token()
		if err != nil {
			return err
		}
		// check: NotCanonical: the hash takes the last of two fields, other readers the first or both
		if seen[name] {
			return decision.Errorf(decision.NotCanonical, "the field %.60q stands there twice", name)
		}
		seen[name] = true
		if !first {
			out.WriteByte(',')
		}
		text, err := json.Marshal(name)
		if err != nil {
			return err
		}
		out.Write(append(text, ':'))
		if err := respell(in, out); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	_, err := in.Token()
	return err
}
