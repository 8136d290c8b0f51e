package ledger

import (
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// MaxStep is how far one version may lie above what is known of a profile, and
// MaxFirst the highest first version of one that nobody knows: a slip or a stolen key
// must not use up the numbers (the shim has the same two bounds).
const (
	MaxStep  = 1000
	MaxFirst = 1_000_000
)

const nextSerial = "sign the next serial: hostwarrant sign -i FILE --key KEY --serial N"

// Next says whether v may follow m. Named is the policy's floor where one names the
// profile itself, and 0 otherwise. The error carries SerialRollback, SerialReused or SerialJump.
func (m Mark) Next(v Mark, named int64) error {
	// check: SerialRollback: a signed version with a known fault must not come back
	if v.Serial < m.Serial {
		return decision.Errorf(decision.SerialRollback, "serial %d is below %d, the highest that was seen", v.Serial, m.Serial).Try(nextSerial)
	}
	// check: SerialReused: two contents under one serial could be shown to different hosts
	if v.Serial == m.Serial && v.Digest != m.Digest {
		return decision.Errorf(decision.SerialReused, "serial %d was seen with other scripts (%.19s, these are %.19s)", v.Serial, m.Digest, v.Digest).Try(nextSerial)
	}
	return jump(v.Serial, max(m.Serial, named))
}

// First says whether v may be the first version that is seen of a profile. Named is
// the policy's floor, and exact says that one names the profile itself. The error
// carries SerialJump.
func First(v Mark, named int64, exact bool) error {
	if exact {
		return jump(v.Serial, named)
	}
	// check: SerialJump: a first number near the last leaves no room for honest ones
	if v.Serial > MaxFirst {
		return decision.Errorf(decision.SerialJump, "serial %d is above %d, and nothing is known of this profile", v.Serial, MaxFirst).
			Try("sign a lower serial, or give the profile a floor in the trust policy")
	}
	return nil
}

func jump(serial, known int64) error {
	// check: SerialJump: a slip or a stolen key must not use up the numbers
	if serial > known+MaxStep {
		return decision.Errorf(decision.SerialJump, "serial %d is more than %d above %d, which is known of this profile", serial, MaxStep, known).
			Try(nextSerial)
	}
	return nil
}
