package trustpolicy

import (
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// maxLinks bounds the chain, as the CRD does. A chain need not grow for ever: the
// anchor may be moved to a later link.
const maxLinks = 16

// walk goes from the anchor's roots forward, link by link, and returns every
// generation from the anchor to the last. Each link is a roots statement, signed
// by the threshold of the generation before it and by its own. Links up to the
// anchor's version prove nothing to this reader and are only held against it.
func walk(chain []statement.Signed, anchor *Roots) (generations []*Roots, links []*statement.Statement, err error) {
	// check: PolicyMalformed: work before verification must be bounded
	if len(chain) > maxLinks {
		return nil, nil, malformed("the root chain has %d links, more than %d", len(chain), maxLinks).At("spec.rootChain")
	}
	generations = []*Roots{anchor}
	for i, link := range chain {
		here := index("spec.rootChain", i)
		last := generations[len(generations)-1]
		s, err := statement.Parse(link.Text)
		if err != nil {
			return nil, nil, decision.From(err).At(here)
		}
		// check: StatementRejected: another kind of statement, signed by the same keys, names no roots
		if s.Kind != statement.KindRoots {
			return nil, nil, decision.Errorf(decision.StatementRejected, "is a statement of kind %s, not roots", s.Kind).At(here)
		}
		next := generation(link.Text, s)
		if next.Version < anchor.Version {
			continue
		}
		known := slices.IndexFunc(generations, func(g *Roots) bool { return g.Version == next.Version })
		// check: RootFork: two generations of one version could be shown to different readers
		if known >= 0 && !generations[known].same(next) {
			return nil, nil, decision.Errorf(decision.RootFork, "root version %d is known here with other keys", next.Version).
				At(here).Try("find out who signed it: two documents of one root version must not exist")
		}
		if known == 0 && len(generations) == 1 {
			continue // the anchor's own link
		}
		// check: StatementRejected: a generation that is left out is one whose consent is missing
		if next.Version != last.Version+1 {
			return nil, nil, decision.Errorf(decision.StatementRejected, "root version %d stands behind %d; links go up one by one", next.Version, last.Version).At(here)
		}
		if s, err = statement.Authenticate(link, statement.Roots{Threshold: last.Threshold, Keys: last.Keys}); err != nil {
			e := decision.From(err)
			if e.Where != "" {
				here += "." + e.Where
			}
			return nil, nil, e.At(here)
		}
		generations, links = append(generations, next), append(links, s)
	}
	return generations, links, nil
}

// Follow gives the roots that a chain leads to from r, for whoever is to sign next.
// Whether the links are for a cluster, and in time, is asked by FollowFor and by Verify.
func (r *Roots) Follow(chain []statement.Signed) (*Roots, error) {
	generations, _, err := walk(chain, r)
	if err != nil {
		return nil, err
	}
	return generations[len(generations)-1], nil
}

// Reaches reports whether a chain leads from r to other, which may be r itself, for a
// reader of that cluster. The error says why the chain leads nowhere.
func (r *Roots) Reaches(other *Roots, chain []statement.Signed, clusterID string, now time.Time) (bool, error) {
	generations, links, err := walk(chain, r)
	if err != nil {
		return false, err
	}
	if err := checkLinks(links, clusterID, now); err != nil {
		return false, err
	}
	return slices.ContainsFunc(generations, other.Same), nil
}

// FollowFor gives the roots that a chain leads to from r for a reader: each link is for
// the whole of its cluster, and in time.
func (r *Roots) FollowFor(chain []statement.Signed, clusterID string, now time.Time) (*Roots, error) {
	generations, links, err := walk(chain, r)
	if err != nil {
		return nil, err
	}
	if err := checkLinks(links, clusterID, now); err != nil {
		return nil, err
	}
	return generations[len(generations)-1], nil
}

// checkLinks checks what of the links depends on the reader: its cluster and its clock.
func checkLinks(links []*statement.Statement, clusterID string, now time.Time) error {
	for _, link := range links {
		// check: StatementRejected: another cluster's roots, signed by the same old keys, must not take over here
		if !link.For(clusterID) {
			return decision.Errorf(decision.StatementRejected, "root version %d is not for the whole of cluster %.80q", link.Serial, clusterID).
				At("spec.rootChain").Try("give the cluster that the links are for, or links that are for it")
		}
		if err := link.InTime(now); err != nil {
			return decision.From(err).At("spec.rootChain")
		}
	}
	return nil
}

// Roots are those that signed the policy; nil where nobody verified it.
func (p *Policy) Roots() *Roots {
	if len(p.generations) == 0 {
		return nil
	}
	return p.generations[len(p.generations)-1]
}

// forks finds a root version of which the two policies know different documents.
func (p *Policy) forks(other *Policy) (version int, found bool) {
	for _, a := range p.generations {
		for _, b := range other.generations {
			if a.Version == b.Version && !a.same(b) {
				return a.Version, true
			}
		}
	}
	return 0, false
}

// Generation gives the roots of that version, of those from the anchor to the last;
// nil where it is none of them.
func (p *Policy) Generation(version int) *Roots {
	for _, g := range p.generations {
		if g.Version == version {
			return g
		}
	}
	return nil
}

// Generations gives every generation of roots from the anchor's to the last.
func (p *Policy) Generations() []*Roots { return slices.Clone(p.generations) }
