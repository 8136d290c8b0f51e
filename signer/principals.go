package main

import (
	"regexp"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

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

// signerLine is one line of allowed_signers (docs/spec/allowed-signers.md).
func signerLine(s trustpolicy.Signer, forUpstreamShim bool) (string, error) {
	principals, err := principalsOf(s, forUpstreamShim)
	if err != nil {
		return "", err
	}
	options := `namespaces="kpssh"`
	if s.CertAuthority {
		options = "cert-authority," + options
	}
	return strings.Join(principals, ",") + " " + options + " " + s.Line, nil
}
