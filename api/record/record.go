// Package record reads Ledger objects as what the trust core compares with.
//
// It stands apart from the types, so that whoever imports those gets no more than types, and
// serves webhook, controller and relay alike: a field that one of them forgot would be a rollback
// that it does not see.
package record

import (
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// Policy is what a record remembers of trust policies and roots; nothing for nil.
func Policy(l *v1alpha1.LedgerPolicy) ledger.Policy {
	if l == nil {
		return ledger.Policy{}
	}
	p := ledger.Policy{
		Roots: []byte(l.Roots), AnchorDigest: string(l.AnchorDigest), RootVersion: int(l.RootVersion), RootDigest: string(l.RootDigest),
		Version: int(l.Version), Digest: string(l.Digest),
	}
	for _, id := range l.ResetsUsed {
		p.ResetsUsed = append(p.ResetsUsed, string(id))
	}
	return p
}
