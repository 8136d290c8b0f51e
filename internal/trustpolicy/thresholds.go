package trustpolicy

import (
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

func (d *document) thresholds(p *Policy) error {
	p.Thresholds = map[script.Phase]int{}
	for _, phase := range script.Phases() {
		p.Thresholds[phase] = 1
	}
	for name, k := range d.JoinProfiles.Thresholds {
		phase := script.Phase(name)
		// check: PolicyMalformed: a misspelt phase would leave the real one at 1
		if !phase.Known() {
			return malformed("joinProfiles.thresholds: %.40q is not a phase", name)
		}
		keys := p.distinctKeys(phase)
		// check: PolicyMalformed: 0 would mean unsigned; more than there are keys could never be met
		if k < 1 || k > keys {
			return malformed("joinProfiles.thresholds.%s is %d, not 1 to %d, the number of distinct signer keys for that phase", name, k, keys)
		}
		p.Thresholds[phase] = k
	}
	return nil
}

// distinctKeys counts the keys that may sign a phase of some profile. An
// authority counts once, however many keys it certifies.
func (p *Policy) distinctKeys(phase script.Phase) int {
	var keys []string
	for _, s := range p.Signers {
		if (len(s.Phases) == 0 || slices.Contains(s.Phases, phase)) && !slices.Contains(keys, s.Line) {
			keys = append(keys, s.Line)
		}
	}
	return len(keys)
}
