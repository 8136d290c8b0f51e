package trustpolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// endsSoon is how long before its end a time in a policy is told.
const endsSoon = 30 * 24 * time.Hour

// Traps says in words what is well-formed in the policy and will surprise whoever relies on it: hosts, runs and
// signers that it names and refuses all the same, and times that end soon. Nothing is decided by it.
func (p *Policy) Traps(now time.Time) []string {
	if len(p.Signers) == 0 { // it is about fragments
		return nil
	}
	return slices.Concat(p.placeTraps(), p.classTraps(now), p.signerTraps(now), p.endings(now))
}

// placeTraps are what hosts fall into, whoever signs.
func (p *Policy) placeTraps() (traps []string) {
	const hosts = "joinProfiles.hosts."
	if len(p.Hosts.Namespaces) == 0 {
		return []string{hosts + "namespaces names none: every SSHHost and every HostRun is refused"}
	}
	if len(p.Hosts.Users) == 0 {
		traps = append(traps, hosts+"users names none: every SSHHost is refused")
	}
	if len(p.Hosts.Ports) == 0 {
		traps = append(traps, hosts+"ports names none: every SSHHost is refused")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Hosts.Namespaces)) {
		space, at := p.Hosts.Namespaces[name], hosts+"namespaces."+name
		if len(space.Classes) == 0 {
			traps = append(traps, at+".classes names none: every SSHHost there is refused")
		}
		if len(space.NodeNames) == 0 {
			traps = append(traps, at+".nodeNames names none: every join there is refused")
		}
		for _, class := range space.Classes {
			if len(p.Hosts.Profiles[class]) == 0 {
				traps = append(traps, fmt.Sprintf("%sprofiles has nothing for class %s, which hosts of %s may have: every run there is refused", hosts, class, name))
			}
		}
	}
	return traps
}

// classTraps are profiles that a class may run, and that nobody, or too few, may vouch for.
func (p *Policy) classTraps(now time.Time) (traps []string) {
	if len(p.Hosts.Namespaces) == 0 {
		return nil // told already
	}
	for _, class := range slices.Sorted(maps.Keys(p.Hosts.Profiles)) {
		if !p.placed(class) {
			traps = append(traps, fmt.Sprintf("joinProfiles.hosts.profiles.%s: no namespace lists that class, so no host can have it", class))
			continue
		}
		for _, profile := range p.Hosts.Profiles[class] {
			for _, phase := range script.Phases() {
				able, needed := p.able(class, profile, phase, now), p.Thresholds[phase]
				must := phase == script.Join || phase == script.Leave // a profile may do without the others
				if able < needed && (able > 0 || must) {
					traps = append(traps, fmt.Sprintf("class %s may run profile %s, but of the %d signers that its %s needs the policy has %d", class, profile, needed, phase, able))
				}
			}
		}
	}
	return traps
}

// placed reports whether a namespace may hold hosts of the class.
func (p *Policy) placed(class string) bool {
	for _, space := range p.Hosts.Namespaces {
		if slices.Contains(space.Classes, class) {
			return true
		}
	}
	return false
}

// anyPlaced reports whether some class that has profiles can have hosts.
func (p *Policy) anyPlaced() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(p.Hosts.Profiles)), p.placed)
}

// able counts the keys that may vouch now for the phase of some profile of the pattern on hosts of the class.
func (p *Policy) able(class, profile string, phase script.Phase, now time.Time) int {
	keys := map[string]bool{}
	for _, s := range p.Signers {
		if !p.over(s, now) && s.mayServe(class, profile, phase) {
			keys[s.Line] = true
		}
	}
	return len(keys)
}

// over reports whether the signer vouches for nothing any more.
func (p *Policy) over(s Signer, now time.Time) bool {
	return p.Revoked(s.Key) || !s.ValidBefore.IsZero() && !now.Before(s.ValidBefore)
}

// mayServe reports whether a script may exist that is within the signer's scope, of the pattern, and for the class.
func (s Signer) mayServe(class, profile string, phase script.Phase) bool {
	classes := ofKind(s.Targets, "class")
	return (len(s.Phases) == 0 || slices.Contains(s.Phases, phase)) &&
		(len(classes) == 0 || slices.ContainsFunc(classes, func(pattern string) bool { return matches(pattern, class) })) &&
		(len(s.Profiles) == 0 || slices.ContainsFunc(s.Profiles, func(pattern string) bool { return meet(pattern, profile) }))
}

// meet reports whether a name may match both patterns.
func meet(a, b string) bool {
	prefix, wild := strings.CutSuffix(a, "*")
	return matches(b, prefix) || wild && strings.HasPrefix(strings.TrimSuffix(b, "*"), prefix)
}

// signerTraps are signers whose signatures nothing takes.
func (p *Policy) signerTraps(now time.Time) (traps []string) {
	for _, s := range p.Signers {
		switch {
		case p.Revoked(s.Key):
			traps = append(traps, fmt.Sprintf("signer %.80q is revoked: it vouches for nothing", s.Name))
		case p.over(s, now):
			traps = append(traps, fmt.Sprintf("signer %.80q is past its term: it vouches for nothing", s.Name))
		case p.anyPlaced() && !p.serves(s):
			traps = append(traps, fmt.Sprintf("signer %.80q: its scope holds nothing that any class of hosts may run", s.Name))
		}
	}
	return traps
}

// serves reports whether a class that hosts can have may run something of the signer's.
func (p *Policy) serves(s Signer) bool {
	for class, profiles := range p.Hosts.Profiles {
		for _, profile := range profiles {
			if p.placed(class) && slices.ContainsFunc(script.Phases(), func(phase script.Phase) bool { return s.mayServe(class, profile, phase) }) {
				return true
			}
		}
	}
	return false
}

// endings are the times that end soon, or have. The policy's own is told by whoever shows it.
func (p *Policy) endings(now time.Time) (traps []string) {
	tell := func(what string, end time.Time) {
		switch left := end.Sub(now); {
		case left <= 0:
			traps = append(traps, what+" ended "+end.Format(layout))
		case left <= endsSoon:
			traps = append(traps, what+" ends "+end.Format(layout))
		}
	}
	for _, s := range p.Signers {
		if !s.ValidBefore.IsZero() && !p.over(s, now) {
			tell(fmt.Sprintf("the term of signer %.80q", s.Name), s.ValidBefore)
		}
	}
	for _, raw := range p.Hosts.Raw {
		tell("what raw host "+raw.Host+" is excused from", raw.Until)
	}
	for _, u := range p.Unguarded {
		tell("what unguarded profiles "+strings.Join(u.Profiles, ", ")+" are excused from", u.Until)
	}
	for _, w := range p.Waivers {
		tell(fmt.Sprintf("the waiver of %s/%.80s", w.Kind, w.Name), w.Expires)
	}
	return traps
}
