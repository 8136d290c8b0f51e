package trustpolicy

import (
	"slices"
	"time"
)

// Waiver lets one object through admission, as it stands, until a date.
type Waiver struct {
	Kind, Name, Digest, Reason string
	Expires                    time.Time
}

type waiver struct {
	Kind    string `yaml:"kind"`
	Name    string `yaml:"name"`
	Digest  string `yaml:"digest"`
	Expires string `yaml:"expires"`
	Reason  string `yaml:"reason"`
}

// waivable are the kinds that admission judges and a waiver may name.
func waivable() []string {
	return []string{"SSHJoinProfile", "SSHHost", "SSHNodeClass", "ContainerProfile", "Rules", "SeccompProfile", "RuntimeRuleAlertBinding"}
}

func (d *document) waivers(p *Policy) error {
	for i, in := range d.Waivers {
		at := index("waivers", i)
		// check: PolicyMalformed: an exception that names no kind, or no object, is for all of them
		if !slices.Contains(waivable(), in.Kind) || !dnsName.MatchString(in.Name) {
			return malformed("%s: kind %.40q, name %.80q", at, in.Kind, in.Name)
		}
		// check: PolicyMalformed: without its digest the exception would hold for any later content
		if !contentDigest.MatchString(in.Digest) {
			return malformed("%s.digest: %.80q is not sha256: and 64 lower-case hex digits", at, in.Digest)
		}
		// check: PolicyMalformed: an exception that nobody can explain stays for ever
		if in.Reason == "" {
			return malformed("%s.reason is missing", at)
		}
		expires, err := parseTime(at+".expires", in.Expires)
		if err != nil {
			return err
		}
		p.Waivers = append(p.Waivers, Waiver{in.Kind, in.Name, in.Digest, in.Reason, expires})
	}
	return nil
}

// WaiverOf gives the waiver that excuses an object with this content at now.
func (p *Policy) WaiverOf(kind, name, digest string, now time.Time) (Waiver, bool) {
	i := slices.IndexFunc(p.Waivers, func(w Waiver) bool {
		return w.Kind == kind && w.Name == name && w.Digest == digest && now.Before(w.Expires)
	})
	if i < 0 {
		return Waiver{}, false
	}
	return p.Waivers[i], true
}
