package main

import (
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// principalsOf renders a signer's scope as OpenSSH principals. kpssh, which vouches for any script, is
// only for a signer whose scope is everything.
func principalsOf(s trustpolicy.Signer) []string {
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
			all = append(all, string(phase)+"@"+profile)
		}
	}
	if len(s.Phases) == 0 && len(s.Profiles) == 0 {
		all = append(all, script.Namespace)
	}
	return all
}
