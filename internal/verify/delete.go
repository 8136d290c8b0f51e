package verify

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// deletion judges a DELETE. Only a profile or a statement that verifies is held back:
// content that nobody vouches for can always be deleted.
func deletion(s Snapshot, r Request) decision.Decision {
	allowed := decision.Admit(r.Kind, r.Name, "may be deleted")
	if r.Kind != object.KindJoinProfile && r.Kind != object.KindHostStatement {
		return allowed
	}
	// check: PolicyUnavailable: without a policy nobody knows whether it verifies
	if err := s.usable(); s.Policy == nil {
		return decision.From(err).Denied(r.Kind, r.Name)
	}
	if r.Kind == object.KindHostStatement {
		return statementDeletion(s, r, allowed)
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
	// check: LedgerPending: a version that is deleted before it is remembered makes room for an older one
	if serial, pending := s.unremembered(p); pending {
		return decision.Errorf(decision.LedgerPending, "serial %d is not in the ledger yet", serial).Try(untilRemembered)
	}
	return nil
}

const untilRemembered = "try again in a few seconds; if it stays so: kubectl -n hostwarrant-system get deployment hostwarrant-controller"

// unremembered gives the serial of a profile that the ledger does not hold yet.
func (s Snapshot) unremembered(p *object.JoinProfile) (serial int64, pending bool) {
	v, numbered := markOf(p)
	m, known := s.mark(p.Name)
	return v.Serial, s.Ledger != nil && numbered && (!known || m.Serial < v.Serial)
}

// lasting refuses a write that could end a version before the ledger has seen it: nobody is asked when
// the last finalizer of an object under deletion goes, nor would what is merely excused count for it.
func (s Snapshot) lasting(p, old *object.JoinProfile, a Answer) error {
	serial, pending := s.unremembered(p)
	// check: LedgerPending: written into an object under deletion, a version is gone as soon as its finalizer's owner likes, and an older one comes back
	if a.Outcome == OutcomeAllow && p.Deleting && pending {
		return decision.Errorf(decision.LedgerPending, "the stored object is being deleted, and serial %d is not in the ledger", serial).
			At("metadata.deletionTimestamp").Try("wait until it is gone (kubectl get -o yaml shows whose finalizers hold it), then create it anew")
	}
	if a.Outcome != OutcomeWaive || old == nil {
		return nil
	}
	serial, pending = s.unremembered(old)
	// check: LedgerPending: an exception that takes the place of a version before that is remembered makes room for an older one
	if pending && stood(s, old) {
		return decision.Errorf(decision.LedgerPending, "serial %d, which this would replace, is not in the ledger yet", serial).Try(untilRemembered)
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
