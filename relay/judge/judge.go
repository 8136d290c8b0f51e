package judge

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Stored is what the API server holds, as JSON; nil is absent.
type Stored struct {
	Host    []byte
	Claimed bool // by karpenter-provider-ssh
	Profile []byte
}

// Host says whether the host may be dialled at all for this run.
func Host(s verify.Snapshot, run *v1alpha1.HostRun, st Stored) (*object.Host, *Refusal) {
	if st.Host == nil {
		return nil, Refuse(ReasonHostNotFound, fmt.Sprintf("there is no SSHHost %q in namespace %q", run.Spec.HostRef.Name, run.Namespace))
	}
	h, err := object.ParseHost(st.Host)
	if err != nil {
		return nil, RefusedBy(decision.From(err).Denied(object.KindHost, run.Spec.HostRef.Name))
	}
	// The engine refuses a host that is not Verified (RawRefused), other users,
	// ports, commands and signers. What was stored before counts for nothing here.
	// check: RawRefused: a host that was admitted under another policy, or past the webhook, runs what nobody vouched for
	if d := verify.Host(s, h, nil); !d.Allowed() {
		return nil, RefusedBy(d)
	}
	leaving := run.Spec.Phase == v1alpha1.HostRunLeave || run.Spec.Phase == v1alpha1.HostRunUninstall
	// check: InUse: a host that is being given up joins once more
	if h.Deleting && !leaving {
		return nil, Refuse(ReasonHostNotFound, fmt.Sprintf("the SSHHost %q is being deleted: only leave and uninstall still run there", h.Name))
	}
	// check: InUse: two controllers that change one host at once
	if st.Claimed {
		return nil, Refuse(ReasonHostClaimed, fmt.Sprintf("the SSHHost %q is claimed by karpenter-provider-ssh", h.Name))
	}
	return h, nil
}

// Run says whether the run itself is within the policy: its namespace, host class, profile and
// node name. What was admitted is not believed: it may have been admitted under another policy.
func Run(s verify.Snapshot, run *v1alpha1.HostRun) *Refusal {
	o, err := readRun(run)
	if err != nil {
		return RefusedBy(decision.From(err).Denied(object.KindHostRun, run.Name))
	}
	// check: NamespaceRefused,HostClassRefused,NodeNameRefused,NodeNameTaken,ProfileRefused: a run that was admitted under another policy, or past the webhook
	if d := verify.StoredHostRun(s, o); !d.Allowed() {
		return RefusedBy(d)
	}
	return nil
}

// Sending says whether the run may be sent, and gives the profile whose script is; nil for a probe.
func Sending(s verify.Snapshot, run *v1alpha1.HostRun, st Stored) (*object.JoinProfile, *Refusal) {
	if run.Spec.Phase == v1alpha1.HostRunProbe {
		return nil, Run(s, run)
	}
	p, refused := Phase(s, run, st)
	if refused != nil {
		return nil, refused
	}
	return p, Run(s, run)
}

// Phase says whether the phase of the profile may run, and gives its script.
func Phase(s verify.Snapshot, run *v1alpha1.HostRun, st Stored) (*object.JoinProfile, *Refusal) {
	name := run.Spec.ProfileRef.Name
	if st.Profile == nil {
		return nil, Refuse(ReasonProfileNotFound, fmt.Sprintf("there is no SSHJoinProfile %q", name))
	}
	p, err := object.ParseJoinProfile(st.Profile)
	if err != nil {
		return nil, RefusedBy(decision.From(err).Denied(object.KindJoinProfile, name))
	}
	phase := script.Phase(run.Spec.Phase)
	// check: ProfileRefused: a profile that was withdrawn, and is held by a finalizer, runs once more
	if p.Deleting && phase != script.Leave && phase != script.Uninstall {
		return nil, Refuse(ReasonProfileNotFound, fmt.Sprintf("the SSHJoinProfile %q is being deleted: only leave and uninstall still run", name))
	}
	// check: Unsigned: a script that was admitted under another policy, or past the webhook, leaves the cluster
	if d := verify.Phase(s, p, phase); !d.Allowed() {
		return nil, RefusedBy(d)
	}
	return p, nil
}
