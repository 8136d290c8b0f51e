package object

import "encoding/json"

// TrustPolicyName is the only name under which a TrustPolicy has effect.
const TrustPolicyName = "cluster"

// TrustPolicy is what we read of a TrustPolicy object.
type TrustPolicy struct {
	Meta
	Document   string
	Signatures []string
}

// ParseTrustPolicy reads a TrustPolicy from JSON. The error carries Malformed.
func ParseTrustPolicy(raw []byte) (*TrustPolicy, error) {
	m, spec, err := parse(raw, KindTrustPolicy)
	if err != nil {
		return nil, err
	}
	t := &TrustPolicy{Meta: m}
	var chain []json.RawMessage
	if err := spec.getAll("spec", map[string]any{"document": &t.Document, "signatures": &t.Signatures, "rootChain": &chain}); err != nil {
		return nil, err
	}
	// check: Malformed: a chain we do not walk yet must not look as if it had been walked
	if len(chain) > 0 {
		return nil, malformed("spec.rootChain", "root rotation is not supported by this version")
	}
	return t, nil
}
