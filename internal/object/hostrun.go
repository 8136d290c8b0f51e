package object

import (
	"regexp"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// HostRun is what we read of a HostRun.
type HostRun struct {
	Meta
	Host, Profile, Secret, NodeName string
	Phase                           string
	Vars                            map[string]string
	// Finished is true once condition Succeeded is True or False, since Ended; zero where it does not say.
	Finished bool
	Ended    time.Time
	// Succeeded is true where condition Succeeded is True, Joined where condition Joined is.
	Succeeded, Joined bool
	// Sent is true while condition Delivered is there and not False: the run may have reached its host.
	Sent bool
	// TokenID is that of the bootstrap token that the run was given; empty: none.
	TokenID string
	// Created is metadata.creationTimestamp; zero where there is none, as offline.
	Created time.Time
	// Deadline is spec.deadlineSeconds, within the CRD's bounds.
	Deadline time.Duration
}

// objectName is the CRD's pattern of names (RFC 1123).
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// The CRD's default and maximum of spec.deadlineSeconds.
const (
	defaultDeadlineSeconds = 3600
	maxDeadlineSeconds     = 86400
)

// ParseHostRun reads a HostRun from JSON. The error carries Malformed.
func ParseHostRun(raw []byte) (*HostRun, error) {
	o, err := parse(raw, KindHostRun)
	if err != nil {
		return nil, err
	}
	r := &HostRun{Meta: o.Meta}
	var host, profile, secret fields
	var deadline int64
	err = o.spec.getAll("spec", map[string]any{
		"hostRef": &host, "profileRef": &profile, "secretRef": &secret, "nodeName": &r.NodeName, "phase": &r.Phase, "vars": &r.Vars,
		"deadlineSeconds": &deadline,
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
		// check: Malformed: a name with a slash in it is looked up in another namespace by some, and one with control characters is shown as something else
		if *reference.into != "" && !objectName.MatchString(*reference.into) {
			return nil, malformed(reference.path+".name", "is not the name of an object")
		}
	}
	if err := r.complete(); err != nil {
		return nil, err
	}
	if err := r.times(o.created, deadline); err != nil {
		return nil, err
	}
	return r, r.progress(o.status)
}

// complete wants what the phase needs, and nothing that it does not take.
func (r *HostRun) complete() error {
	if r.Probes() {
		// check: Malformed: a run that names what no rule for it looks at
		if r.Host == "" || r.Profile != "" || r.Secret != "" || r.NodeName != "" || len(r.Vars) > 0 {
			return malformed("spec", "phase probe needs hostRef.name, and takes no profileRef, nodeName, vars or secretRef").Try("kubectl explain hostrun.spec")
		}
		return nil
	}
	// check: Malformed: a run that says not what or where is judged by nothing
	if r.Host == "" || r.Profile == "" || !script.Phase(r.Phase).Known() {
		return malformed("spec", "needs hostRef.name, profileRef.name and a phase").Try("kubectl explain hostrun.spec")
	}
	return nil
}

// phaseProbe is the one phase that runs no script, and so needs no profile.
const phaseProbe = "probe"

// Probes reports whether the run asks its host's shim alone.
func (r *HostRun) Probes() bool { return r.Phase == phaseProbe }

// times reads when the run was made, and how long it may be tried.
func (r *HostRun) times(created string, seconds int64) error {
	if seconds <= 0 {
		seconds = defaultDeadlineSeconds
	}
	r.Deadline = time.Duration(min(seconds, maxDeadlineSeconds)) * time.Second
	if created == "" {
		return nil
	}
	var err error
	r.Created, err = time.Parse(time.RFC3339, created)
	// check: Malformed: a run whose age nobody can tell would be as old as its reader likes
	if err != nil {
		return malformed("metadata.creationTimestamp", "%.40q is not a time", created)
	}
	return nil
}

// progress reads the conditions that say that the run was sent, that its host joined, and that it is over.
func (r *HostRun) progress(status fields) error {
	var conditions []fields
	if err := status.getAll("status", map[string]any{"conditions": &conditions, "tokenID": &r.TokenID}); err != nil {
		return err
	}
	for _, c := range conditions {
		var kind, state, since string
		if err := c.getAll("status.conditions", map[string]any{"type": &kind, "status": &state, "lastTransitionTime": &since}); err != nil {
			return err
		}
		switch {
		case kind == "Succeeded" && (state == "True" || state == "False"):
			r.Finished, r.Succeeded = true, state == "True"
			if at, err := time.Parse(time.RFC3339, since); err == nil {
				r.Ended = at
			}
		case kind == "Delivered" && state != "False":
			r.Sent = true
		case kind == "Joined" && state == "True":
			r.Joined = true
		}
	}
	return nil
}
