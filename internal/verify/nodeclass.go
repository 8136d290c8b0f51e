package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// NodeClass judges an SSHNodeClass by the policy and by what is stored.
func NodeClass(s Snapshot, c *object.NodeClass) decision.Decision {
	if err := judgeNodeClass(s, c); err != nil {
		return decision.From(err).Denied(c.Kind, c.Name)
	}
	d := decision.Admit(c.Kind, c.Name, "asks for nothing beyond the policy and its profile")
	if s.Stored.Profile(c.Profile) == nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("spec.joinProfileRef: there is no SSHJoinProfile %.100q yet; its warrants will be held against this class then", c.Profile))
	}
	return d
}

func judgeNodeClass(s Snapshot, c *object.NodeClass) error {
	if err := s.complete(); err != nil {
		return err
	}
	if err := ownCluster(s.Policy.Cluster(s.ClusterID), c); err != nil {
		return err
	}
	takes := func(h *object.Host) bool { return h.ExecMode == object.ExecVerified && c.Selector.Matches(h.Labels) }
	hosts := s.Stored.Hosts() // which may be another list the next time
	if err := fitsHosts(s.Policy.Hosts, c, hosts, takes); err != nil {
		return err
	}
	facts := s.Stored.Profile(c.Profile)
	if facts == nil {
		return nil
	}
	if err := s.Recent.takes(facts)(c.Vars); err != nil {
		return err
	}
	// check: ProfileRefused: an unsigned profile, let in for Raw hosts, on its way to a host that verifies
	if !facts.Signed && slices.ContainsFunc(hosts, takes) {
		return decision.Errorf(decision.ProfileRefused, "the profile %.60q is unsigned, and the class takes Verified hosts", c.Profile).
			At("spec.joinProfileRef").Try("sign the profile, or narrow spec.hostSelector to the Raw hosts")
	}
	return nil
}

// fitsHosts wants each host that the class takes to be one that may run its profile.
func fitsHosts(allowed trustpolicy.Hosts, c *object.NodeClass, hosts []*object.Host, takes func(*object.Host) bool) error {
	i := slices.IndexFunc(hosts, func(h *object.Host) bool { return takes(h) && !allowed.MayRun(h.Class(), c.Profile) })
	// check: ProfileRefused: a signed profile on hosts that it was not made for
	if i >= 0 {
		h := hosts[i]
		return decision.Errorf(decision.ProfileRefused, "the class takes SSHHost %.63s/%.100s of class %.63q, which the policy does not allow the profile %.60q", h.Namespace, h.Name, h.Class(), c.Profile).
			At("spec.joinProfileRef").Try("narrow spec.hostSelector, or use one of joinProfiles.hosts.profiles." + h.Class())
	}
	return nil
}

// complete is usable, and what is stored is known.
func (s Snapshot) complete() error {
	if err := s.usable(); err != nil {
		return err
	}
	// check: SnapshotUnavailable: what is not known yet must not look as if it were not there
	if s.Stored == nil {
		return decision.Errorf(decision.SnapshotUnavailable, "what the cluster holds is not known yet").Try("try again in a few seconds")
	}
	return nil
}

// ownCluster wants a class to send hosts nowhere but to the policy's own cluster.
func ownCluster(own trustpolicy.Cluster, c *object.NodeClass) error {
	const hint = "leave spec.cluster out, or add it to the policy's own entry in clusters"
	// check: ClusterRefused: hosts that join a foreign API server belong to whoever runs it
	if c.HasCluster && !slices.Contains(own.Endpoints, c.Endpoint) {
		return decision.Errorf(decision.ClusterRefused, "the policy does not list the endpoint %.100q for this cluster", c.Endpoint).
			At("spec.cluster.endpoint").Try(hint)
	}
	sum := sha256.Sum256(c.CABundle)
	// check: ClusterRefused: with a foreign CA somebody in between can pose as the API server
	if len(c.CABundle) > 0 && !slices.Contains(own.CASHA256, hex.EncodeToString(sum[:])) {
		return decision.Errorf(decision.ClusterRefused, "the policy does not list the CA bundle (SHA-256 %x) for this cluster", sum).
			At("spec.cluster.caBundle").Try(hint)
	}
	return nil
}

