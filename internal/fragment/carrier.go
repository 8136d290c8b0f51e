package fragment

import (
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// Parse reads a carrier of any kind from JSON. The error carries Malformed or TooLarge.
func Parse(raw []byte) (*Object, error) {
	// check: TooLarge: work before a signature is judged is bounded
	if len(raw) > MaxContent {
		return nil, decision.Errorf(decision.TooLarge, "the object has %d bytes, more than %d", len(raw), MaxContent)
	}
	meta, spec, err := object.ParseSpec(raw)
	if err != nil {
		return nil, err
	}
	return &Object{Meta: meta, Spec: spec}, nil
}

// check refuses a carrier of a kind, or of a version of it, whose types are not known.
func (o *Object) check() error {
	// check: KindMismatch: content of an unknown kind would be verified by the rules of another
	if o.APIVersion == "" || o.APIVersion != APIVersionOf(o.Kind) {
		return decision.Errorf(decision.KindMismatch, "%.80q of %.120q is not signed in this format", o.Kind, o.APIVersion).At("kind")
	}
	return nil
}
