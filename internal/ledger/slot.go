package ledger

import (
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// Slot is the place that versions of one fragment take, one after the other.
type Slot struct{ Namespace, Bundle, Class, Name string }

// SlotMark is the highest version that was seen in a slot.
type SlotMark struct {
	Version int64
	// Digest is fragment.Fragment.Digest of it, Bytes the fragment.Fragment.Bytes that was seen first.
	Digest, Bytes string
}

// SlotOf is the slot of a fragment that lives in the namespace. Everything but the
// namespace is what was signed. Kinds share no slot: but for profiles, the class has
// the kind before it, with a "/" that no class has.
func SlotOf(namespace string, f *fragment.Fragment) Slot {
	class := f.Class
	if f.Kind != fragment.KindContainerProfile {
		class = strings.ToLower(f.Kind) + "/" + f.Class
	}
	return Slot{Namespace: namespace, Bundle: f.Bundle, Class: class, Name: f.Name}
}

// SlotMarkOf is the mark that a fragment would leave.
func SlotMarkOf(f *fragment.Fragment) SlotMark {
	return SlotMark{Version: f.Version, Digest: f.Digest, Bytes: f.Bytes}
}

// String is how a policy's resets name the slot.
func (s Slot) String() string {
	return strings.Join([]string{s.Namespace, s.Bundle, s.Class, s.Name}, "/")
}

const nextVersion = "sign the next version: hostwarrant sign -i FILE --key KEY --version N"

// Next says whether v may follow m. The error carries VersionRollback,
// VersionEquivocated or SerialJump.
func (m SlotMark) Next(v SlotMark) error {
	// check: VersionRollback: a part with a known fault must not come back
	if v.Version < m.Version {
		return decision.Errorf(decision.VersionRollback, "version %d is below %d, the highest that was seen", v.Version, m.Version).Try(nextVersion)
	}
	// check: VersionEquivocated: two contents under one version could be shown to different readers
	if v.Version == m.Version && v.Digest != m.Digest {
		return decision.Errorf(decision.VersionEquivocated, "version %d was seen with other content (%.12s, this is %.12s)", v.Version, m.Digest, v.Digest).Try(nextVersion)
	}
	// check: VersionEquivocated: the signature does not cover the order of lists, so that anybody could change it
	if v.Version == m.Version && v.Bytes != m.Bytes {
		return decision.Errorf(decision.VersionEquivocated, "version %d was seen with its lists in another order", v.Version).Try(nextVersion)
	}
	return stepsTo(v, m.Version)
}

// FirstInSlot says whether v may be the first version that is seen of a slot. The error
// carries SerialJump.
func FirstInSlot(v SlotMark) error {
	// check: SerialJump: a first number near the last leaves no room for honest ones
	if v.Version > MaxFirst {
		return decision.Errorf(decision.SerialJump, "version %d is above %d, and nothing is known of this fragment", v.Version, MaxFirst).
			Try("sign a lower version, or let the roots sign a reset for the slot")
	}
	return nil
}

func stepsTo(v SlotMark, known int64) error {
	// check: SerialJump: a slip or a stolen key must not use up the numbers
	if v.Version-known > MaxStep {
		return decision.Errorf(decision.SerialJump, "version %d is more than %d above %d, the highest that was seen", v.Version, MaxStep, known).Try(nextVersion)
	}
	return nil
}
