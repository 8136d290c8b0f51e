package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// Warrants reads the warrants of a profile's scripts and checks that they agree
// with the object and with each other. It gives nil where no script has one. It
// needs no policy and no time, so that the CLI asks the same before it signs.
// With an error it gives those that it could read; the error carries WarrantMalformed, WarrantMissing or WarrantMismatch.
func Warrants(p *object.JoinProfile) (map[script.Phase]*warrant.Warrant, error) {
	all := map[script.Phase]*warrant.Warrant{}
	for _, phase := range p.Phases() {
		w, err := warrant.Find([]byte(p.Scripts[phase]))
		if err != nil {
			return all, decision.From(err).At(string(phase))
		}
		if w != nil {
			all[phase] = w
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	for _, phase := range p.Phases() {
		w := all[phase]
		// check: WarrantMissing: a script without limits beside limited ones is the one a thief would carry
		if w == nil {
			return all, decision.Errorf(decision.WarrantMissing, "other phases of the profile have a warrant, this one has none").
				At(string(phase)).Try("hostwarrant sign -i FILE --key KEY --serial N --target T")
		}
		if err := agrees(w, p, phase, all); err != nil {
			return all, decision.From(err).At(string(phase)).Try("hostwarrant sign -i FILE --key KEY writes them anew")
		}
	}
	return all, nil
}

// agrees compares what a warrant says with the object that holds its script.
func agrees(w *warrant.Warrant, p *object.JoinProfile, phase script.Phase, all map[script.Phase]*warrant.Warrant) error {
	// check: WarrantMismatch: one team's signed script must not be filed under another team's profile
	if w.Profile != p.Name {
		return mismatched("the warrant is for profile %.80q", w.Profile)
	}
	// check: WarrantMismatch: a leave script filed as join, or the other way round
	if w.Phase != phase {
		return mismatched("the warrant is for phase %s", w.Phase)
	}
	// check: WarrantMismatch: phases of two versions must not be put together
	if version := strconv.FormatInt(w.Serial, 10); version != p.Version {
		return mismatched("the warrant has serial %s, but spec.version is %.63q", version, p.Version)
	}
	if err := longEnough(w, p, phase); err != nil {
		return err
	}
	return leavesAsSigned(w, p, phase, all)
}

func mismatched(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.WarrantMismatch, format, args...)
}

// longEnough wants the object to let a script run as long as its warrant says.
func longEnough(w *warrant.Warrant, p *object.JoinProfile, phase script.Phase) error {
	if phase == script.Uninstall {
		return nil // upstream has no bound for it
	}
	bound, given := p.Timeouts[phase]
	if !given {
		bound = time.Duration(warrant.DefaultTimeout(phase)) * time.Second
	}
	// check: WarrantMismatch: a script that is cut off half-way by a bound that nobody signed
	if need := time.Duration(w.TimeoutSeconds()) * time.Second; bound < need {
		return mismatched("the warrant asks for %d s, but spec.timeouts.%s allows %s", w.TimeoutSeconds(), phase, bound)
	}
	return nil
}

// leavesAsSigned wants install and join to name the scripts that take the host out again: a warrant
// that never expires is only good for those.
func leavesAsSigned(w *warrant.Warrant, p *object.JoinProfile, phase script.Phase, all map[script.Phase]*warrant.Warrant) error {
	if phase != script.Install && phase != script.Join {
		return nil
	}
	for _, leaving := range []script.Phase{script.Leave, script.Uninstall} {
		named, text := w.LeaveSHA256, p.Scripts[leaving]
		if leaving == script.Uninstall {
			named = w.UninstallSHA256
		}
		if named == "" {
			other := all[leaving]
			// check: WarrantMismatch: a stolen key could sign a leave script that is good for ever
			if other != nil && other.Never {
				return mismatched("the warrant lacks %s-sha256, and the %s script never expires", leaving, leaving)
			}
			continue
		}
		sum := sha256.Sum256([]byte(text))
		// check: WarrantMismatch: the host would keep the digest of a script that nobody has
		if text == "" || named != hex.EncodeToString(sum[:]) {
			return mismatched("%s-sha256 in the warrant is not of the %s script here", leaving, leaving)
		}
	}
	return nil
}

// warranted judges what a warrant says of time, place and version; nil is a script without one.
func warranted(s Snapshot, profile string, w *warrant.Warrant) error {
	floor, _ := s.Policy.Floor(profile)
	if w == nil {
		// check: WarrantMissing: without a warrant a script is good on every host, for ever
		if s.Policy.RequireWarrant {
			return decision.Errorf(decision.WarrantMissing, "the policy requires a warrant").
				Try("hostwarrant sign -i FILE --key KEY --serial N --target T")
		}
		// check: SerialRollback: a script from before there were serials is older than any floor
		if floor > 0 {
			return decision.Errorf(decision.SerialRollback, "the script has no serial, and the policy's floor is %d", floor).
				Try("hostwarrant sign -i FILE --key KEY --serial N --target T")
		}
		return nil
	}
	if err := inTime(s, w); err != nil {
		return err
	}
	// check: SerialRollback: a version with a known fault must not come back
	if w.Serial < floor {
		return decision.Errorf(decision.SerialRollback, "serial %d is below %d, the policy's floor", w.Serial, floor).
			Try("sign a higher serial: hostwarrant sign -i FILE --key KEY --serial N")
	}
	return here(s, w)
}

func inTime(s Snapshot, w *warrant.Warrant) error {
	now := s.Now.Unix()
	// check: NotYetValid: a script that was signed for later
	if w.HasNotBefore && now < w.NotBefore {
		return decision.Errorf(decision.NotYetValid, "the warrant is valid from %s", utc(w.NotBefore)).
			Try("wait, or check the clock here and where it was signed")
	}
	if w.Never {
		return nil
	}
	const renew = "hostwarrant sign -i FILE --key KEY --serial N"
	// check: Expired: withheld updates are bounded by expiry
	if now >= w.NotAfter {
		return decision.Errorf(decision.Expired, "the warrant ended at %s", utc(w.NotAfter)).Try(renew)
	}
	joins := w.Phase == script.Install || w.Phase == script.Join
	// check: ValidityTooLong: a script that nobody has to look at again
	if latest := s.Now.Add(s.Policy.MaxValidity); joins && w.NotAfter > latest.Unix() {
		return decision.Errorf(decision.ValidityTooLong, "the warrant is valid until %s, more than %d days from now",
			utc(w.NotAfter), int(s.Policy.MaxValidity.Hours()/24)).Try(renew + " --valid-for DAYSd")
	}
	return nil
}

func utc(epoch int64) string { return time.Unix(epoch, 0).UTC().Format(time.RFC3339) }

// here wants the cluster to be one of those that a warrant names, if it names any.
func here(s Snapshot, w *warrant.Warrant) error {
	var named []string
	for _, target := range w.Targets {
		if target.Kind == warrant.TargetCluster {
			named = append(named, target.Value)
		}
	}
	// check: TargetRefused: a script for another cluster
	if len(named) > 0 && !slices.Contains(named, s.ClusterID) {
		return decision.Errorf(decision.TargetRefused, "the warrant is for cluster %s, this is %.63q", list(named), s.ClusterID).
			Try("apply it where it belongs, or sign it with --target \"cluster ID\"")
	}
	return nil
}
