package trustpolicy

import "time"

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
