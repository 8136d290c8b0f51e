package statement

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

const (
	// maxNumber is the largest number of 15 digits.
	maxNumber = 999_999_999_999_999
	// maxRoots bounds a generation of roots, maxThreshold what of them must sign: two
	// generations together sign with at most 16 blocks.
	maxRoots     = 16
	maxThreshold = 8
	// maxName is the most bytes of an object's name.
	maxName = 253
	// maxDays is the largest validity; the policy's reader has the same bound.
	maxDays = 3650
)

var (
	clusterID = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	// label is a Kubernetes label value that is not empty.
	label = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	// profile is an object name, a DNS-1123 subdomain: a host keeps its mark in a file
	// of that name. pattern is one, or a prefix followed by "*".
	profile = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	pattern = regexp.MustCompile(`^[a-z0-9.-]{0,253}\*$|^[a-z0-9.-]{1,253}$`)
	sha256  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Check reports whether the statement can be written in the grammar of
// docs/spec/statement.md. The error carries StatementRejected.
func (s *Statement) Check() error {
	if err := s.checkHead(); err != nil {
		return err
	}
	if err := s.checkPlace(); err != nil {
		return err
	}
	bodies := map[Kind]bool{
		KindRoots: s.Roots != nil, KindSigners: s.Signers != nil, KindRevoke: s.Revoke != nil,
		KindFloor: s.Floors != nil, KindReset: s.Reset != nil,
	}
	// check: StatementRejected: a statement that changes nothing takes a serial and looks like one that does
	if !bodies[s.Kind] {
		return rejected("a statement of kind %.20q without a body", s.Kind)
	}
	delete(bodies, s.Kind)
	for _, set := range bodies {
		// check: StatementRejected: one statement says one thing
		if set {
			return rejected("a statement of kind %s with the body of another", s.Kind)
		}
	}
	switch s.Kind {
	case KindRoots:
		return s.Roots.check()
	case KindSigners:
		return s.Signers.check(s.Issued)
	case KindRevoke:
		return checkRevoke(s.Revoke)
	case KindFloor:
		return checkFloors(s.Floors)
	default:
		return s.Reset.check()
	}
}

func (s *Statement) checkHead() error {
	// check: StatementRejected: serials order statements; zero is "not given"
	if s.Serial < 1 || s.Serial > maxNumber {
		return rejected("serial %d is not from 1 to %d", s.Serial, int64(maxNumber))
	}
	// check: StatementRejected: a statement from before 1970 is a slip
	if s.Issued < 0 || s.Issued > maxNumber {
		return rejected("issued %d is not a time in seconds", s.Issued)
	}
	return nil
}

// checkPlace wants a cluster, targets, or targets within a cluster.
func (s *Statement) checkPlace() error {
	// check: StatementRejected: nowhere must not mean everywhere
	if s.Cluster == "" && len(s.Targets) == 0 {
		return rejected("says neither cluster nor target; everywhere is said with target any")
	}
	// check: StatementRejected: a cluster id is compared byte for byte, and "any" is none
	if s.Cluster != "" && (!clusterID.MatchString(s.Cluster) || s.Cluster == "any") {
		return rejected("%.80q is not a cluster id ([a-z0-9-], up to 63); everywhere is said with target any", s.Cluster)
	}
	for i, target := range s.Targets {
		kind, value, _ := strings.Cut(target, " ")
		good := kind == "class" && label.MatchString(value) || kind == "host" && sshsig.ValidFingerprint(value) || target == "any"
		// check: StatementRejected: a target that no host understands is met by all or by none
		if !good {
			return rejected("target %.80q is not any, class LABEL or host SHA256:...", target)
		}
		// check: StatementRejected: "any" beside a limit would lift it
		if target == "any" && (len(s.Targets) > 1 || s.Cluster != "") {
			return rejected("target any stands alone")
		}
		// check: StatementRejected: a fact said twice is a second spelling
		if slices.Contains(s.Targets[:i], target) {
			return rejected("target %s stands there twice", target)
		}
	}
	return nil
}

func (r *Roots) check() error {
	// check: StatementRejected: no roots would mean that no signature is needed
	if len(r.Keys) == 0 || len(r.Keys) > maxRoots {
		return rejected("names %d root keys, not 1 to %d", len(r.Keys), maxRoots)
	}
	for i, key := range r.Keys {
		// check: StatementRejected: a key that strict SSHSIG refuses could never sign
		if err := sshsig.CheckKey(key); err != nil {
			return rejected("root key %d: %v", i+1, err)
		}
		// check: StatementRejected: one key listed twice must not make half the keys enough
		if quorum.Holds(r.Keys[:i], key) {
			return rejected("names the root key %s twice", sshsig.Fingerprint(key))
		}
	}
	// check: StatementRejected: 0 would mean unsigned; more than there are keys could never be met
	if r.Threshold < 1 || r.Threshold > min(len(r.Keys), maxThreshold) {
		return rejected("threshold %d is not 1 to %d", r.Threshold, min(len(r.Keys), maxThreshold))
	}
	return nil
}

func (b *Signers) check(issued int64) error {
	// check: StatementRejected: signers that have expired before they are named are a slip
	if b.Expires <= issued || b.Expires > maxNumber {
		return rejected("expires %d is not after issued", b.Expires)
	}
	// check: StatementRejected: no limit, or one of a lifetime, is none
	if b.MaxValidityDays < 1 || b.MaxValidityDays > maxDays {
		return rejected("max-validity of %d days is not 1 to %d", b.MaxValidityDays, maxDays)
	}
	for i, k := range b.Thresholds {
		// check: StatementRejected: 0 would mean unsigned
		if k < 1 || k > maxThreshold {
			return rejected("threshold %s %d is not 1 to %d", script.Phases()[i], k, maxThreshold)
		}
	}
	// check: StatementRejected: a host without signers answers "no such file"; keys are withdrawn with revoke
	if len(b.Lines) == 0 {
		return rejected("names no signer; keys are withdrawn with a revoke statement")
	}
	for i, line := range b.Lines {
		if err := checkSigner(line); err != nil {
			return err
		}
		// check: StatementRejected: a fact said twice is a second spelling
		if slices.Contains(b.Lines[:i], line) {
			return rejected("names a signer twice: %.60q", line)
		}
	}
	return nil
}

// checkSigner holds a line against docs/spec/allowed-signers.md: what a policy renders, and nothing else.
func checkSigner(line string) error {
	principals, rest, _ := strings.Cut(line, " ")
	options, key, _ := strings.Cut(rest, " ")
	for _, principal := range strings.Split(principals, ",") {
		phase, of, scoped := strings.Cut(principal, "@")
		known := principal == script.Namespace || scoped && script.Phase(phase).Known() && pattern.MatchString(of)
		// check: StatementRejected: a principal that OpenSSH reads as something else widens a scope
		if !known {
			return rejected("signer principal %.80q is neither PHASE@PROFILE nor %s", principal, script.Namespace)
		}
	}
	// check: StatementRejected: without the namespace the key would be good for other signatures too
	if options != `namespaces="kpssh"` && options != `cert-authority,namespaces="kpssh"` {
		return rejected("signer options %.80q", options)
	}
	parsed, comment, err := sshsig.ParsePublicKey(key)
	// check: StatementRejected: what follows is a key and nothing else
	if err != nil || comment != "" || keyLine(parsed) != key {
		return rejected("a signer line ends in a public key without a comment")
	}
	return nil
}

func checkRevoke(fingerprints []string) error {
	for i, f := range fingerprints {
		// check: StatementRejected: a revocation that matches no key revokes nothing
		if !sshsig.ValidFingerprint(f) {
			return rejected("%.80q is no fingerprint SHA256:... of a key", f)
		}
		// check: StatementRejected: an order of one's own is a second spelling
		if i > 0 && f <= fingerprints[i-1] {
			return rejected("fingerprints stand in ascending order, each once")
		}
	}
	return nil
}

func checkFloors(floors []Floor) error {
	for i, f := range floors {
		// check: StatementRejected: a pattern that is read in two ways leaves a profile without its floor
		if !pattern.MatchString(f.Profile) {
			return rejected("floor: %.80q is not a profile, or a prefix with *", f.Profile)
		}
		// check: StatementRejected: a number that the host cannot read is no floor
		if f.Serial < 0 || f.Serial > maxNumber {
			return rejected("floor of %s: serial %d", f.Profile, f.Serial)
		}
		// check: StatementRejected: two floors for one profile could be read either way
		if i > 0 && f.Profile <= floors[i-1].Profile {
			return rejected("floors stand in ascending order, each profile once")
		}
	}
	return nil
}

func (b *Reset) check() error {
	// check: StatementRejected: a reset is for one profile: a pattern would lower all marks at once
	if len(b.Profile) > maxName || !profile.MatchString(b.Profile) {
		return rejected("profile %.80q is not a name", b.Profile)
	}
	// check: StatementRejected: a number that the host cannot read is no mark
	if b.Mark < 0 || b.Mark > maxNumber {
		return rejected("mark %d", b.Mark)
	}
	given := 0
	for i, digest := range b.SHA256 {
		if digest == "" {
			continue
		}
		given++
		// check: StatementRejected: a digest in another form never matches
		if !sha256.MatchString(digest) {
			return rejected("sha256 %s: %.80q is not 64 lower-case hex digits", script.Phases()[i], digest)
		}
	}
	// check: StatementRejected: a mark without a digest would let any older script of that serial back in
	if given == 0 {
		return rejected("a reset names the digest of at least one phase")
	}
	return nil
}

func keyLine(key ssh.PublicKey) string {
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
}
