package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// waived says whether the policy takes this very content, though it is refused.
func (s Snapshot) waived(r Request, d decision.Decision) (decision.Decision, bool) {
	mine := func(w trustpolicy.Waiver) bool { return w.Kind == r.Kind && w.Name == d.Name }
	if r.Operation == Delete || !slices.ContainsFunc(s.Policy.Waivers, mine) {
		return d, false
	}
	digest, err := object.ContentDigest(r.Object)
	if err != nil {
		return d, false
	}
	w, ok := s.Policy.WaiverOf(r.Kind, d.Name, digest, s.Now)
	if !ok {
		return d, false
	}
	warning := fmt.Sprintf("waived until %s (%.60s), else refused: %s", w.Expires.Format(time.RFC3339), w.Reason, d.Message())
	return excused(d, decision.Waived, warning), true
}

// excused allows what d refuses, and says so.
func excused(d decision.Decision, reason decision.Reason, warning string) decision.Decision {
	return decision.Decision{
		Outcome: decision.Allow, Reason: reason, Kind: d.Kind, Name: d.Name, Where: d.Where,
		What: "would be refused: " + string(d.Reason) + ": " + d.What, Hint: d.Hint,
		Warnings: append([]string{decision.OneLine(warning, maxWarning)}, d.Warnings...),
	}
}

// profile judges a write of an SSHJoinProfile.
func (s Snapshot) profile(r Request) (Answer, error) {
	p, err := object.ParseJoinProfile(r.Object)
	if err != nil {
		return Answer{}, err
	}
	if err := named(r, p.Meta); err != nil {
		return Answer{}, err
	}
	var old *object.JoinProfile
	if r.Operation == Update {
		// One that cannot be read has no version that anybody vouched for.
		if was, err := object.ParseJoinProfile(r.Old); err == nil {
			old = was
		}
	}
	a := s.profileVersion(r, p, old)
	if err := s.lasting(p, old, a); err != nil {
		return s.inMode(decision.From(err).Denied(p.Kind, p.Name)), nil // no waiver speaks of that
	}
	return a, nil
}

// profileVersion judges a version of an SSHJoinProfile that is to take the place of old, where there is one.
func (s Snapshot) profileVersion(r Request, p, old *object.JoinProfile) Answer {
	d := wholeProfile(s, p, old)
	if d.Allowed() {
		d.Warnings = append(broken(s, p), append(d.Warnings, s.findings(p)...)...)
		return Answer{OutcomeAllow, d}
	}
	if until, ok := s.unguarded(p, old, d); ok {
		warning := fmt.Sprintf("unguarded until %s, for Raw hosts: nobody vouches for these scripts (%s)", until.Format(time.RFC3339), d.Reason)
		d = excused(d, decision.Unguarded, warning)
		d.Warnings = append(d.Warnings, broken(s, p)...)
		return Answer{OutcomeWaive, d}
	}
	return s.answer(r, d)
}

// unguarded says whether the policy takes a profile without signatures: one that has
// none at all, and of which no signed version was ever seen, nor takes it the place of one.
func (s Snapshot) unguarded(p, old *object.JoinProfile, d decision.Decision) (until time.Time, ok bool) {
	if firm(d.Reason) || s.usable() != nil || len(p.Signatures) > 0 {
		return until, false
	}
	// check: Unsigned: a profile that was signed once must not lose its signatures to a migration list
	if _, signed := s.mark(p.Name); signed {
		return until, false
	}
	// check: Unsigned: what is not remembered yet, or never is for want of a serial, was signed all the same
	if old != nil && stood(s, old) {
		return until, false
	}
	return s.Policy.UnguardedUntil(p.Name, s.Now)
}

// host judges a write of an SSHHost.
func (s Snapshot) host(r Request) (Answer, error) {
	h, err := object.ParseHost(r.Object)
	if err != nil {
		return Answer{}, err
	}
	if err := named(r, h.Meta); err != nil {
		return Answer{}, err
	}
	var old *object.Host
	if r.Operation == Update {
		// check: ModeDowngrade: a stored host that cannot be read must not count as one that was never Verified
		if old, err = object.ParseHost(r.Old); err != nil {
			old = &object.Host{ExecMode: object.ExecVerified}
		}
	}
	until, listed := time.Time{}, false
	if s.usable() == nil && h.ExecMode == object.ExecRaw {
		until, listed = s.Policy.Hosts.RawUntil(h.Namespace, h.Name, s.Now)
	}
	if !listed {
		d := Host(s, h, old)
		if d.Allowed() {
			d.Warnings = append(d.Warnings, strays(s, h)...)
		}
		return s.answer(r, d), nil
	}
	if err := judgeHost(s, h, old, true); err != nil {
		return Answer{}, err
	}
	warning := fmt.Sprintf("Raw until %s: this host runs scripts that nobody vouched for", until.Format(time.RFC3339))
	return Answer{OutcomeWaive, excused(Host(s, h, old), decision.Unguarded, warning)}, nil
}
