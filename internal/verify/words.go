package verify

import (
	"cmp"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Word is a HostStatement that the roots vouch for.
type Word struct {
	Name string // of the object
	*statement.Statement
	Signed statement.Signed
}

// Words are what the roots say to the hosts of a cluster.
type Words struct {
	// All are those that are vouched for: root links by version, then the others by kind and serial.
	All []Word
	// Refused are the rest, by the name of the object.
	Refused map[string]decision.Decision

	clusterID   string
	generations []*trustpolicy.Roots // from the anchor's to the last that a stored link leads to
}

// NewWords judges the HostStatements that a cluster holds: root links one by one from the roots that the
// policy's anchor names, and the others by the last generation, since a host that was told of that asks no
// other. The error says why nothing can be judged.
func NewWords(s Snapshot, all []*object.HostStatement) (Words, error) {
	if err := s.usable(); err != nil {
		return Words{}, err
	}
	w := Words{Refused: map[string]decision.Decision{}, clusterID: s.ClusterID, generations: s.Policy.Generations()}
	for _, h := range inOrder(all) {
		word, err := w.judge(s, h)
		if err != nil {
			w.Refused[h.Name] = decision.From(err).Denied(h.Kind, h.Name)
			continue
		}
		w.add(word)
	}
	return w, nil
}

// inOrder puts root links first, by version, and leaves out nothing. What cannot be read comes last.
func inOrder(all []*object.HostStatement) []*object.HostStatement {
	type read struct {
		*object.HostStatement
		rank   int
		serial int64
	}
	kinds := statement.Kinds() // roots is the first
	sorted := make([]read, 0, len(all))
	for _, h := range all {
		r := read{HostStatement: h, rank: len(kinds)}
		if s, err := statement.Parse([]byte(h.Statement)); err == nil {
			r.rank, r.serial = slices.Index(kinds, s.Kind), s.Serial
		}
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b read) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.serial, b.serial), cmp.Compare(a.Name, b.Name))
	})
	out := make([]*object.HostStatement, 0, len(all))
	for _, r := range sorted {
		out = append(out, r.HostStatement)
	}
	return out
}

// add takes a word that was judged.
func (w *Words) add(word Word) {
	w.All = append(w.All, word)
	if word.Kind == statement.KindRoots && w.generation(word.Serial) == nil {
		if next, err := trustpolicy.ParseRoots(word.Signed.Text); err == nil {
			w.generations = append(w.generations, next)
		}
	}
}

func (w *Words) last() *trustpolicy.Roots { return w.generations[len(w.generations)-1] }

func (w *Words) generation(version int64) *trustpolicy.Roots {
	i := slices.IndexFunc(w.generations, func(r *trustpolicy.Roots) bool { return int64(r.Version) == version })
	if i < 0 {
		return nil
	}
	return w.generations[i]
}

// judge says whether the roots vouch for a HostStatement, here and now.
func (w *Words) judge(s Snapshot, h *object.HostStatement) (Word, error) {
	const hint = "hostwarrant statement verify FILE --root ROOTS --cluster ID"
	signed := h.Signed()
	// Which roots are to be asked stands in the text, which is bounded and strict; nothing else of it counts yet.
	read, err := statement.Parse(signed.Text)
	if err != nil {
		return Word{}, decision.From(err).At("spec.statement").Try(hint)
	}
	// check: TargetRefused: a statement of another cluster's, signed by the same roots
	if read.Cluster != "" && read.Cluster != s.ClusterID {
		return Word{}, decision.Errorf(decision.TargetRefused, "the statement is for cluster %s, this is %.63q", read.Cluster, s.ClusterID).
			At("spec.statement").Try("apply it in the cluster that it names")
	}
	asked := w.last()
	if read.Kind == statement.KindRoots {
		if asked, err = w.before(read, signed.Text); err != nil {
			return Word{}, err
		}
	}
	st, err := statement.Verify(signed, statement.Roots{Threshold: asked.Threshold, Keys: asked.Keys}, s.Now)
	if err != nil {
		e := decision.From(err)
		if e.Hint == "" {
			e.Hint = hint
		}
		return Word{}, e.At("spec")
	}
	return Word{Name: h.Name, Statement: st, Signed: signed}, nil
}

