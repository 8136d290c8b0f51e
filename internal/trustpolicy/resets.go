package trustpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
)

// Reset lowers the mark of a profile, or of a fragment's slot, once.
type Reset struct {
	Profile string `yaml:"profile"`
	Slot    string `yaml:"slot"`
	Serial  int64  `yaml:"serial"`
	Digest  string `yaml:"digest"`
}

var contentDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (d *document) resets(p *Policy) error {
	p.Resets = d.Resets
	for i, r := range d.Resets {
		at := index("resets", i)
		// check: PolicyMalformed: a reset is for one thing; a pattern would lower all marks at once
		if (r.Profile == "") == (r.Slot == "") || r.Profile != "" && !dnsName.MatchString(r.Profile) {
			return malformed("%s names either one profile or one slot", at)
		}
		// check: PolicyMalformed: a slot that cannot be is a slip that would leave the real one as it is
		if r.Slot != "" && !slotName.MatchString(r.Slot) {
			return malformed("%s.slot: %.120q is not NAMESPACE/BUNDLE/CLASS/NAME, as in payments/redis/base/redis-base or //rules/base/defaults", at, r.Slot)
		}
		// check: PolicyMalformed: a number that no reader takes is no mark
		if r.Serial < 0 || r.Serial > maxSerial {
			return malformed("%s.serial: %d is not from 0 to %d", at, r.Serial, int64(maxSerial))
		}
		// check: PolicyMalformed: without its digest any other content of that serial would come back
		if !contentDigest.MatchString(r.Digest) {
			return malformed("%s.digest: %.80q is not sha256: and 64 lower-case hex digits", at, r.Digest)
		}
	}
	return nil
}

// slotName is ledger.Slot.String of what may be: namespace and bundle may be absent, and the class of
// every kind but ContainerProfile has a prefix.
var slotName = regexp.MustCompile(`^[a-z0-9-]*/[a-z0-9.-]*/((rules|bindings|seccomp)/)?[a-z0-9-]+/[a-z0-9.-]+$`)

// ID is what a ledger remembers of a reset that was used: the SHA-256, in hex, of
// profile (or slot), serial and digest, with a line feed between them.
func (r Reset) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", r.Profile+r.Slot, r.Serial, r.Digest))
	return hex.EncodeToString(sum[:])
}

// ResetOf gives the reset that lets exactly this version of the profile in.
func (p *Policy) ResetOf(profile string, serial int64, digest string) (Reset, bool) {
	i := slices.IndexFunc(p.Resets, func(r Reset) bool { return r.Profile == profile && r.Serial == serial && r.Digest == digest })
	if i < 0 || profile == "" {
		return Reset{}, false
	}
	return p.Resets[i], true
}

// SlotResetOf gives the reset that lets exactly this version of a fragment in. Slot is
// ledger.Slot.String of it, digest its canonical hash, 64 hex digits.
func (p *Policy) SlotResetOf(slot string, version int64, digest string) (Reset, bool) {
	i := slices.IndexFunc(p.Resets, func(r Reset) bool { return r.Slot == slot && r.Serial == version && r.Digest == "sha256:"+digest })
	if i < 0 || slot == "" {
		return Reset{}, false
	}
	return p.Resets[i], true
}
