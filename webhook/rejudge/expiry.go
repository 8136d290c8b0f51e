package rejudge

import (
	"math"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// earliest is the first of the times that lies after now, or best where that is earlier. The zero
// time is none.
func earliest(now, best time.Time, times ...time.Time) time.Time {
	for _, t := range times {
		if t.After(now) && (best.IsZero() || t.Before(best)) {
			best = t
		}
	}
	return best
}

// policyTimes are the moments at which a policy says something else, though it stays the same.
func policyTimes(p *trustpolicy.Policy) []time.Time {
	if p == nil {
		return nil
	}
	times := []time.Time{p.Expires}
	for _, s := range p.Signers {
		times = append(times, s.ValidBefore)
	}
	for _, u := range p.Unguarded {
		times = append(times, u.Until)
	}
	for _, r := range p.Hosts.Raw {
		times = append(times, r.Until)
	}
	for _, w := range p.Waivers {
		times = append(times, w.Expires)
	}
	return times
}

// profileTimes are the moments at which a profile begins or ceases to verify: by its warrants, by the
// longest validity that the policy allows, and by the certificates among its signatures.
func profileTimes(s verify.Snapshot, p *object.JoinProfile) []time.Time {
	var times []time.Time
	warrants, err := verify.Warrants(p)
	if err != nil {
		warrants = nil // what cannot be read does not come into force
	}
	for _, w := range warrants {
		if w == nil {
			continue
		}
		if w.HasNotBefore {
			times = append(times, time.Unix(w.NotBefore, 0))
		}
		if !w.Never {
			end := time.Unix(w.NotAfter, 0)
			times = append(times, end)
			if s.Policy != nil {
				times = append(times, end.Add(-s.Policy.MaxValidity))
			}
		}
	}
	for _, armored := range p.Signatures {
		signatures, err := sshsig.ParseAllWithCertificates([]byte(armored))
		if err != nil {
			continue
		}
		for _, signature := range signatures {
			if c := signature.Certificate(); c != nil {
				times = append(times, unix(c.ValidAfter), unix(c.ValidBefore))
			}
		}
	}
	return times
}

// unix converts a time of a certificate; "for ever" is none.
func unix(seconds uint64) time.Time {
	if seconds > math.MaxInt32*100 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}
