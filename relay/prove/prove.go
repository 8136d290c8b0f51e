package prove

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/relay/hostrun"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

const (
	// workers is how many hosts are asked at a time, beside those that run something.
	workers = 32

	// answerTime is how long a shim may take; it makes one signature.
	answerTime = time.Minute

	// maxOutput holds facts, signature and a few lines on stderr.
	maxOutput = proof.MaxBytes + sshsig.MaxArmored + 16<<10

	// again is how soon a host is asked again that did not answer, and half as much more.
	again = 5 * time.Second
)

// Targets says where a run's host is, and with which keys it is dialled.
type Targets interface {
	Target(ctx context.Context, run *v1alpha1.HostRun) (transport.Target, *judge.Refusal, error)
}

// Prover asks hosts for proofs.
type Prover struct {
	Client  client.Client // writes the answer
	Reader  client.Reader // what is stored
	Targets Targets
	Limits  transport.Limits
	Events  events.EventRecorder
	Now     func() time.Time
}

// New is a Prover that dials as the relay's runs do.
func New(m ctrl.Manager, r *hostrun.Reconciler) *Prover {
	return &Prover{Client: m.GetClient(), Reader: m.GetAPIReader(), Targets: r, Limits: r.Limits, Events: r.Events, Now: r.Now}
}

// Setup registers the controller.
func (p *Prover) Setup(m ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(m).
		Named("prove").
		For(&v1alpha1.HostRun{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			run, ok := o.(*v1alpha1.HostRun)
			return ok && p.isAsked(run)
		}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(p)
	if err != nil {
		return fmt.Errorf("setting up the controller of proofs: %v", err)
	}
	return nil
}

// isAsked: there is a question without an answer, and the token that it is about may still be used.
func (p *Prover) isAsked(run *v1alpha1.HostRun) bool {
	joined := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionJoined)
	open := joined != nil && joined.Status == metav1.ConditionUnknown && token.Usable(joined) && p.Now().Before(joined.LastTransitionTime.Add(token.Life))
	return open && run.DeletionTimestamp == nil && token.Unproved(run)
}

// Reconcile asks the host of one run once.
func (p *Prover) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var run v1alpha1.HostRun
	if err := p.Reader.Get(ctx, request.NamespacedName, &run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !p.isAsked(&run) {
		return ctrl.Result{}, nil
	}
	target, refused, err := p.Targets.Target(ctx, &run)
	if err != nil {
		return ctrl.Result{}, err
	}
	if refused != nil {
		return p.later(ctx, &run, refused.Reason+": "+refused.Message), nil
	}
	output, fault := p.ask(ctx, target, &run)
	if fault != "" {
		return p.later(ctx, &run, fault), nil
	}
	text, armored := proof.Split(output)
	// check: ProofFailed: half an answer would stand for the whole one, and be refused
	if len(armored) == 0 || len(text) > proof.MaxBytes || len(armored) > sshsig.MaxArmored {
		return p.later(ctx, &run, "the host's answer is no proof"), nil
	}
	answered := run.DeepCopy()
	answered.Status.Proof.Text, answered.Status.Proof.Signature = string(text), string(armored)
	err = p.Client.Status().Patch(ctx, answered, client.MergeFrom(&run))
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("writing the proof: %w", err))
	}
	return ctrl.Result{}, nil
}

// Question is what a host is sent to prove itself.
func Question(nonce, runUID string) ([]byte, error) {
	params, err := envelope.EncodeParams(map[string]string{"KPSSH_NONCE": nonce, "KPSSH_RUN_UID": runUID})
	if err != nil {
		return nil, err
	}
	return envelope.Envelope{Phase: envelope.PhaseProve, Params: params}.Encode()
}

// ask runs phase prove; fault says why there is no answer.
func (p *Prover) ask(ctx context.Context, target transport.Target, run *v1alpha1.HostRun) (output []byte, fault string) {
	text, err := Question(run.Status.Proof.Nonce, string(run.UID))
	if err != nil {
		return nil, err.Error()
	}
	limits := p.Limits
	limits.Run, limits.Output = answerTime, maxOutput
	var stdout, stderr bytes.Buffer
	code, err := transport.Run(ctx, target, limits, text, &stdout, &stderr, func() error { return nil })
	if err != nil {
		return nil, err.Error()
	}
	if exit := envelope.ExitCode(code); exit != envelope.ExitOK {
		return nil, fmt.Sprintf("the host answered with exit code %d: %s", code, exit)
	}
	return stdout.Bytes(), ""
}

// later says that there is no answer yet. The token's end bounds how often.
func (p *Prover) later(ctx context.Context, run *v1alpha1.HostRun, why string) ctrl.Result {
	log.FromContext(ctx).Info("no proof yet", "host", run.Spec.HostRef.Name, "fault", why)
	if p.Events != nil {
		p.Events.Eventf(run, nil, corev1.EventTypeWarning, "NoProof", "Prove", "%.900s", why)
	}
	return ctrl.Result{RequeueAfter: again + rand.N(again/2)} //nolint:gosec // spreads load
}
