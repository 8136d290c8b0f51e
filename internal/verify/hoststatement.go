package verify

import (
	"fmt"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// MaxStatements is how many HostStatements a cluster may hold that the roots vouch for: what a relay reads,
// and a host that was away long is told, has to end somewhere.
const MaxStatements = 256

// statementWrite judges a write of a HostStatement.
func (s Snapshot) statementWrite(r Request) (Answer, error) {
	h, err := object.ParseHostStatement(r.Object)
	if err != nil {
		return Answer{}, err
	}
	if err := named(r, h.Meta); err != nil {
		return Answer{}, err
	}
	var old *object.HostStatement
	if r.Operation == Update {
		// One that cannot be read is one that nobody vouched for.
		if was, err := object.ParseHostStatement(r.Old); err == nil {
			old = was
		}
	}
	return s.answer(r, HostStatement(s, h, old)), nil
}

// HostStatement judges a HostStatement that is to be stored, in the place of old where there is one: the
// roots vouch for it, it is for this cluster, and not older than what is stored.
func HostStatement(s Snapshot, h, old *object.HostStatement) decision.Decision {
	word, err := judgeStatement(s, h, old)
	if err != nil {
		return decision.From(err).Denied(h.Kind, h.Name)
	}
	return decision.Admit(h.Kind, h.Name, fmt.Sprintf("%s, serial %d", word.Kind, word.Serial))
}

func judgeStatement(s Snapshot, h, old *object.HostStatement) (Word, error) {
	others, err := s.otherWords(h.Name)
	if err != nil {
		return Word{}, err
	}
	word, err := others.judge(s, h)
	if err != nil {
		return Word{}, err
	}
	if err := others.follows(word); err != nil {
		return Word{}, err
	}
	// check: TooLarge: statements that nobody takes away, until no relay can read them all
	if len(others.All) >= MaxStatements {
		return Word{}, decision.Errorf(decision.TooLarge, "the cluster holds %d HostStatements, and may not hold more", len(others.All)).
			Try("delete those that later ones supersede: kubectl get hoststatements")
	}
	if old == nil {
		return word, nil
	}
	was, err := others.judge(s, old)
	if err != nil {
		return word, nil //nolint:nilerr // what nobody vouches for may be replaced
	}
	others.add(word)
	return word, others.mayGo(was, "replaced")
}

// otherWords are those of the cluster but for one object.
func (s Snapshot) otherWords(but string) (Words, error) {
	if err := s.complete(); err != nil {
		return Words{}, err
	}
	stored := slices.DeleteFunc(slices.Clone(s.Stored.HostStatements()), func(o *object.HostStatement) bool { return o.Name == but })
	return NewWords(s, stored)
}

// follows wants a statement that is newer than every stored one of its kind. Root links are held against
// the generations that are known.
func (w Words) follows(word Word) error {
	if word.Kind == statement.KindRoots {
		return nil
	}
	for _, o := range w.All {
		if o.Kind != word.Kind {
			continue
		}
		// check: SerialRollback: an older statement, which would take back a revocation on hosts that missed the newer one
		if o.Serial > word.Serial {
			return decision.Errorf(decision.SerialRollback, "HostStatement %.100q has serial %d of kind %s, this has %d", o.Name, o.Serial, o.Kind, word.Serial).
				At("spec.statement").Try("sign a statement with a higher serial: hostwarrant statement sign " + string(word.Kind))
		}
		// check: SerialReused: two statements of one serial, of which hosts know the one or the other
		if o.Serial == word.Serial && string(o.Signed.Text) != string(word.Signed.Text) {
			return decision.Errorf(decision.SerialReused, "HostStatement %.100q has serial %d of kind %s with other bytes", o.Name, o.Serial, o.Kind).
				At("spec.statement").Try("sign a statement with a higher serial: hostwarrant statement sign " + string(word.Kind))
		}
	}
	return nil
}

// mayGo wants a statement that is taken away to be superseded.
func (w Words) mayGo(old Word, how string) error {
	// check: InUse: hosts that were away would never hear of a revocation, and serials would start anew
	if !w.superseded(old) {
		return decision.Errorf(decision.InUse, "is the newest of kind %s for some hosts (serial %d), and may not be %s", old.Kind, old.Serial, how).
			Try("apply a later one for the same hosts first; root links stay until the anchor is of their version")
	}
	return nil
}

// statementDeletion judges the DELETE of a HostStatement.
func statementDeletion(s Snapshot, r Request, allowed decision.Decision) decision.Decision {
	h, err := object.ParseHostStatement(r.Old)
	if err != nil {
		return allowed
	}
	if err := statementDeletable(s, h); err != nil {
		return decision.From(err).Denied(h.Kind, h.Name) // of a whole collection the request names none
	}
	return allowed
}

// statementDeletable says whether a HostStatement may be deleted.
func statementDeletable(s Snapshot, h *object.HostStatement) error {
	others, err := s.otherWords(h.Name)
	if err != nil {
		return err
	}
	word, err := others.judge(s, h)
	if err != nil {
		return nil //nolint:nilerr // what nobody vouches for can always be deleted
	}
	return others.mayGo(word, "deleted")
}
