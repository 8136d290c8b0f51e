package trustpolicy

import (
	"maps"
	"slices"
)

// maxSerial is the largest number of 15 digits, which every reader of warrants takes.
const maxSerial = 999_999_999_999_999

func (d *document) floors(p *Policy) error {
	p.Floors = d.Floors
	for _, name := range slices.Sorted(maps.Keys(d.Floors)) {
		// check: PolicyMalformed: a pattern that is read in two ways leaves a profile without its floor
		if !pattern.MatchString(name) {
			return malformed("floors: %.80q is not a profile, or a prefix with *", name)
		}
		// check: PolicyMalformed: a number that hosts cannot read is no floor
		if n := d.Floors[name]; n < 0 || n > maxSerial {
			return malformed("floors.%s: %d is not from 0 to %d", name, n, int64(maxSerial))
		}
	}
	return nil
}

// Floor is the lowest serial that may be taken of a profile: the highest of the
// floors that match it, 0 where none does. Exact says that one of them names the
// profile itself, so that it is known although no run of it was seen.
func (p *Policy) Floor(profile string) (serial int64, exact bool) {
	for name, n := range p.Floors {
		if matches(name, profile) {
			serial, exact = max(serial, n), exact || name == profile
		}
	}
	return serial, exact
}