// Recent keeps the compiled patterns of the profile that was asked about last, for whoever judges many
// node classes one after the other. Nil keeps none. It is not safe for concurrent use.
type Recent struct {
	facts *ProfileFacts
	check func(vars map[string]string) error
}

func (r *Recent) takes(f *ProfileFacts) func(vars map[string]string) error {
	if r == nil {
		return varsCheck(f.Warrants)
	}
	if r.facts != f {
		r.facts, r.check = f, varsCheck(f.Warrants)
	}
	return r.check
}

// varsCheck holds the vars of many against the warrants of the phases that get them.
func varsCheck(warrants map[script.Phase]*warrant.Warrant) func(vars map[string]string) error {
	phases := []script.Phase{script.Install, script.Join}
	checks := map[script.Phase]func(map[string]string) error{}
	for _, phase := range phases {
		if w := warrants[phase]; w != nil {
			checks[phase] = w.VarsCheck()
		}
	}
	return func(vars map[string]string) error {
		for _, phase := range phases {
			if check := checks[phase]; check != nil {
				if err := check(vars); err != nil {
					return ofVars(err, phase)
				}
			}
		}
		return nil
	}
}

func phaseTakesVars(w *warrant.Warrant, phase script.Phase, vars map[string]string) error {
	if w == nil {
		return nil
	}
	if err := w.CheckVars(vars); err != nil {
		return ofVars(err, phase)
	}
	return nil
}

// ofVars says of which phase's warrant a fault of vars is.
func ofVars(err error, phase script.Phase) error {
	e := *decision.From(err)
	e.What = string(phase) + ": " + e.What
	if e.Hint == "" {
		e.Hint = "give the vars that the warrant declares: hostwarrant inspect FILE"
	}
	return e.At("spec.vars")
}

// maxBroken is how many node classes one answer names, and maxHeld how many of their vars it holds
// against the warrants of two phases: each may take a tenth of a millisecond, and somebody waits.
const (
	maxBroken = 3
	maxHeld   = 4000
)

// broken names the node classes that a version of a profile would no longer serve.
func broken(s Snapshot, p *object.JoinProfile) []string {
	if s.Stored == nil {
		return nil
	}
	takes := varsCheck(FactsOf(p).Warrants)
	var all []string
	held, more, unread := 0, 0, 0
	for _, c := range s.Stored.NodeClasses() {
		if c.Profile != p.Name {
			continue
		}
		if held += len(c.Vars) + 1; held > maxHeld {
			unread++
			continue
		}
		err := takes(c.Vars)
		if err == nil {
			continue
		}
		if len(all) == maxBroken {
			more++
			continue
		}
		all = append(all, decision.OneLine(fmt.Sprintf("this version refuses the vars of SSHNodeClass/%.100s: %v", c.Name, err), maxWarning))
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("this version refuses the vars of %d more node classes", more))
	}
	if unread > 0 {
		all = append(all, fmt.Sprintf("%d node classes have too many vars to be held against this version here; they are judged once it is stored", unread))
	}
	return all
}

// strays names the node classes that take a host to a profile that is not for its class. They were there
// before, and whether they reach into the host's namespace is not known here, so that it is a warning.
func strays(s Snapshot, h *object.Host) []string {
	if s.Stored == nil {
		return nil
	}
	var all []string
	for _, c := range s.Stored.NodeClasses() {
		if len(all) < maxBroken && c.Selector.Matches(h.Labels) && !s.Policy.Hosts.MayRun(h.Class(), c.Profile) {
			text := fmt.Sprintf("SSHNodeClass/%.100s takes this host to the profile %.60q, which the policy does not allow hosts of class %.63q", c.Name, c.Profile, h.Class())
			all = append(all, decision.OneLine(text, maxWarning))
		}
	}
	return all
}

// maxWarning bounds a warning (admission.k8s.io/v1, AdmissionResponse.warnings).
const maxWarning = 255
