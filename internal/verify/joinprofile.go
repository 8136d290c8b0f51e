package verify

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// JoinProfile judges a whole SSHJoinProfile: every phase that has a script.
func JoinProfile(s Snapshot, p *object.JoinProfile) decision.Decision {
	d := decision.Admit(p.Kind, p.Name, fmt.Sprintf("%d phases vouched for", len(p.Phases())))
	for _, phase := range p.Phases() {
		one := Phase(s, p, phase)
		if !one.Allowed() {
			return one
		}
		d.Warnings = append(d.Warnings, one.Warnings...)
	}
	return d
}

// Phase judges one phase of an SSHJoinProfile, as the relay does before it runs it.
func Phase(s Snapshot, p *object.JoinProfile, phase script.Phase) decision.Decision {
	warnings, err := judgePhase(s, p, phase)
	if err != nil {
		return decision.From(err).At(string(phase)).Denied(p.Kind, p.Name)
	}
	d := decision.Admit(p.Kind, p.Name, "vouched for")
	d.Where, d.Warnings = string(phase), warnings
	return d
}

func judgePhase(s Snapshot, p *object.JoinProfile, phase script.Phase) (warnings []string, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	text := []byte(p.Scripts[phase])
	// check: Malformed: a phase that does not exist must not be taken for an empty script
	if len(text) == 0 {
		return nil, decision.Errorf(decision.Malformed, "the profile has no such script")
	}
	if err := script.Check(text); err != nil {
		return nil, err
	}
	if err := noWarrant(s, text); err != nil {
		return nil, err
	}
	// check: Unsigned: whoever can write the object must not be able to run code as root
	if p.Signatures[phase] == "" {
		return nil, decision.Errorf(decision.Unsigned, "the script has no signature").Try("hostwarrant sign -i FILE --key KEY")
	}
	signatures, err := sshsig.ParseAll([]byte(p.Signatures[phase]))
	if err != nil {
		return nil, decision.From(err).Try("sign again: hostwarrant sign -i FILE --key KEY")
	}
	if err := vouched(s, p, phase, signatures); err != nil {
		return nil, err
	}
	if sshsig.IsSecurityKey(signatures[0].PublicKey()) {
		warnings = append(warnings, fmt.Sprintf("%s: the first signature is by a security key, which karpenter-provider-ssh cannot verify; put another signature first", phase))
	}
	return warnings, nil
}

// noWarrant refuses what this version cannot enforce. Warrants are not read yet.
func noWarrant(s Snapshot, text []byte) error {
	// check: WarrantMissing: a policy that demands warrants must not be met without them
	if s.Policy.RequireWarrant {
		return decision.Errorf(decision.WarrantMissing, "the policy requires a warrant, and this version cannot read one").
			Try("set joinProfiles.requireWarrant: false until it can")
	}
	// check: WarrantMalformed: limits that a script states must not be ignored
	if script.HasWarrantLine(text) {
		return decision.Errorf(decision.WarrantMalformed, "the script has #warrant: lines, and this version cannot read them")
	}
	return nil
}
