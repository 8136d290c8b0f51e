package fragment

import (
	"bytes"
	"encoding/json"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// document is the content: what is hashed and signed, in the order in which it is written.
type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
}

type metadata struct {
	Labels map[string]string `json:"labels"`
	Name   string            `json:"name"`
}

// spec holds the typed spec of one kind.
type spec struct {
	profile *ProfileSpec
	rules   *RulesSpec
	other   Free
}

// typed is what the spec of a kind is decoded into.
func (s *spec) typed(kind string) any {
	switch kind {
	case KindContainerProfile:
		s.profile = &ProfileSpec{}
		return s.profile
	case KindRules:
		s.rules = &RulesSpec{}
		return s.rules
	default:
		return &s.other
	}
}

// normalise mends the two fields that the format writes in one way though its types have two.
func (d *document) normalise(s *spec) {
	if len(d.Metadata.Labels) == 0 {
		d.Metadata.Labels = nil
	}
	if s.profile != nil && s.profile.RulePolicies == nil {
		s.profile.RulePolicies = map[string]RulePolicy{}
	}
}

// encode decodes the spec by the types of its kind and writes it, and the document, as the format does.
func (d *document) encode() ([]byte, *spec, error) {
	var s spec
	into := s.typed(d.Kind)
	if d.Spec == nil {
		d.Spec = json.RawMessage("null")
	}
	if err := json.Unmarshal(d.Spec, into); err != nil {
		return nil, nil, err
	}
	d.normalise(&s)
	var err error
	if d.Spec, err = json.Marshal(into); err != nil {
		return nil, nil, err
	}
	content, err := json.Marshal(d)
	return content, &s, err
}

// decode reads signed content for a carrier. It comes after the signature was verified:
// what it refuses was signed so. The error carries KindMismatch, NotCanonical or Tampered.
func decode(content []byte, o *Object) (*document, *spec, error) {
	var d document
	// check: Tampered: text in place of a list, say, hashes alike where readers take another meaning
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, nil, mistyped(err)
	}
	// check: KindMismatch: content of one kind on a carrier of another would be read by the other's rules
	if d.Kind != o.Kind || d.APIVersion != o.APIVersion {
		return nil, nil, decision.Errorf(decision.KindMismatch, "the content is a %.80q of %.120q", d.Kind, d.APIVersion).At("kind")
	}
	again, s, err := d.encode()
	// check: Tampered: text in place of a list, say, hashes alike where readers take another meaning
	if err != nil {
		return nil, nil, mistyped(err)
	}
	// check: NotCanonical: what the types do not have, or fields that stand there twice, one reader takes and the other drops
	if !bytes.Equal(again, content) {
		return nil, nil, unlike(content, again)
	}
	return &d, s, nil
}

// build writes the content that a carrier without embedded content stands for. The error
// carries Malformed or NotCanonical.
func build(o *Object) ([]byte, *spec, error) {
	d := document{APIVersion: o.APIVersion, Kind: o.Kind, Metadata: metadata{o.Labels, o.Name}, Spec: o.Spec}
	content, s, err := d.encode()
	// check: Malformed: a field of another type must not be read as empty
	if err != nil {
		return nil, nil, misshapen(err)
	}
	field := unknownField(o.Spec, d.Spec)
	// check: NotCanonical: a field that the types do not have is carried along and signed by nobody
	if field != "" {
		return nil, nil, unknown("spec." + field)
	}
	return content, s, nil
}
