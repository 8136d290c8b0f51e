package trustpolicy

import (
	"maps"
	"slices"
	"strings"
)

// Bundle says what must be, and what may no longer be, in a bundle of fragments.
type Bundle struct {
	Required   []Member    `yaml:"required"`
	Tombstones []Tombstone `yaml:"tombstones"`
	// Priority lists classes, and members as class/name, the weakest first, where fragments contradict each other.
	Priority []string `yaml:"priority"`
}

// Member names a fragment of a bundle.
type Member struct {
	Class string `yaml:"class"`
	Name  string `yaml:"name"`
}

// Tombstone is a fragment that was taken out: up to that version it does not come back.
type Tombstone struct {
	Class   string `yaml:"class"`
	Name    string `yaml:"name"`
	Version int64  `yaml:"version"`
}

// Buried reports whether the policy took that version of a fragment out of the bundle.
func (b Bundle) Buried(class, name string, version int64) bool {
	return slices.ContainsFunc(b.Tombstones, func(t Tombstone) bool { return t.Class == class && t.Name == name && version <= t.Version })
}

func (d *document) bundles(p *Policy) error {
	p.Bundles = d.Bundles
	for _, name := range slices.Sorted(maps.Keys(d.Bundles)) {
		// check: PolicyMalformed: a bundle that no label can name is a slip
		if !dnsName.MatchString(name) {
			return malformed("bundles: %.80q is not a bundle name", name)
		}
		if err := d.bundle("bundles."+name, d.Bundles[name]); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) bundle(at string, b Bundle) error {
	for i, m := range b.Required {
		if err := d.member(index(at+".required", i), m); err != nil {
			return err
		}
	}
	for i, t := range b.Tombstones {
		if err := d.member(index(at+".tombstones", i), Member{t.Class, t.Name}); err != nil {
			return err
		}
		// check: PolicyMalformed: a tombstone below every version buries nothing
		if t.Version < 0 || t.Version > maxSerial {
			return malformed("%s: version %d", index(at+".tombstones", i), t.Version)
		}
		// check: PolicyMalformed: a member that must and must not be there closes the bundle for good
		if slices.Contains(b.Required, Member{t.Class, t.Name}) {
			return malformed("%s is required as well", index(at+".tombstones", i))
		}
	}
	for i, entry := range b.Priority {
		class, name, isMember := strings.Cut(entry, "/")
		_, known := d.FragmentClasses[class]
		// check: PolicyMalformed: an order that names something twice, or what is not, decides nothing
		if !known || isMember && !dnsName.MatchString(name) || slices.Contains(b.Priority[:i], entry) {
			return malformed("%s: %.80q is not a class of fragmentClasses nor a member class/name, or stands there twice", index(at+".priority", i), entry)
		}
	}
	return nil
}

func (d *document) member(at string, m Member) error {
	_, known := d.FragmentClasses[m.Class]
	// check: PolicyMalformed: a member of a class that is not can never be there
	if !known || !dnsName.MatchString(m.Name) {
		return malformed("%s: class %.40q is not in fragmentClasses, or %.80q is not a name", at, m.Class, m.Name)
	}
	return nil
}
