package verify

import (
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// Snapshot is what is trusted at one moment. Its zero value trusts nothing.
type Snapshot struct {
	// Policy is the verified policy in force, nil when there is none.
	Policy *trustpolicy.Policy
	// ClusterID is the reader's own cluster, as its anchor names it.
	ClusterID string
	Now       time.Time
	// Ledger is what the cluster remembers; nil where nobody keeps one, as offline.
	Ledger Ledger
	// Controller is the account that writes composites; "" where there is none, as offline.
	Controller string
	// Stored is what else the cluster holds; nil where nobody knows.
	Stored Stored
	// Findings is the function of that name, by somebody who remembers its answers; nil asks it each time.
	Findings func(text []byte, phase script.Phase) []string
	// ForUpstreamShim says that hosts may have karpenter-provider-ssh's own shim. It changes warnings alone.
	ForUpstreamShim bool
	// Recent may be nil; who judges one thing needs none.
	Recent *Recent
}

// Ledger tells the marks of profiles and fragments.
type Ledger interface {
	// Mark is the highest version of the profile that was seen stored and verified.
	Mark(profile string) (ledger.Mark, bool)
	// Slot is the highest version of a fragment that was seen stored and verified.
	Slot(slot ledger.Slot) (ledger.SlotMark, bool)
	// Bundle reports whether a slot of a ContainerProfile in that bundle is known: its name is that of a composite.
	Bundle(namespace, name string) bool
	// ResetUsed reports whether a reset of the policy, by its id, was applied already.
	ResetUsed(id string) bool
}

// Stored tells what the cluster holds beside the object that is judged. It is read
// in memory: no method waits. Values are shared and never changed.
type Stored interface {
	// Profile is nil where there is none.
	Profile(name string) *ProfileFacts
	// Host is nil where there is none.
	Host(namespace, name string) *object.Host
	Hosts() []*object.Host
	NodeClasses() []*object.NodeClass
	HostRuns() []*object.HostRun
	// HostRunsFor are those that name the node. There are thousands of others.
	HostRunsFor(node string) []*object.HostRun
	HostStatements() []*object.HostStatement
	// NodeProviderID is spec.providerID of a Node.
	NodeProviderID(name string) (id string, exists bool)
}

// ProfileFacts is what is kept of a stored SSHJoinProfile: no script.
type ProfileFacts struct {
	object.Meta
	Version string
	// Digest is object.JoinProfile.Digest.
	Digest string
	// Signed says that some phase carries a signature, good or not.
	Signed bool
	// Warrants are those of its phases; nil where no script has one, or they contradict each other.
	Warrants map[script.Phase]*warrant.Warrant
}

// FactsOf gives what is kept of a profile.
func FactsOf(p *object.JoinProfile) *ProfileFacts {
	f := &ProfileFacts{Meta: p.Meta, Version: p.Version, Digest: p.Digest(), Signed: len(p.Signatures) > 0}
	if warrants, err := Warrants(p); err == nil {
		f.Warrants = warrants
	}
	return f
}

// usable refuses to judge by a policy that is missing or has expired.
func (s Snapshot) usable() error {
	// check: PolicyUnavailable: no policy must not mean no rules
	if s.Policy == nil {
		return decision.Errorf(decision.PolicyUnavailable, "no verified trust policy is loaded").
			Try("kubectl get trustpolicy cluster; hostwarrant policy verify FILE --root ROOTS")
	}
	// check: PolicyExpired: a policy whose updates are withheld must stop granting
	if s.Policy.Expired(s.Now) {
		return decision.Errorf(decision.PolicyExpired, "the trust policy expired at %s", s.Policy.Expires.Format(time.RFC3339)).
			Try("apply a trust policy with a higher version and a later expires")
	}
	return nil
}
