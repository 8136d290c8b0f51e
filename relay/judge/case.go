package judge

import (
	"context"
	"errors"
	"time"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// BootstrapToken is the parameter that takes a token.
const BootstrapToken = "KPSSH_BOOTSTRAP_TOKEN"

// Case is a run that was judged whole.
type Case struct {
	Refused  *Refusal // nil: it may happen, and the rest is there
	Snapshot verify.Snapshot
	Host     *object.Host
	Profile  *object.JoinProfile
	Warrant  *warrant.Warrant // nil: the script has none
}

// Judge reads and judges all that the relay judges before it sends a run, and nothing of what the
// run's status says. An error means that the API server could not be asked.
func (o Objects) Judge(ctx context.Context, policy *PolicySource, run *v1alpha1.HostRun, now time.Time) (Case, error) {
	s, err := policy.Snapshot(ctx, now)
	if e, ok := errors.AsType[*decision.Error](err); ok {
		return Case{Refused: RefusedBy(e.Denied(object.KindTrustPolicy, object.TrustPolicyName))}, nil
	}
	if err != nil {
		return Case{}, err
	}
	c := Case{Snapshot: s}
	var st Stored
	if err := o.Host(ctx, run.Namespace, run.Spec.HostRef.Name, &st); err != nil {
		return Case{}, err
	}
	if c.Host, c.Refused = Host(s, run, st); c.Refused != nil {
		return c, nil
	}
	if _, st.Profile, err = o.Get(ctx, object.KindJoinProfile, "", run.Spec.ProfileRef.Name); err != nil {
		return Case{}, err
	}
	if c.Snapshot.Stored, err = o.Look(ctx, run, c.Host, st); err != nil {
		return Case{}, err
	}
	if c.Profile, c.Refused = Sending(c.Snapshot, run, st); c.Refused != nil {
		return c, nil
	}
	if c.Profile == nil {
		return c, nil // a probe has none
	}
	c.Warrant, err = warrant.Find([]byte(c.Profile.Scripts[script.Phase(run.Spec.Phase)]))
	if err != nil {
		c.Refused = RefusedBy(decision.From(err).Denied(object.KindJoinProfile, c.Profile.Name))
	}
	return c, nil
}

// TakesToken says whether the run is to be given a bootstrap token: it joins, and its script's author
// declared that it takes one.
func TakesToken(run *v1alpha1.HostRun, w *warrant.Warrant) bool {
	if run.Spec.Phase != v1alpha1.HostRunJoin || w == nil {
		return false
	}
	for _, p := range w.Params {
		if p.Name == BootstrapToken {
			return p.Secret
		}
	}
	return false
}
