package trustpolicy

import "regexp"

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
