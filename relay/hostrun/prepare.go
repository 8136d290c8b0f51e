package hostrun

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/hostkeys"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// judged is a run whose host may be dialled. The phase is judged apart: to ask a
// host about a run that was sent, its profile need not exist any more.
type judged struct {
	refused    *refusal
	host       *object.Host
	profile    *object.JoinProfile // nil: the phase is not judged yet
	target     transport.Target
	cluster    judge.Cluster
	statedTime string

	snapshot verify.Snapshot
	run      *v1alpha1.HostRun
	stored   judge.Stored
}

// prepare reads and judges what a connection to the host needs. An error means
// that the API server could not be asked.
func (r *Reconciler) prepare(ctx context.Context, run *v1alpha1.HostRun) (judged, error) {
	s, err := r.Policy.Snapshot(ctx, r.Now())
	if e, ok := errors.AsType[*decision.Error](err); ok {
		return judged{refused: judge.RefusedBy(e.Denied(object.KindTrustPolicy, object.TrustPolicyName))}, nil
	}
	if err != nil {
		return judged{}, err
	}
	j := judged{snapshot: s, run: run}
	if j.cluster, err = r.objects().Cluster(ctx, s.Policy, r.ClusterID, r.ClusterCA); err != nil {
		return judged{}, err
	}
	if err := r.objects().Host(ctx, run.Namespace, run.Spec.HostRef.Name, &j.stored); err != nil {
		return judged{}, err
	}
	if j.host, j.refused = judge.Host(s, run, j.stored); j.refused != nil {
		return j, nil
	}
	// check: InUse: a run that one machine has, and maybe ran, goes to another one under the same name
	if was := run.Status.HostUID; wasSent(run) && was != "" && was != j.host.UID {
		j.refused = refuse(judge.ReasonHostNotFound, fmt.Sprintf("the SSHHost %q was deleted and made anew since the run was sent; create another HostRun for the new one", j.host.Name))
		return j, nil
	}
	if err := r.readProfile(ctx, run, &j); err != nil {
		return judged{}, err
	}
	if j.snapshot.Stored, err = r.objects().Look(ctx, run, j.host, j.stored); err != nil {
		return judged{}, err
	}
	// Before the Secret is read: a run that may not happen needs no key.
	if !wasSent(run) {
		if j.profile, j.refused = judge.Sending(j.snapshot, run, j.stored); j.refused != nil {
			return j, nil
		}
	}
	secret, refused, err := r.readSecret(ctx, run.Namespace, j.host.SecretName, "the keys of the SSHHost")
	if j.refused = refused; err != nil || refused != nil {
		return j, err
	}
	if j.target, j.refused = Target(j.host, secret); j.refused != nil {
		return j, nil
	}
	j.refused, err = Disputed(ctx, r.Reader, j.snapshot.Policy, j.host, j.target.Pin)
	return j, err
}

// Disputed refuses a pin that contradicts what is known of the host's keys elsewhere.
func Disputed(ctx context.Context, reader client.Reader, p *trustpolicy.Policy, h *object.Host, pin transport.Pin) (*judge.Refusal, error) {
	known, err := hostkeys.Of(ctx, reader, p, h)
	if err == nil {
		err = hostkeys.Agree(pin, known)
	}
	if e, ok := errors.AsType[*decision.Error](err); ok {
		return judge.RefusedBy(e.Denied(object.KindHost, h.Name)), nil
	}
	return nil, err
}

// Target is where and how the host of a run is dialled, or why it is not: by the same rules as for the run itself.
func (r *Reconciler) Target(ctx context.Context, run *v1alpha1.HostRun) (transport.Target, *judge.Refusal, error) {
	j, err := r.prepare(ctx, run)
	return j.target, j.refused, err
}

// readProfile reads the run's profile; a probe has none.
func (r *Reconciler) readProfile(ctx context.Context, run *v1alpha1.HostRun, j *judged) error {
	if probes(run) {
		return nil
	}
	u, raw, err := r.objects().Get(ctx, object.KindJoinProfile, "", run.Spec.ProfileRef.Name)
	j.stored.Profile = raw
	j.statedTime = statedTime(u, run.Spec.Phase)
	return err
}

func (r *Reconciler) objects() judge.Objects { return judge.Objects{Reader: r.Reader, Runs: r.Client} }

// statedTime is spec.timeouts.<phase>, "" when there is none.
func statedTime(profile *unstructured.Unstructured, phase v1alpha1.HostRunPhase) string {
	if profile == nil {
		return ""
	}
	text, _, err := unstructured.NestedString(profile.Object, "spec", "timeouts", string(phase))
	if err != nil {
		return ""
	}
	return text
}
