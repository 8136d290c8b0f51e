package trustpolicy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// anyTarget is a target without a limit, in a warrant and in a signer's scope.
const anyTarget = "any"

// classPattern is a host class, or a prefix followed by "*".
var classPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62})?\*?$`)

// targets wants a list of patterns: any alone, class LABEL or PREFIX*, host SHA256:…, cluster ID.
func targets(field string, list []string) error {
	// check: PolicyMalformed: an empty list is not "everywhere", and must not be taken for it
	if len(list) == 0 {
		return malformed("%s: an empty list grants nothing; leave the field out", field)
	}
	for _, target := range list {
		kind, value, _ := strings.Cut(target, " ")
		good := kind == "class" && classPattern.MatchString(value) || kind == "host" && sshsig.ValidFingerprint(value) ||
			kind == "cluster" && ValidClusterID(value) && value != AnyCluster || target == anyTarget
		// check: PolicyMalformed: a target that is read in two ways widens a scope
		if !good {
			return malformed("%s: %.80q is not any, class LABEL, class PREFIX*, host SHA256:... or cluster ID", field, target)
		}
		// check: PolicyMalformed: "any" beside a limit would lift it
		if target == anyTarget && len(list) > 1 {
			return malformed("%s: any stands alone", field)
		}
	}
	return nil
}

// CoversTargets reports whether a script with these targets lies within the
// signer's scope. They are the words behind "target" of its warrant; nil stands
// for a script without a warrant, which could run anywhere. For each kind that the
// signer lists, the warrant must have lines of that kind, and each must match.
func (s Signer) CoversTargets(warrant []string) bool {
	if len(s.Targets) == 0 {
		return true
	}
	// check: SignerScope,TargetRefused: a script without limits must not carry a key beyond its own
	if len(warrant) == 0 {
		return false
	}
	if s.Targets[0] == anyTarget {
		return true
	}
	for _, kind := range []string{"any", "class", "host", "cluster"} {
		mine, its := ofKind(s.Targets, kind), ofKind(warrant, kind)
		if len(mine) == 0 {
			continue
		}
		within := func(value string) bool {
			return slices.ContainsFunc(mine, func(pattern string) bool { return matches(pattern, value) })
		}
		outside := slices.ContainsFunc(its, func(value string) bool { return !within(value) })
		// check: SignerScope,TargetRefused: one team's key must not reach another team's hosts
		if len(its) == 0 || outside {
			return false
		}
	}
	return true
}

// MayReach reports whether the signer's scope surely holds a host of the class, in
// the cluster, with these fingerprints of its own keys. What is not known ("", or
// no keys) lies in no scope that is limited to it.
func (s Signer) MayReach(class, cluster string, hostKeys []string) bool {
	known := []string{"class " + class, "cluster " + cluster}
	if class == "" {
		known = known[1:]
	}
	if s.CoversTargets(known) {
		return true
	}
	return slices.ContainsFunc(hostKeys, func(key string) bool { return s.CoversTargets(append(slices.Clone(known), "host "+key)) })
}

// ofKind gives the values of the targets of one kind.
func ofKind(list []string, kind string) []string {
	var values []string
	for _, target := range list {
		if of, value, _ := strings.Cut(target, " "); of == kind {
			values = append(values, value)
		}
	}
	return values
}
