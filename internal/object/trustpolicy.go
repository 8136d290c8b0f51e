package object

import (
	"strconv"

	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// TrustPolicyName is the only name under which a TrustPolicy has effect.
const TrustPolicyName = "cluster"

// TrustPolicy is what we read of a TrustPolicy object.
type TrustPolicy struct {
	Meta
	Document   string
	Signatures []string
	RootChain  []RootLink
}

// RootLink is one roots statement of spec.rootChain, with its signatures.
type RootLink struct {
	Document   string
	Signatures []string
}

// Signed gives what is verified.
func (t *TrustPolicy) Signed() trustpolicy.Signed {
	s := trustpolicy.Signed{Document: []byte(t.Document), Signatures: t.Signatures}
	for _, link := range t.RootChain {
		s.Chain = append(s.Chain, statement.Signed{Text: []byte(link.Document), Signatures: link.Signatures})
	}
	return s
}

// ParseTrustPolicy reads a TrustPolicy from JSON. The error carries Malformed.
func ParseTrustPolicy(raw []byte) (*TrustPolicy, error) {
	o, err := parse(raw, KindTrustPolicy)
	if err != nil {
		return nil, err
	}
	t := &TrustPolicy{Meta: o.Meta}
	var chain []fields
	if err := o.spec.getAll("spec", map[string]any{"document": &t.Document, "signatures": &t.Signatures, "rootChain": &chain}); err != nil {
		return nil, err
	}
	for i, f := range chain {
		at := "spec.rootChain[" + strconv.Itoa(i) + "]"
		var link RootLink
		if err := f.getAll(at, map[string]any{"document": &link.Document, "signatures": &link.Signatures}); err != nil {
			return nil, err
		}
		// check: Malformed: a link that says nothing, or that nobody signed, is a slip
		if link.Document == "" || len(link.Signatures) == 0 {
			return nil, malformed(at, "needs a document and signatures")
		}
		t.RootChain = append(t.RootChain, link)
	}
	return t, nil
}
