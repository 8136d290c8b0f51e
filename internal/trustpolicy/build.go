package trustpolicy

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// maxWarn bounds mode: warn, so that a trial cannot become the rule.
const maxWarn = 30 * 24 * time.Hour

// defaultMaxValidity is the default of joinProfiles.maxValidity.
const defaultMaxValidity = 90 * 24 * time.Hour

var (
	clusterID = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	// pattern is a profile name or a prefix followed by "*". Nothing else is ever
	// rendered into a host's allowed_signers.
	pattern = regexp.MustCompile(`^[a-z0-9.-]*\*?$`)
)

// ValidClusterID reports whether a cluster may be called so.
func ValidClusterID(id string) bool { return clusterID.MatchString(id) }

// policy turns the document into a Policy, or says which field is wrong.
func (d *document) policy() (*Policy, error) {
	p := &Policy{Version: d.Version, RootVersion: d.RootVersion, RequireWarrant: d.JoinProfiles.RequireWarrant, Hosts: d.JoinProfiles.Hosts, Clusters: d.Clusters}
	// check: PolicyMalformed: versions order policies; zero is "not given"
	if d.Version < 1 || d.RootVersion < 1 {
		return nil, malformed("version and rootVersion must be given, from 1")
	}
	for _, part := range []func(*Policy) error{d.times, d.mode, d.clusters, d.signers, d.thresholds, d.hosts, d.revocations} {
		if err := part(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (d *document) times(p *Policy) error {
	var err error
	if p.Issued, err = parseTime("issued", d.Issued); err != nil {
		return err
	}
	if p.Expires, err = parseTime("expires", d.Expires); err != nil {
		return err
	}
	// check: PolicyMalformed: dates the wrong way round are a slip
	if !p.Issued.Before(p.Expires) {
		return malformed("expires must be after issued")
	}
	p.MaxValidity = defaultMaxValidity
	if d.JoinProfiles.MaxValidity == "" {
		return nil
	}
	p.MaxValidity, err = parseDays(d.JoinProfiles.MaxValidity)
	return err
}

func (d *document) mode(p *Policy) error {
	p.mode = Mode(d.Mode)
	// check: PolicyMalformed: an unknown mode must not be read as one of the two
	if p.mode != Enforce && p.mode != Warn {
		return malformed("mode must be enforce or warn, not %.20q", d.Mode)
	}
	// check: PolicyMalformed: an end without a beginning is a slip
	if p.mode == Enforce && d.WarnUntil != "" {
		return malformed("warnUntil goes with mode: warn")
	}
	if p.mode == Enforce {
		return nil
	}
	var err error
	if p.warnUntil, err = parseTime("warnUntil", d.WarnUntil); err != nil {
		return err
	}
	// check: PolicyMalformed: a trial without an end would never enforce
	if p.warnUntil.After(p.Issued.Add(maxWarn)) {
		return malformed("warnUntil may be at most 30 days after issued")
	}
	return nil
}

func (d *document) clusters(*Policy) error {
	// check: PolicyMalformed: no cluster must not mean every cluster
	if len(d.Clusters) == 0 {
		return malformed("clusters is empty; name the clusters, or say {any: {}}")
	}
	for id, c := range d.Clusters {
		// check: PolicyMalformed: a cluster id is compared byte for byte everywhere
		if !ValidClusterID(id) {
			return malformed("clusters: %.80q is not a cluster id ([a-z0-9-], up to 63)", id)
		}
		for _, digest := range c.CASHA256 {
			raw, err := hex.DecodeString(digest)
			// check: PolicyMalformed: a digest in another form would never match, or match by chance of case
			if err != nil || len(raw) != 32 || digest != strings.ToLower(digest) {
				return malformed("clusters.%s.caSHA256: %.70q is not 64 lower-case hex digits", id, digest)
			}
		}
		// check: PolicyMalformed: a host must not be sent to an API server over plain text
		if i := slices.IndexFunc(c.Endpoints, func(e string) bool { return !strings.HasPrefix(e, "https://") }); i >= 0 {
			return malformed("clusters.%s.endpoints: %.80q does not start with https://", id, c.Endpoints[i])
		}
	}
	return nil
}

func (d *document) signers(p *Policy) error {
	for i, in := range d.JoinProfiles.Signers {
		at := "joinProfiles.signers[" + strconv.Itoa(i) + "]"
		key, _, err := sshsig.ParsePublicKey(in.Key)
		if err != nil {
			return malformed("%s.key: %v", at, err)
		}
		s := Signer{Name: in.Name, Key: key, Line: strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n"), Profiles: in.Profiles}
		// check: PolicyMalformed: a signer that reports cannot name is one nobody will miss
		if in.Name == "" {
			return malformed("%s.name is missing", at)
		}
		if in.ValidBefore != "" {
			if s.ValidBefore, err = parseTime(at+".validBefore", in.ValidBefore); err != nil {
				return err
			}
		}
		// check: PolicyMalformed: a pattern that is read in two ways widens a scope
		if j := slices.IndexFunc(in.Profiles, func(s string) bool { return s == "" || !pattern.MatchString(s) }); j >= 0 {
			return malformed("%s.profiles: %.80q is not a name or a prefix with *", at, in.Profiles[j])
		}
		for _, name := range in.Phases {
			// check: PolicyMalformed: an unknown phase is a slip that would leave the scope empty
			if !script.Phase(name).Known() {
				return malformed("%s.phases: %.40q is not a phase", at, name)
			}
			s.Phases = append(s.Phases, script.Phase(name))
		}
		// check: PolicyMalformed: an empty list is not "everything", and must not be taken for it
		if in.Profiles != nil && len(in.Profiles) == 0 || in.Phases != nil && len(in.Phases) == 0 {
			return malformed("%s: an empty list of profiles or phases grants nothing; leave the field out for all", at)
		}
		p.Signers = append(p.Signers, s)
	}
	return nil
}

func (d *document) thresholds(p *Policy) error {
	p.Thresholds = map[script.Phase]int{}
	for _, phase := range script.Phases() {
		p.Thresholds[phase] = 1
	}
	for name, k := range d.JoinProfiles.Thresholds {
		phase := script.Phase(name)
		// check: PolicyMalformed: a misspelt phase would leave the real one at 1
		if !phase.Known() {
			return malformed("joinProfiles.thresholds: %.40q is not a phase", name)
		}
		keys := p.distinctKeys(phase)
		// check: PolicyMalformed: 0 would mean unsigned; more than there are keys could never be met
		if k < 1 || k > keys {
			return malformed("joinProfiles.thresholds.%s is %d, not 1 to %d, the number of distinct signer keys for that phase", name, k, keys)
		}
		p.Thresholds[phase] = k
	}
	return nil
}

// distinctKeys counts the keys that may sign a phase of some profile.
func (p *Policy) distinctKeys(phase script.Phase) int {
	var keys []string
	for _, s := range p.Signers {
		if (len(s.Phases) == 0 || slices.Contains(s.Phases, phase)) && !slices.Contains(keys, s.Line) {
			keys = append(keys, s.Line)
		}
	}
	return len(keys)
}

func (d *document) hosts(*Policy) error {
	h := d.JoinProfiles.Hosts
	// check: PolicyMalformed: an empty entry would allow what is not given
	if slices.Contains(h.Users, "") || slices.Contains(h.ShimCommands, "") {
		return malformed("joinProfiles.hosts: an entry is empty")
	}
	// check: PolicyMalformed: a port that cannot be is a slip
	if i := slices.IndexFunc(h.Ports, func(port int) bool { return port < 1 || port > 65535 }); i >= 0 {
		return malformed("joinProfiles.hosts.ports: %d is not a port", h.Ports[i])
	}
	return nil
}

var fingerprint = regexp.MustCompile(`^SHA256:[A-Za-z0-9+/]{43}$`)

func (d *document) revocations(p *Policy) error {
	// check: PolicyMalformed: a revocation that matches no key revokes nothing
	if i := slices.IndexFunc(d.Revoked.Signers, func(f string) bool { return !fingerprint.MatchString(f) }); i >= 0 {
		return malformed("revoked.signers: %.80q is not a SHA256: fingerprint", d.Revoked.Signers[i])
	}
	p.revoked = d.Revoked.Signers
	return nil
}

// parseTime takes RFC 3339 in UTC only: a zone is a second spelling.
func parseTime(field, text string) (time.Time, error) {
	t, err := time.Parse("2006-01-02T15:04:05Z", text)
	if err != nil {
		return time.Time{}, malformed("%s: %.40q is not a time like %q", field, text, "2026-11-29T00:00:00Z")
	}
	return t, nil
}

// parseDays takes "90d"; days are 24 hours.
func parseDays(text string) (time.Duration, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || !strings.HasSuffix(text, "d") || n < 1 || n > 3650 {
		return 0, malformed("joinProfiles.maxValidity: %.20q is not a number of days like %q", text, "90d")
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// matches reports whether name is pattern, or starts with what stands before its "*".
func matches(pattern, name string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return name == pattern || wild && strings.HasPrefix(name, prefix)
}
