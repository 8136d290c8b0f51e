package object

import "github.com/hostwarrant/hostwarrant/internal/statement"

// HostStatement is what we read of a HostStatement object.
type HostStatement struct {
	Meta
	Statement  string
	Signatures []string
}

// Signed gives what is verified.
func (h *HostStatement) Signed() statement.Signed {
	return statement.Signed{Text: []byte(h.Statement), Signatures: h.Signatures}
}

// ParseHostStatement reads a HostStatement from JSON. The error carries Malformed.
func ParseHostStatement(raw []byte) (*HostStatement, error) {
	o, err := parse(raw, KindHostStatement)
	if err != nil {
		return nil, err
	}
	h := &HostStatement{Meta: o.Meta}
	if err := o.spec.getAll("spec", map[string]any{"statement": &h.Statement, "signatures": &h.Signatures}); err != nil {
		return nil, err
	}
	// check: Malformed: what says nothing, or what nobody signed, is a slip
	if h.Statement == "" || len(h.Signatures) == 0 {
		return nil, malformed("spec", "needs a statement and signatures").Try("hostwarrant statement object FILE prints the object of a signed statement")
	}
	return h, nil
}
