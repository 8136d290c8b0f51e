package snapshot

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

const kindLedger = "Ledger"

// readLedger reads a record; an unreadable one is an empty one.
func readLedger(u *unstructured.Unstructured) any {
	var l v1alpha1.Ledger
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &l); err != nil {
		return (*v1alpha1.LedgerSpec)(nil)
	}
	return &l.Spec
}

// Mark is the highest version of a profile that was seen stored and verified.
func (s *Store) Mark(profile string) (ledger.Mark, bool) {
	l, _ := s.ledger.get(v1alpha1.LedgerProfilePrefix + profile)
	if l == nil || l.Profile == nil {
		return ledger.Mark{}, false
	}
	return ledger.Mark{Serial: l.Profile.Serial, Digest: string(l.Profile.Digest)}, true
}

// ResetUsed reports whether a reset was applied: the record of policies names it or, until that is
// written too, a profile's own.
func (s *Store) ResetUsed(id string) bool {
	for _, l := range s.ledger.all() {
		if l == nil {
			continue
		}
		if l.Profile != nil && string(l.Profile.Reset) == id {
			return true
		}
		if l.Policy != nil && slices.Contains(l.Policy.ResetsUsed, v1alpha1.ResetID(id)) {
			return true
		}
	}
	return s.slots.resetUsed(id)
}
