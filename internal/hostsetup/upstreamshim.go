package hostsetup

import (
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// UnheldByUpstreamShim says what of a policy holds at admission and at the relay only where hosts have
// karpenter-provider-ssh's own shim (docs/divergences.md).
func UnheldByUpstreamShim(p *trustpolicy.Policy) []Note {
	var notes []Note
	for _, signer := range p.Signers {
		if signer.Scoped() && !p.Revoked(signer.Key) {
			notes = append(notes, unheldScope(signer))
		}
	}
	return append(notes, unheldThresholds(p)...)
}

func unheldScope(s trustpolicy.Signer) Note {
	return warning("signer %q has a narrower scope than everything: karpenter-provider-ssh's shim does not hold it to that", s.Name)
}

func unheldThresholds(p *trustpolicy.Policy) []Note {
	var notes []Note
	for _, phase := range script.Phases() {
		if k := p.Thresholds[phase]; k > 1 {
			notes = append(notes, warning("%s needs %d signers: karpenter-provider-ssh's shim is content with one", phase, k))
		}
	}
	return notes
}
