package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

// HostRun judges whether a run may be asked for: namespace, host class, node name and
// profile by the policy and by what is stored. Whether the host and the scripts
// verify is asked of Host and Phase.
func HostRun(s Snapshot, r *object.HostRun) decision.Decision { return hostRun(s, r, s.holds) }

// StoredHostRun is HostRun of one that was admitted: of several that were admitted at
// once for one node name, one has it.
func StoredHostRun(s Snapshot, r *object.HostRun) decision.Decision {
	return hostRun(s, r, s.holdsBefore)
}

// rival says whether another run has the node name of r.
type rival func(o, r *object.HostRun) bool

func hostRun(s Snapshot, r *object.HostRun, has rival) decision.Decision {
	if err := judgeHostRun(s, r, has); err != nil {
		return decision.From(err).Denied(r.Kind, r.Name)
	}
	d := decision.Admit(r.Kind, r.Name, "asks for nothing beyond the policy")
	if s.Stored.Host(r.Namespace, r.Host) == nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("spec.hostRef: there is no SSHHost %.100q in namespace %s yet; it is judged before anything runs", r.Host, r.Namespace))
	}
	if !r.Probes() && s.Stored.Profile(r.Profile) == nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("spec.profileRef: there is no SSHJoinProfile %.100q yet; it is judged before anything runs", r.Profile))
	}
	return d
}

func judgeHostRun(s Snapshot, r *object.HostRun, has rival) error {
	if err := s.complete(); err != nil {
		return err
	}
	host := s.Stored.Host(r.Namespace, r.Host)
	if err := placed(s.Policy.Hosts, r.Namespace, host); err != nil {
		return err
	}
	if err := nodeName(s, r, has); err != nil {
		return err
	}
	if r.Probes() {
		return nil // no script runs
	}
	// check: ProfileRefused: a signed profile on hosts that it was not made for
	if host != nil && !s.Policy.Hosts.MayRun(host.Class(), r.Profile) {
		return decision.Errorf(decision.ProfileRefused, "the policy does not allow the profile %.60q on hosts of class %.63q", r.Profile, host.Class()).
			At("spec.profileRef").Try("use one of joinProfiles.hosts.profiles." + host.Class())
	}
	if facts := s.Stored.Profile(r.Profile); facts != nil {
		phase := script.Phase(r.Phase)
		return phaseTakesVars(facts.Warrants[phase], phase, r.Vars)
	}
	return nil
}

// nodeName wants a name that the namespace may use, and nobody else does.
func nodeName(s Snapshot, r *object.HostRun, has rival) error {
	phase := script.Phase(r.Phase)
	if r.NodeName == "" && phase != script.Join {
		return nil
	}
	// check: NodeNameRefused: a tenant's host that joins under the name of another's
	if space := s.Policy.Hosts.Namespaces[r.Namespace]; !space.TakesNodeName(r.NodeName) {
		return decision.Errorf(decision.NodeNameRefused, "the policy does not allow the node name %.100q in the namespace %s", r.NodeName, r.Namespace).
			At("spec.nodeName").Try("use one of its nodeNames: " + list(space.NodeNames))
	}
	if phase != script.Install && phase != script.Join {
		return nil
	}
	own := "kpssh://" + r.Namespace + "/" + r.Host
	id, exists := s.Stored.NodeProviderID(r.NodeName)
	// check: NodeNameTaken: a credential for a living node's name takes over its pods and their secrets
	if exists && id != own {
		return decision.Errorf(decision.NodeNameTaken, "the node %.100q exists with another provider id (%.80q)", r.NodeName, id).
			At("spec.nodeName").Try("use another name, or remove the node first")
	}
	runs := s.Stored.HostRunsFor(r.NodeName) // which may be another list the next time
	i := slices.IndexFunc(runs, func(o *object.HostRun) bool { return has(o, r) })
	// check: NodeNameTaken: two hosts that race for one name
	if i >= 0 {
		return heldBy(runs[i], r.NodeName)
	}
	return nil
}

// heldBy says which run holds a node name, and until when.
func heldBy(o *object.HostRun, name string) error {
	err := decision.Errorf(decision.NodeNameTaken, "HostRun %.63s/%.100s holds the node name %.100q", o.Namespace, o.Name, name).At("spec.nodeName")
	if o.Finished {
		return err.Try(fmt.Sprintf("use another name, or wait: its host joined, and has %.0f minutes to register; if it has left or is gone, delete that HostRun", registerTime.Minutes()))
	}
	return err.Try("use another name, or wait until that run is over")
}

// holds reports whether another run of another host, which may still happen, or whose node has yet to register,
// has the node name of r.
func (s Snapshot) holds(o, r *object.HostRun) bool {
	joins := o.Phase == string(script.Install) || o.Phase == string(script.Join)
	sameHost := o.Namespace == r.Namespace && o.Host == r.Host
	if !joins || o.NodeName != r.NodeName || sameHost {
		return false
	}
	// check: NodeNameTaken: a second credential for the name of a host that has one already, and has yet to register
	if s.registers(o) {
		return true
	}
	return s.pending(o, s.Policy.Hosts.Namespaces[o.Namespace].TakesNodeName(o.NodeName))
}

// holdsBefore is holds where both are stored: one whose host has joined, then one that may have reached its
// host, or has a token, goes before one that did not, then the older, then the lower UID.
func (s Snapshot) holdsBefore(o, r *object.HostRun) bool {
	if !s.holds(o, r) {
		return false
	}
	if o.Finished != r.Finished {
		return o.Finished
	}
	if started := o.Sent || o.TokenID != ""; started != (r.Sent || r.TokenID != "") {
		return started
	}
	if order := o.Created.Compare(r.Created); order != 0 {
		return order < 0
	}
	return o.UID <= r.UID
}

// maxScriptTime is the longest that a script may run (docs/spec/warrant.md, timeout).
const maxScriptTime = 7200 * time.Second

// pending reports whether a run may still happen, or be happening: it is not over,
// nor is its time, and it was sent, or will be: the policy allows it, and nobody deleted it.
func (s Snapshot) pending(o *object.HostRun, allowed bool) bool {
	inTime := o.Created.IsZero() || s.Now.Before(o.Created.Add(o.Deadline+maxScriptTime))
	return !o.Finished && inTime && (o.Sent || allowed && !o.Deleting)
}

// registerTime is how long a host that has joined keeps its node's name before the Node is there. A kubelet registers
// within seconds of its certificate; this is the longest life of a bootstrap token (docs/spec/join.md).
const registerTime = 10 * time.Minute

// registers reports whether the host of a join that is over may hold a certificate for a Node that is not there yet:
// its script succeeded, or its kubelet's request was approved. Once there is a Node its provider id decides.
func (s Snapshot) registers(o *object.HostRun) bool {
	if o.Phase != string(script.Join) || !o.Finished || !o.Succeeded && !o.Joined {
		return false
	}
	if _, exists := s.Stored.NodeProviderID(o.NodeName); exists {
		return false
	}
	return o.Ended.IsZero() || s.Now.Before(o.Ended.Add(registerTime))
}
