package warrant

import (
	"regexp"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Target names hosts that a script is for. Targets of one kind widen, targets of
// different kinds narrow.
type Target struct {
	Kind  string // any, class, host or cluster
	Value string // empty for any
}

// The kinds of Target.
const (
	TargetAny     = "any"
	TargetClass   = "class"
	TargetHost    = "host"
	TargetCluster = "cluster"
)

// String gives the words that stand after "target ".
func (t Target) String() string {
	if t.Value == "" {
		return t.Kind
	}
	return t.Kind + " " + t.Value
}

// What a target's value may be, as a POSIX ERE. A class is a label value of
// Kubernetes, a host the SHA-256 fingerprint of one of its keys.
const (
	classPattern   = `[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?`
	hostPattern    = sshsig.FingerprintPattern
	clusterPattern = `[a-z0-9-]{1,63}`
)

// ParseTarget reads the words that stand after "target ".
func ParseTarget(words string) (Target, error) {
	t, err := parseTarget(words)
	if err != nil {
		return Target{}, err
	}
	return t, nil
}

func parseTarget(words string) (Target, *wordsError) {
	kind, value, has := strings.Cut(words, " ")
	t := Target{Kind: kind, Value: value}
	ok := false
	switch kind {
	case TargetAny:
		ok = !has
	case TargetClass:
		ok = classForm.MatchString(value)
	case TargetHost:
		ok = hostForm.MatchString(value)
	case TargetCluster:
		ok = clusterForm.MatchString(value)
	}
	// check: WarrantMalformed: a target that one reader takes for nothing and another for everything
	if !ok {
		return Target{}, malformedWords("target %.80q is not any, class LABEL, host SHA256:FINGERPRINT or cluster ID", words)
	}
	return t, nil
}

// matching says whether all of a value matches an ERE.
type matching func(ere, value string) bool

// fits is the matching that keeps nothing.
func fits(ere, value string) bool { return compiled(ere).MatchString(value) }

func compiled(ere string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + ere + `)$`) }
