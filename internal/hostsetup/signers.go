package hostsetup

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Place says which hosts a file is for. What is left empty is not known of them.
type Place struct {
	Class, Cluster string
	// Hosts are fingerprints of the keys of the one host that it is for.
	Hosts []string
	// ForUpstreamShim is for hosts with karpenter-provider-ssh's own shim.
	ForUpstreamShim bool
}

// AllowedSigners are the lines of the signers that count on the hosts of a place
// (docs/spec/allowed-signers.md), and who is left out. The error carries
// PolicyMalformed.
func AllowedSigners(p *trustpolicy.Policy, now time.Time, at Place) (lines []string, notes []Note, err error) {
	for _, signer := range p.Signers {
		expired := !signer.ValidBefore.IsZero() && !now.Before(signer.ValidBefore)
		if expired || p.Revoked(signer.Key) {
			notes = append(notes, note("signer %q is revoked or past its term, left out", signer.Name))
			continue
		}
		if !signer.MayReach(at.Class, at.Cluster, at.Hosts) {
			notes = append(notes, note("signer %q is for other hosts (%s), left out", signer.Name, strings.Join(signer.Targets, ", ")))
			continue
		}
		line, err := signerLine(signer, at.ForUpstreamShim)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !signer.Scoped():
		case at.ForUpstreamShim:
			notes = append(notes, unheldScope(signer))
		default:
			notes = append(notes, warning("signer %q has a narrower scope than everything: hosts refuse its scripts without a warrant", signer.Name))
		}
		lines = append(lines, line)
	}
	if at.ForUpstreamShim {
		notes = append(notes, unheldThresholds(p)...)
	}
	return lines, notes, nil
}

// renderable is all that a principal, or a name in a host's file, may consist of.
var renderable = regexp.MustCompile(`^[a-z0-9.*-]+$`)

// principalsOf renders a signer's scope as OpenSSH principals. kpssh, which vouches for any script, is
// only for a signer whose scope is everything, or where the file is for upstream's shim, which asks for
// no other.
func principalsOf(s trustpolicy.Signer, forUpstreamShim bool) ([]string, error) {
	phases, profiles := s.Phases, s.Profiles
	if len(phases) == 0 {
		phases = script.Phases()
	}
	if len(profiles) == 0 {
		profiles = []string{"*"}
	}
	var all []string
	for _, phase := range phases {
		for _, profile := range profiles {
			// check: PolicyMalformed: a comma, quote or space of a policy must not become part of the file's own grammar
			if !renderable.MatchString(string(phase)) || !renderable.MatchString(profile) {
				return nil, decision.Errorf(decision.PolicyMalformed, "%.80q of signer %.40q cannot be a principal", profile, s.Name)
			}
			all = append(all, string(phase)+"@"+profile)
		}
	}
	if !s.Scoped() || forUpstreamShim {
		all = append(all, script.Namespace)
	}
	return all, nil
}

// signerLine is one line of allowed_signers.
func signerLine(s trustpolicy.Signer, forUpstreamShim bool) (string, error) {
	principals, err := principalsOf(s, forUpstreamShim)
	if err != nil {
		return "", err
	}
	options := fmt.Sprintf("namespaces=%q", script.Namespace)
	if s.CertAuthority {
		options = "cert-authority," + options
	}
	return strings.Join(principals, ",") + " " + options + " " + s.Line, nil
}
