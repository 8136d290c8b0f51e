package verify

import (
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// Recordable gives what a ledger may remember of a profile that was seen stored: it
// verifies in enforce terms, by the ledger as it is, and has a warrant. Where the mark
// is lower than the one that is there, Policy.ResetOf gives the reset that lets it be.
func Recordable(s Snapshot, p *object.JoinProfile) (ledger.Mark, bool) {
	// check: SerialJump: what nobody vouched for, or was only excused, must not move the ledger
	if !JoinProfile(s, p).Allowed() {
		return ledger.Mark{}, false
	}
	return markOf(p)
}

// markOf gives serial and digest of a profile, which must agree with itself.
func markOf(p *object.JoinProfile) (ledger.Mark, bool) {
	warrants, err := Warrants(p)
	if err != nil {
		return ledger.Mark{}, false
	}
	for _, w := range warrants {
		return ledger.Mark{Serial: w.Serial, Digest: p.Digest()}, true
	}
	return ledger.Mark{}, false
}

// maxProfileName is the longest name of a profile that has a record, which is named
// "profile." and that name (docs/spec/ledger.md).
const maxProfileName = 253 - len("profile.")

// follows judges the serial of a profile by what is remembered of it, and by what it
// takes the place of.
func follows(s Snapshot, p, old *object.JoinProfile) error {
	// check: Malformed: a version that no ledger can hold could be rolled back, and never be deleted
	if s.Ledger != nil && len(p.Name) > maxProfileName {
		return decision.Errorf(decision.Malformed, "a name of %d characters has no record in the ledger, which takes %d", len(p.Name), maxProfileName).
			At("metadata.name").Try("give the profile a shorter name, and sign it for that")
	}
	v, numbered := markOf(p)
	for _, known := range []func() (ledger.Mark, bool){
		func() (ledger.Mark, bool) { return s.mark(p.Name) },
		func() (ledger.Mark, bool) { return replaced(s, old) },
	} {
		m, ok := known()
		// check: SerialRollback: a script from before there were serials is older than any that has one
		if ok && !numbered {
			return decision.Errorf(decision.SerialRollback, "the scripts have no serial, and %d was seen", m.Serial).
				At("spec.version").Try("hostwarrant sign -i FILE --key KEY --serial N --target T")
		}
	}
	if !numbered || s.reset(p.Name, v) {
		return nil
	}
	if m, ok := replaced(s, old); ok {
		if err := m.Next(v, v.Serial); err != nil {
			return decision.From(err).At("spec.version")
		}
	}
	if err := s.remembered(p.Name, v); err != nil {
		return decision.From(err).At("spec.version")
	}
	return nil
}

// remembered judges a version by the ledger; nobody keeps one offline.
func (s Snapshot) remembered(profile string, v ledger.Mark) error {
	if s.Ledger == nil {
		return nil
	}
	floor, exact := s.Policy.Floor(profile)
	if !exact {
		floor = 0
	}
	if m, ok := s.Ledger.Mark(profile); ok {
		return m.Next(v, floor)
	}
	return ledger.First(v, floor, exact)
}

func (s Snapshot) mark(profile string) (ledger.Mark, bool) {
	if s.Ledger == nil {
		return ledger.Mark{}, false
	}
	return s.Ledger.Mark(profile)
}

// reset reports whether the policy lets exactly this version in, and did not yet.
func (s Snapshot) reset(profile string, v ledger.Mark) bool {
	r, ok := s.Policy.ResetOf(profile, v.Serial, v.Digest)
	// check: SerialRollback: a reset that was used must not let the old version in for ever
	if ok && s.Ledger != nil && s.Ledger.ResetUsed(r.ID()) {
		return false
	}
	return ok
}

// replaced gives the version that an update takes the place of, if that was vouched
// for while its warrants were in force: one that was admitted in mode warn must not
// block honest ones with a serial that nobody signed, or that no ledger would take.
func replaced(s Snapshot, old *object.JoinProfile) (ledger.Mark, bool) {
	if old == nil {
		return ledger.Mark{}, false
	}
	m, ok := markOf(old)
	if !ok {
		return ledger.Mark{}, false
	}
	return m, stood(s, old) && s.remembered(old.Name, m) == nil
}

// stood reports whether a stored version is vouched for, as of a time at which its warrants were in force.
func stood(s Snapshot, old *object.JoinProfile) bool {
	warrants, err := Warrants(old)
	if err != nil {
		return false
	}
	for _, w := range warrants {
		if last := time.Unix(w.NotAfter-1, 0); !w.Never && last.Before(s.Now) {
			s.Now = last
		}
	}
	return judged(s, old, old.Phases(), "", "").Allowed()
}
