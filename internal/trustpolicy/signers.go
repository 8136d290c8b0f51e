package trustpolicy

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Signer is a key that may vouch for phase scripts, within its scope.
type Signer struct {
	Name string
	Key  ssh.PublicKey
	// Line is the key as an OpenSSH public key line without a comment.
	Line string
	// CertAuthority is true for a key that certifies signers and does not sign scripts itself.
	CertAuthority bool
	// ValidBefore is the zero time where the policy gives none.
	ValidBefore time.Time
	// Profiles are names or prefixes that end in "*"; empty means every profile.
	Profiles []string
	// Targets are what the warrants of its scripts may aim at; empty means everything.
	Targets []string
	// Phases is empty for every phase.
	Phases []script.Phase
}

type signer struct {
	Name          string   `yaml:"name"`
	Key           string   `yaml:"key"`
	CertAuthority bool     `yaml:"certAuthority"`
	ValidBefore   string   `yaml:"validBefore"`
	Profiles      []string `yaml:"profiles"`
	Targets       []string `yaml:"targets"`
	Phases        []string `yaml:"phases"`
}

func (d *document) signers(p *Policy) error {
	for i, in := range d.JoinProfiles.Signers {
		s, err := in.parse(index("joinProfiles.signers", i))
		if err != nil {
			return err
		}
		p.Signers = append(p.Signers, s)
	}
	return nil
}

func (in signer) parse(at string) (Signer, error) {
	key, _, err := sshsig.ParsePublicKey(in.Key)
	if err != nil {
		return Signer{}, malformed("%s.key: %v", at, err)
	}
	s := Signer{
		Name: in.Name, Key: key, Line: strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n"),
		CertAuthority: in.CertAuthority, Profiles: in.Profiles, Targets: in.Targets,
	}
	// check: PolicyMalformed: a signer that reports cannot name is one nobody will miss
	if in.Name == "" {
		return Signer{}, malformed("%s.name is missing", at)
	}
	if in.ValidBefore != "" {
		if s.ValidBefore, err = parseTime(at+".validBefore", in.ValidBefore); err != nil {
			return Signer{}, err
		}
	}
	if in.Profiles != nil {
		if err := patterns(at+".profiles", in.Profiles); err != nil {
			return Signer{}, err
		}
	}
	if in.Targets != nil {
		if err := targets(at+".targets", in.Targets); err != nil {
			return Signer{}, err
		}
	}
	s.Phases, err = phases(at+".phases", in.Phases)
	return s, err
}

func phases(at string, names []string) ([]script.Phase, error) {
	// check: PolicyMalformed: an empty list is not "everything", and must not be taken for it
	if names != nil && len(names) == 0 {
		return nil, malformed("%s: an empty list grants nothing; leave the field out for all", at)
	}
	var all []script.Phase
	for _, name := range names {
		// check: PolicyMalformed: an unknown phase is a slip that would leave the scope empty
		if !script.Phase(name).Known() {
			return nil, malformed("%s: %.40q is not a phase", at, name)
		}
		all = append(all, script.Phase(name))
	}
	return all, nil
}

// SignersOf returns the entries of the key; there may be several with different
// scopes. Those of an authority (CertAuthority) are for the keys it certifies: its
// own key vouches for no script.
func (p *Policy) SignersOf(key ssh.PublicKey) []Signer {
	return slices.DeleteFunc(slices.Clone(p.Signers), func(s Signer) bool { return !quorum.Same(s.Key, key) })
}

// Covers reports whether the signer's scope holds the phase of the profile.
func (s Signer) Covers(profile string, phase script.Phase) bool {
	inProfiles := len(s.Profiles) == 0 || slices.ContainsFunc(s.Profiles, func(pattern string) bool { return matches(pattern, profile) })
	inPhases := len(s.Phases) == 0 || slices.Contains(s.Phases, phase)
	return inProfiles && inPhases
}

// Scoped reports whether the signer may vouch for less than everything.
func (s Signer) Scoped() bool { return len(s.Profiles)+len(s.Phases)+len(s.Targets) > 0 }

// TrustedSigners are the public key lines that may stand in
// SSHHost.spec.trustedSigners: every key that signs and is not revoked, once, in
// order. An authority is none of them: listed there, its own key would count.
func (p *Policy) TrustedSigners() []string {
	var lines []string
	for _, s := range p.Signers {
		if !s.CertAuthority && !p.Revoked(s.Key) && !slices.Contains(lines, s.Line) {
			lines = append(lines, s.Line)
		}
	}
	return lines
}

// FillSigners are the TrustedSigners whose term has not ended at now: what is
// filled in anew must not be a key that already vouches for nothing.
func (p *Policy) FillSigners(now time.Time) []string {
	var lines []string
	for _, line := range p.TrustedSigners() {
		inTerm := func(s Signer) bool {
			return s.Line == line && !s.CertAuthority && (s.ValidBefore.IsZero() || now.Before(s.ValidBefore))
		}
		if slices.ContainsFunc(p.Signers, inTerm) {
			lines = append(lines, line)
		}
	}
	return lines
}
