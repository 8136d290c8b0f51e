package hostrun

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

const pendingMessage = "the run is judged, and waits for its bootstrap token, which hostwarrant-minter gives: docs/operations/join.md"

// handed reads what the run is given from Secrets.
func (r *Reconciler) handed(ctx context.Context, run *v1alpha1.HostRun, p *object.JoinProfile) (handed, *refusal, error) {
	if probes(run) {
		return handed{}, nil, nil // there is no script to take anything
	}
	secret, refused, err := r.joinSecret(ctx, run)
	if refused != nil || err != nil {
		return handed{}, refused, err
	}
	value, refused, err := r.joinToken(ctx, run, p)
	return handed{secret: secret, token: value}, refused, err
}

// joinToken is the run's bootstrap token, "" where it takes none. A refusal that waits means that the
// minter has given none yet.
func (r *Reconciler) joinToken(ctx context.Context, run *v1alpha1.HostRun, p *object.JoinProfile) (string, *refusal, error) {
	if probes(run) {
		return "", nil, nil // there is no script
	}
	w, err := warrant.Find([]byte(p.Scripts[script.Phase(run.Spec.Phase)]))
	if err != nil {
		return "", judge.RefusedBy(decision.From(err).Denied(object.KindJoinProfile, p.Name)), nil
	}
	if !judge.TakesToken(run, w) {
		return "", nil, nil
	}
	c := condition(run, v1alpha1.ConditionJoined)
	// check: NodeNameTaken: a run that the minter refused goes to its host
	if c != nil && c.Status == metav1.ConditionFalse {
		return "", refuse(c.Reason, c.Message), nil
	}
	pending := &refusal{Reason: token.Pending, Message: pendingMessage, Waiting: true}
	if !token.Usable(c) {
		return "", pending, nil
	}
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: run.Namespace, Name: token.HandoverName(run.UID)}
	if err := r.Reader.Get(ctx, key, &secret); client.IgnoreNotFound(err) != nil {
		return "", nil, fmt.Errorf("reading the run's token: %w", err)
	}
	value := token.Read(secret.Data, run.Status.TokenID, r.Now())
	if value == "" {
		return "", pending, nil
	}
	return value, nil, nil
}

// awaitToken says that the run is next, which the minter waits for, and gives its place to others until
// the minter has spoken.
func (r *Reconciler) awaitToken(ctx context.Context, run *v1alpha1.HostRun) (ctrl.Result, error) {
	before, now := run.Status.DeepCopy(), r.Now()
	news := verified(run, now)
	setCondition(run, v1alpha1.ConditionDelivered, metav1.ConditionFalse, token.Pending, pendingMessage, now)
	setCondition(run, v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, token.Pending, pendingMessage, now)
	if news {
		r.tell(run, v1alpha1.ConditionVerified)
	}
	if !equality.Semantic.DeepEqual(before, &run.Status) {
		if result, err := r.save(ctx, run, v1alpha1.ConditionDelivered); err != nil || result.IsZero() {
			return result, err
		}
	}
	return ctrl.Result{RequeueAfter: maxDelay}, nil // the minter's word comes as news, long before
}

// refusesHandover keeps the Secrets with tokens for the runs that they were made for.
func refusesHandover(name string) *refusal {
	// check: ParamUndeclared: a run that names the Secret with the token of another one takes it to another host
	if token.IsHandover(name) {
		return refuse(reasonSecretNotFound, fmt.Sprintf("the Secret %q holds the token of a run, and is for that alone", strings.ToValidUTF8(name, "?")))
	}
	return nil
}
