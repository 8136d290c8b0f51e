package trustpolicy

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Hosts says what an SSHHost may hold. An empty list allows nothing.
type Hosts struct {
	Users        []string
	Ports        []int
	ShimCommands []string
	// Raw are hosts that may run unsigned scripts until a date.
	Raw []RawHost
	// Profiles are the patterns of profiles that hosts of a class may run.
	Profiles map[string][]string
	// Namespaces are those that hold hosts.
	Namespaces map[string]HostNamespace
}

// RawHost is "namespace/name" of an SSHHost in migration.
type RawHost struct {
	Host  string
	Until time.Time
}

// HostNamespace says which hosts a namespace may hold.
type HostNamespace struct {
	Classes   []string
	NodeNames []string
	// HostCA certifies the host keys there; nil where the policy names none.
	HostCA ssh.PublicKey
}

// RawUntil gives the date until which a host may run unsigned scripts: the latest of
// those that name it, if that is ahead.
func (h Hosts) RawUntil(namespace, name string, now time.Time) (until time.Time, ok bool) {
	for _, raw := range h.Raw {
		if raw.Host == namespace+"/"+name && now.Before(raw.Until) && raw.Until.After(until) {
			until, ok = raw.Until, true
		}
	}
	return until, ok
}

// MayRun reports whether hosts of the class may run the profile.
func (h Hosts) MayRun(class, profile string) bool {
	return slices.ContainsFunc(h.Profiles[class], func(pattern string) bool { return matches(pattern, profile) })
}

// TakesNodeName reports whether hosts of the namespace may join under the name.
func (n HostNamespace) TakesNodeName(name string) bool {
	return slices.ContainsFunc(n.NodeNames, func(pattern string) bool { return matches(pattern, name) })
}

type hosts struct {
	Users        []string             `yaml:"users"`
	Ports        []int                `yaml:"ports"`
	ShimCommands []string             `yaml:"shimCommands"`
	Raw          []rawHost            `yaml:"raw"`
	Profiles     map[string][]string  `yaml:"profiles"`
	Namespaces   map[string]namespace `yaml:"namespaces"`
}

type rawHost struct {
	Host  string `yaml:"host"`
	Until string `yaml:"until"`
}

type namespace struct {
	Classes   []string `yaml:"classes"`
	NodeNames []string `yaml:"nodeNames"`
	HostCA    string   `yaml:"hostCA"`
}

func (d *document) hosts(p *Policy) error {
	h := d.JoinProfiles.Hosts
	p.Hosts = Hosts{Users: h.Users, Ports: h.Ports, ShimCommands: h.ShimCommands, Profiles: h.Profiles}
	// check: PolicyMalformed: a port that cannot be is a slip
	if i := slices.IndexFunc(h.Ports, func(port int) bool { return port < 1 || port > 65535 }); i >= 0 {
		return malformed("joinProfiles.hosts.ports: %d is not a port", h.Ports[i])
	}
	for class, list := range h.Profiles {
		at := "joinProfiles.hosts.profiles"
		// check: PolicyMalformed: a class that no host can have leaves the real one without a rule
		if !label.MatchString(class) {
			return malformed("%s: %.80q is not a host class", at, class)
		}
		if err := patterns(at+"."+class, list); err != nil {
			return err
		}
	}
	if err := d.rawHosts(p); err != nil {
		return err
	}
	return d.namespaces(p)
}

func (d *document) rawHosts(p *Policy) error {
	for i, in := range d.JoinProfiles.Hosts.Raw {
		at := index("joinProfiles.hosts.raw", i)
		space, name, _ := strings.Cut(in.Host, "/")
		// check: PolicyMalformed: a name that could be another host's lifts the rule for that one
		if !dnsName.MatchString(space) || !dnsName.MatchString(name) {
			return malformed("%s.host: %.80q is not NAMESPACE/NAME", at, in.Host)
		}
		until, err := parseTime(at+".until", in.Until)
		if err != nil {
			return err
		}
		p.Hosts.Raw = append(p.Hosts.Raw, RawHost{in.Host, until})
	}
	return nil
}

func (d *document) namespaces(p *Policy) error {
	for name, in := range d.JoinProfiles.Hosts.Namespaces {
		at := "joinProfiles.hosts.namespaces." + name
		// check: PolicyMalformed: a namespace that cannot be is a slip
		if !dnsName.MatchString(name) {
			return malformed("joinProfiles.hosts.namespaces: %.80q is not a namespace", name)
		}
		space := HostNamespace{Classes: in.Classes, NodeNames: in.NodeNames}
		// check: PolicyMalformed: a class that no host can have is a slip
		if i := slices.IndexFunc(in.Classes, func(c string) bool { return !label.MatchString(c) }); i >= 0 {
			return malformed("%s.classes: %.80q is not a host class", at, in.Classes[i])
		}
		if in.NodeNames != nil {
			if err := patterns(at+".nodeNames", in.NodeNames); err != nil {
				return err
			}
		}
		if in.HostCA != "" {
			key, _, err := sshsig.ParsePublicKey(in.HostCA)
			if err != nil {
				return malformed("%s.hostCA: %v", at, err)
			}
			space.HostCA = key
		}
		if p.Hosts.Namespaces == nil {
			p.Hosts.Namespaces = map[string]HostNamespace{}
		}
		p.Hosts.Namespaces[name] = space
	}
	return nil
}
