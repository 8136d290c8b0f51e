package verify

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// deletion judges a DELETE. Only a profile that verifies is held back: content that
// nobody vouches for can always be deleted.
func deletion(s Snapshot, r Request) decision.Decision {
	allowed := decision.Admit(r.Kind, r.Name, "may be deleted")
	if r.Kind != object.KindJoinProfile {
		return allowed
	}
	// check: PolicyUnavailable: without a policy nobody knows whether it verifies
	if err := s.usable(); s.Policy == nil {
		return decision.From(err).Denied(r.Kind, r.Name)
	}
	p, err := object.ParseJoinProfile(r.Old)
	if err != nil || !JoinProfile(s, p).Allowed() {
		return allowed
	}
	if err := deletable(s, p); err != nil {
		return decision.From(err).Denied(p.Kind, p.Name) // of a whole collection the request names none
	}
	return allowed
}

// deletable says whether a profile that verifies may go.
func deletable(s Snapshot, p *object.JoinProfile) error {
	if err := s.complete(); err != nil {
		return err
	}
	// check: InUse: karpenter-provider-ssh takes leave from the profile of the name; without it a host cannot leave
	if user := s.user(p.Name); user != "" {
		return decision.Errorf(decision.InUse, "%s needs it", user).Try("let the host leave first; to replace the profile, apply the next version")
	}
	v, numbered := markOf(p)
	m, known := s.mark(p.Name)
	// check: LedgerPending: a version that is deleted before it is remembered makes room for an older one
	if s.Ledger != nil && numbered && (!known || m.Serial < v.Serial) {
		return decision.Errorf(decision.LedgerPending, "serial %d is not in the ledger yet", v.Serial).
			Try("try again in a few seconds; if it stays so: kubectl -n hostwarrant-system get deployment hostwarrant-controller")
	}
	return nil
}

// user names a host or a run that needs the profile, "" where there is none.
func (s Snapshot) user(profile string) string {
	for _, h := range s.Stored.Hosts() {
		if h.Installed() == profile {
			return fmt.Sprintf("SSHHost %.63s/%.100s", h.Namespace, h.Name)
		}
	}
	for _, r := range s.Stored.HostRuns() {
		if r.Profile == profile && s.pending(r, s.mayRun(r)) {
			return fmt.Sprintf("HostRun %.63s/%.100s", r.Namespace, r.Name)
		}
	}
	return ""
}

// mayRun reports whether the policy lets a run have its profile on its host, which is there.
func (s Snapshot) mayRun(r *object.HostRun) bool {
	h := s.Stored.Host(r.Namespace, r.Host)
	return h != nil && placed(s.Policy.Hosts, r.Namespace, h) == nil && s.Policy.Hosts.MayRun(h.Class(), r.Profile)
}
