package trustpolicy

import (
	"slices"
	"time"
)

// Unguarded names profiles that need no signature until a date, for Raw hosts in migration.
type Unguarded struct {
	Profiles []string
	Until    time.Time
}

type unguarded struct {
	Profiles []string `yaml:"profiles"`
	Until    string   `yaml:"until"`
}

func (d *document) unguarded(p *Policy) error {
	for i, in := range d.JoinProfiles.Unguarded {
		at := index("joinProfiles.unguarded", i)
		if err := patterns(at+".profiles", in.Profiles); err != nil {
			return err
		}
		// An exception without an end becomes the rule: parseTime refuses an absent one.
		until, err := parseTime(at+".until", in.Until)
		if err != nil {
			return err
		}
		p.Unguarded = append(p.Unguarded, Unguarded{in.Profiles, until})
	}
	return nil
}

// UnguardedUntil gives the date until which the profile needs no signature: the
// latest of those that cover it, if that is ahead.
func (p *Policy) UnguardedUntil(profile string, now time.Time) (until time.Time, ok bool) {
	for _, u := range p.Unguarded {
		covers := slices.ContainsFunc(u.Profiles, func(pattern string) bool { return matches(pattern, profile) })
		if covers && now.Before(u.Until) && u.Until.After(until) {
			until, ok = u.Until, true
		}
	}
	return until, ok
}
