package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// Slot is what the versions of a fragment are counted by, all of it taken from the signed content
// but the namespace. Rules and bindings take effect in the whole cluster, wherever they are stored,
// so that theirs have no namespace. Class has a prefix for every kind but ContainerProfile
// ("rules/base"), so that two kinds never share a slot; Bundle is "" where the content names none.
type Slot struct{ Namespace, Bundle, Class, Name string }

// String is how the resets of a trust policy name the slot.
func (s Slot) String() string { return s.Namespace + "/" + s.Bundle + "/" + s.Class + "/" + s.Name }

// Key is the slot among those of one namespace and bundle.
func (s Slot) Key() string { return s.Class + "/" + s.Name }

// SlotOf is the slot of a fragment that lives in the namespace.
func SlotOf(namespace string, f *fragment.Fragment) Slot {
	switch f.Kind {
	case fragment.KindContainerProfile:
		return Slot{Namespace: namespace, Bundle: f.Bundle, Class: f.Class, Name: f.Name}
	case fragment.KindSeccompProfile:
		return Slot{Namespace: namespace, Bundle: f.Bundle, Class: "seccomp/" + f.Class, Name: f.Name}
	case fragment.KindRuleBinding:
		return Slot{Bundle: f.Bundle, Class: "bindings/" + f.Class, Name: f.Name}
	default:
		return Slot{Bundle: f.Bundle, Class: strings.ToLower(f.Kind) + "/" + f.Class, Name: f.Name}
	}
}

// SlotMarkOf is the mark that a fragment would leave.
func SlotMarkOf(f *fragment.Fragment) SlotMark {
	return SlotMark{Version: f.Version, Digest: f.Digest, Bytes: f.Bytes}
}

// MaxSlots is how many slots one record holds.
const MaxSlots = 2000

// SlotsName is the name of a record of the slots of a namespace and bundle, of which there may be
// several: n counts them from 0.
func SlotsName(namespace, bundle string, n int) string {
	sum := sha256.Sum256([]byte(namespace + "/" + bundle))
	return "slots." + hex.EncodeToString(sum[:16]) + "." + strconv.Itoa(n)
}

// SlotMark is the highest version of a slot that was seen stored and verified.
type SlotMark struct {
	Version int64
	// Digest is fragment.Fragment.Digest of it.
	Digest string
	// Bytes is fragment.Fragment.Bytes of the form in which that digest was seen first: the digest
	// leaves the order of lists out, which decides what some of them mean.
	Bytes string
}

const nextVersion = "sign the next version: hostwarrant sign -i FILE --key KEY --version N"

// Next says whether v may follow m in a slot. The error carries VersionRollback,
// VersionEquivocated or SerialJump.
func (m SlotMark) Next(v SlotMark) error {
	// check: VersionRollback: a signed version that was replaced for a reason must not come back
	if v.Version < m.Version {
		return decision.Errorf(decision.VersionRollback, "version %d is below %d, the highest that was seen", v.Version, m.Version).Try(nextVersion)
	}
	// check: VersionEquivocated: two contents under one version could be shown to different readers
	if v.Version == m.Version && v.Digest != m.Digest {
		return decision.Errorf(decision.VersionEquivocated, "version %d was seen with other content (%.12s, this is %.12s)", v.Version, m.Digest, v.Digest).Try(nextVersion)
	}
	// check: VersionEquivocated: the signature holds for any order of the arguments of a program
	if v.Version == m.Version && v.Bytes != m.Bytes {
		return decision.Errorf(decision.VersionEquivocated, "version %d was seen first with its lists in another order, which no signature covers", v.Version).
			Try("apply the file as its signer gave it away, or " + nextVersion)
	}
	return slotJump(v.Version, m.Version, MaxStep, "which was seen")
}

// FirstSlot says whether v may be the first version that is seen in a slot. The error carries SerialJump.
func FirstSlot(v SlotMark) error {
	return slotJump(v.Version, 0, MaxFirst, "and nothing is known of it")
}

func slotJump(version, known, step int64, what string) error {
	// check: SerialJump: a slip or a stolen key must not use up the numbers
	if version-known > step {
		return decision.Errorf(decision.SerialJump, "version %d is more than %d above %d, %s", version, step, known, what).
			Try("sign a lower version, or let the trust policy reset this slot to it")
	}
	return nil
}
