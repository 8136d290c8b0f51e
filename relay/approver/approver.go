package approver

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/verifier"
)

// Token is a bootstrap token that the minter gave to one run.
type Token struct {
	Run     types.NamespacedName
	UID     types.UID
	Minted  time.Time
	Expires time.Time
}

// Tokens is the minter, as far as the approver needs it.
type Tokens interface {
	// Holder says which run has the token of an id, from what the minter itself gave or took
	// over; false where none has. An error means that it does not know yet.
	Holder(ctx context.Context, id string) (Token, bool, error)
	// Approved records that the token's bearer gets the certificate, before he does. An error means
	// that it is not recorded, and that he must not.
	Approved(ctx context.Context, id, reason, message string) error
	// End ends the token at once; the run's condition Joined is False with that reason.
	End(ctx context.Context, id, reason, message string) error
}

// Approver decides about certificate requests.
type Approver struct {
	Client    client.Client // a cache of requests and runs, and the writer
	Objects   judge.Objects // what is stored
	Policy    *judge.PolicySource
	Tokens    Tokens
	Verifier  *verifier.Verifier // nil: nobody else is asked
	ClusterID string
	Metrics   *Metrics
	Events    events.EventRecorder
	Now       func() time.Time
	Rand      io.Reader // of nonces

	// WithoutProof approves on the token's word: whoever steals it becomes that node.
	WithoutProof bool

	mu      sync.Mutex
	alarmed map[string]types.UID // requests, by name, that were cried about
}

// workers is how many requests are judged at a time: a verifier may take ten seconds for each.
const workers = 8

// Setup registers the controller.
func (a *Approver) Setup(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).
		Named("approver").
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(predicate.NewPredicateFuncs(concerns))).
		Watches(&v1alpha1.HostRun{}, handler.EnqueueRequestsFromMapFunc(a.requestsOf), builder.WithPredicates(proofChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(a)
}

// concerns leaves out the requests of everybody else.
func concerns(o client.Object) bool {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	return ok && requestOf(csr).Ours()
}

// proofChanged lets through the runs of which the host's answer came.
func proofChanged() predicate.Predicate {
	text := func(o client.Object) string {
		if run, ok := o.(*v1alpha1.HostRun); ok && run.Status.Proof != nil {
			return run.Status.Proof.Nonce + run.Status.Proof.Text
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return text(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return text(e.ObjectNew) != text(e.ObjectOld) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// requestsOf are the requests that were made with the run's token.
func (a *Approver) requestsOf(ctx context.Context, o client.Object) []reconcile.Request {
	run, ok := o.(*v1alpha1.HostRun)
	if !ok || run.Status.TokenID == "" {
		return nil
	}
	all, err := a.madeWith(ctx, run.Status.TokenID)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the requests of a run", "run", client.ObjectKeyFromObject(run))
		return nil
	}
	var requests []reconcile.Request
	for i := range all {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
	}
	return requests
}

// madeWith are the requests that the bearer of a token made.
func (a *Approver) madeWith(ctx context.Context, id string) ([]certificatesv1.CertificateSigningRequest, error) {
	var all, made certificatesv1.CertificateSigningRequestList
	if err := a.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing certificate requests: %w", err)
	}
	for i := range all.Items {
		if requestOf(&all.Items[i]).TokenID() == id {
			made.Items = append(made.Items, all.Items[i])
		}
	}
	return made.Items, nil
}

func requestOf(csr *certificatesv1.CertificateSigningRequest) kubeletcsr.Request {
	r := kubeletcsr.Request{PEM: csr.Spec.Request, Signer: csr.Spec.SignerName, Username: csr.Spec.Username, Groups: csr.Spec.Groups}
	for _, usage := range csr.Spec.Usages {
		r.Usages = append(r.Usages, string(usage))
	}
	return r
}

// Reconcile decides about one request, or looks at what was decided.
func (a *Approver) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// Not from the cache, which may not hold yet what we wrote last.
	var csr certificatesv1.CertificateSigningRequest
	err := a.Objects.Reader.Get(ctx, request.NamespacedName, &csr)
	if apierrors.IsNotFound(err) {
		a.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the certificate request: %w", err)
	}
	c := candidate{csr: &csr, request: requestOf(&csr)}
	if !c.request.Ours() {
		return ctrl.Result{}, nil
	}
	token, held, err := a.Tokens.Holder(ctx, c.request.TokenID())
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("asking whose the token is: %w", err)
	}
	if held {
		c.token = &token
	}
	v, err := a.decide(ctx, &c)
	if err == nil {
		err = a.carryOut(ctx, &c, v)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // run or request was changed meanwhile
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return ctrl.Result{RequeueAfter: v.again}, err
}