// before gives the roots that vouch for a root link: the generation before it.
func (w *Words) before(link *statement.Statement, text []byte) (*trustpolicy.Roots, error) {
	// check: TargetRefused: hosts of one cluster that ask different roots, of which the others' statements reach only some
	if !link.For(w.clusterID) {
		return nil, decision.Errorf(decision.TargetRefused, "root version %d is not for the whole of cluster %.63q", link.Serial, w.clusterID).
			At("spec.statement").Try("name the cluster, and no target, in a roots statement")
	}
	before, known := w.generation(link.Serial-1), w.generation(link.Serial)
	if known != nil {
		named, err := trustpolicy.ParseRoots(text)
		if err != nil {
			return nil, decision.From(err).At("spec.statement")
		}
		// check: RootFork: of two documents of one root version, some hosts would follow the one and some the other
		if !known.Same(named) {
			return nil, decision.Errorf(decision.RootFork, "root version %d is known here with other keys", link.Serial).
				At("spec.statement").Try("find out who signed it: two documents of one root version must not exist")
		}
	}
	switch {
	case before != nil:
		return before, nil
	case known != nil:
		return known, nil // the anchor's own link: it is known by its bytes, and the hosts ask the roots before it
	default: // a generation that is left out is one whose consent is missing
		return nil, decision.Errorf(decision.StatementRejected, "root version %d does not follow %d", link.Serial, w.last().Version).
			At("spec.statement").Try("apply the links one by one, the oldest first")
	}
}

// Place is what is known of a host that a statement may be for.
type Place struct {
	Class string
	// Keys are fingerprints of the host's keys.
	Keys []string
	// AnyKey says that its keys are not known, so that a statement for some host may be for it.
	AnyKey bool
}

// Holds reports whether a statement is for that host of the cluster.
func (p Place) Holds(s *statement.Statement) bool {
	classes, hosts, inClass, isHost := false, false, false, false
	for _, target := range s.Targets {
		if class, ok := cutWord(target, "class "); ok {
			classes, inClass = true, inClass || class == p.Class
		}
		if key, ok := cutWord(target, "host "); ok {
			hosts, isHost = true, isHost || p.AnyKey || slices.Contains(p.Keys, key)
		}
	}
	return (!classes || inClass) && (!hosts || isHost)
}

func cutWord(text, word string) (string, bool) {
	if len(text) <= len(word) || text[:len(word)] != word {
		return "", false
	}
	return text[len(word):], true
}

// For gives what a host is told, in the order in which it is: every root link, and of each other kind the
// newest that is for it.
func (w Words) For(p Place) []Word {
	var out []Word
	for _, word := range w.All {
		n := len(out)
		switch {
		case !p.Holds(word.Statement):
		case n == 0 || out[n-1].Kind != word.Kind:
			out = append(out, word)
		case out[n-1].Serial == word.Serial: // another object that says the same
		case word.Kind == statement.KindRoots:
			out = append(out, word)
		default:
			out[n-1] = word
		}
	}
	return out
}

// superseded reports whether a word may go: for every host that it is for, there is a later one. A root link
// is the way of hosts that were away, for as long as the anchor does not start behind it.
func (w Words) superseded(old Word) bool {
	if old.Kind == statement.KindRoots && int64(w.generations[0].Version) < old.Serial {
		return false
	}
	return slices.ContainsFunc(w.All, func(word Word) bool {
		later := word.Serial > old.Serial || word.Serial == old.Serial && word.Name != old.Name
		return word.Kind == old.Kind && later && covers(word.Statement, old.Statement)
	})
}

// covers reports whether one statement is for every host of the cluster that another is for.
func covers(by, of *statement.Statement) bool {
	if len(by.Targets) == 0 || by.Targets[0] == "any" {
		return true
	}
	return slices.Equal(slices.Sorted(slices.Values(by.Targets)), slices.Sorted(slices.Values(of.Targets)))
}
