package ledger

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// maxName is the longest name of an object: a profile with a longer name than that has room for after
// the prefix has no record.
const maxName = 253

// Record remembers a profile that was read from storage, if it verifies in enforce terms by s and by
// what is remembered. One that does not changes nothing, and is no error.
func (k *Keeper) Record(ctx context.Context, s verify.Snapshot, p *object.JoinProfile) error {
	name := v1alpha1.LedgerProfilePrefix + p.Name
	if len(name) > maxName {
		return fmt.Errorf("the name %.80q... is too long to be remembered; give the profile one of at most %d characters", p.Name, maxName-len(v1alpha1.LedgerProfilePrefix))
	}
	s.Ledger = k
	used := ""
	err := k.change(ctx, name, func(known *v1alpha1.Ledger) (*v1alpha1.Ledger, error) {
		used = ""
		m, ok := verify.Recordable(s, p)
		if !ok {
			return nil, nil
		}
		was, numbered := k.Mark(p.Name)
		if numbered && was == m {
			return nil, nil
		}
		l := profileRecord(known, name, m)
		if follows(s, p.Name, was, numbered, m) != nil {
			// Only a reset lets it verify, and it counts once.
			reset, ok := s.Policy.ResetOf(p.Name, m.Serial, m.Digest)
			if !ok {
				return nil, nil
			}
			used = reset.ID()
			l.Spec.Profile.Reset = v1alpha1.ResetID(used)
		}
		return l, nil
	})
	if err != nil || used == "" {
		return err
	}
	k.alarm(ctx, "LedgerReset", fmt.Sprintf("the record of SSHJoinProfile/%.100s was lowered by the policy's reset %s", p.Name, used))
	return k.useReset(ctx, used)
}

// follows says why a version could not be recorded without a reset, or nil.
func follows(s verify.Snapshot, profile string, was ledger.Mark, numbered bool, m ledger.Mark) error {
	floor, exact := s.Policy.Floor(profile)
	if !exact {
		floor = 0
	}
	if numbered {
		return was.Next(m, floor)
	}
	return ledger.First(m, floor, exact)
}

// profileRecord is the record of a mark, made from the known one. It keeps the last reset: who lowers
// the number must name another.
func profileRecord(known *v1alpha1.Ledger, name string, m ledger.Mark) *v1alpha1.Ledger {
	l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.LedgerSpec{Profile: &v1alpha1.LedgerProfile{}}}
	if known != nil && known.Spec.Profile != nil {
		l = known.DeepCopy()
	}
	l.Spec.Profile.Serial, l.Spec.Profile.Digest = m.Serial, v1alpha1.SHA256Digest(m.Digest)
	return l
}

// useReset names a reset in the record of policies too, which outlives the profile's next reset.
func (k *Keeper) useReset(ctx context.Context, id string) error {
	return k.change(ctx, v1alpha1.LedgerPolicyName, func(known *v1alpha1.Ledger) (*v1alpha1.Ledger, error) {
		if known == nil || known.Spec.Policy == nil || policyOf(known).ResetUsed(id) {
			return nil, nil
		}
		return recordOf(known, policyOf(known).Use(id), known.Spec.Policy.RenderedSigners), nil
	})
}

// UnknownDigest stands for content that is not known: what has the serial of such a mark is refused.
func UnknownDigest() string { return "sha256:" + strings.Repeat("0", 64) }

// Ran remembers, in a ledger that was lost, the serial of a run that happened. Its content is not
// known any more, so that a profile needs a higher serial unless it was recorded before.
func (k *Keeper) Ran(ctx context.Context, profile string, serial int64) error {
	name := v1alpha1.LedgerProfilePrefix + profile
	if len(name) > maxName || serial < 0 || serial > ledger.MaxFirst {
		return nil
	}
	return k.change(ctx, name, func(known *v1alpha1.Ledger) (*v1alpha1.Ledger, error) {
		if m, ok := k.Mark(profile); ok && m.Serial >= serial {
			return nil, nil
		}
		return profileRecord(known, name, ledger.Mark{Serial: serial, Digest: UnknownDigest()}), nil
	})
}
