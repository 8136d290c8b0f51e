package object

import (
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// HostRun is what we read of a HostRun.
type HostRun struct {
	Meta
	Host, Profile, Secret, NodeName string
	Phase                           string
	Vars                            map[string]string
	// Finished is true once condition Succeeded is True or False.
	Finished bool
}

// ParseHostRun reads a HostRun from JSON. The error carries Malformed.
func ParseHostRun(raw []byte) (*HostRun, error) {
	o, err := parse(raw, KindHostRun)
	if err != nil {
		return nil, err
	}
	r := &HostRun{Meta: o.Meta}
	var host, profile, secret fields
	err = o.spec.getAll("spec", map[string]any{
		"hostRef": &host, "profileRef": &profile, "secretRef": &secret, "nodeName": &r.NodeName, "phase": &r.Phase, "vars": &r.Vars,
	})
	if err != nil {
		return nil, err
	}
	for _, reference := range []struct {
		path string
		from fields
		into *string
	}{{"spec.hostRef", host, &r.Host}, {"spec.profileRef", profile, &r.Profile}, {"spec.secretRef", secret, &r.Secret}} {
		if err := reference.from.getAll(reference.path, map[string]any{"name": reference.into}); err != nil {
			return nil, err
		}
		// check: Malformed: a name with a slash in it is looked up in another namespace by some
		if strings.Contains(*reference.into, "/") {
			return nil, malformed(reference.path+".name", "is not the name of an object")
		}
	}
	// check: Malformed: a run that says not what or where is judged by nothing
	if r.Host == "" || r.Profile == "" || !script.Phase(r.Phase).Known() {
		return nil, malformed("spec", "needs hostRef.name, profileRef.name and a phase").Try("kubectl explain hostrun.spec")
	}
	return r, r.finished(o.status)
}

// finished reads the one condition that says the run is over.
func (r *HostRun) finished(status fields) error {
	var conditions []fields
	if err := status.get("status", "conditions", &conditions); err != nil {
		return err
	}
	for _, c := range conditions {
		var kind, state string
		if err := c.getAll("status.conditions", map[string]any{"type": &kind, "status": &state}); err != nil {
			return err
		}
		if kind == "Succeeded" && (state == "True" || state == "False") {
			r.Finished = true
		}
	}
	return nil
}
