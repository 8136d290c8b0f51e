package approver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Reasons of the condition Joined and of a request's condition that are no Decision's
// (docs/spec/join.md, Approval), and kinds of alarm.
const (
	reasonApproved        = "Approved"
	reasonProofSkipped    = "ProofSkipped"
	reasonVerifierRefused = "VerifierRefused"
	reasonForeignApproval = "ForeignApproval"
	reasonOtherSigner     = "OtherSigner"
	reasonForeignDenial   = "ForeignDenial"
	reasonSecondRequest   = "SecondRequest"
)

// ours marks a request's condition: people see who decided.
const ours = "Hostwarrant"

// maxMessage bounds what is written of a request; parts of it come from outside.
const maxMessage = 900

// maxName is what is shown of a request's name, which may hold anything but a slash.
const maxName = 100

// maxReason is far above any reason of ours.
const maxReason = 60

// carryOut does what was decided.
func (a *Approver) carryOut(ctx context.Context, c *candidate, v verdict) error {
	switch v.what {
	case leave:
		return nil
	case approve:
		return a.approve(ctx, c, v)
	case alarm:
		return a.raise(ctx, c, v)
	default:
		return a.deny(ctx, c, v)
	}
}

// approve records the approval first: one that is not recorded is somebody else's.
func (a *Approver) approve(ctx context.Context, c *candidate, v verdict) error {
	if err := a.Tokens.Approved(ctx, c.request.TokenID(), v.reason, record(c.csr)+": "+v.message); err != nil {
		return fmt.Errorf("recording the approval: %w", err)
	}
	if err := a.write(ctx, c, certificatesv1.CertificateApproved, v); err != nil {
		return err
	}
	a.Metrics.decided("approved", v.reason)
	if v.reason == reasonProofSkipped {
		a.Metrics.skipped.Inc()
	}
	a.tell(c, corev1.EventTypeNormal, v)
	log.FromContext(ctx).Info("certificate request approved", "request", c.csr.Name, "run", c.token.Run, "node", c.run.Spec.NodeName, "reason", v.reason)
	return nil
}

// record names a request in the run's condition, for ever: UIDs do not come again.
func record(csr *certificatesv1.CertificateSigningRequest) string {
	return fmt.Sprintf("certificate request %s (%s)", decision.OneLine(csr.Name, maxName), csr.UID)
}

// joinedBy is what a run that joined says of it: by which request, which its record starts with. It is
// "" of a run that has not.
func joinedBy(run *v1alpha1.HostRun) string {
	joined := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionJoined)
	if joined == nil || joined.Status != metav1.ConditionTrue {
		return ""
	}
	return joined.Message
}

func (a *Approver) deny(ctx context.Context, c *candidate, v verdict) error {
	if !isSettled(c.csr) {
		if err := a.write(ctx, c, certificatesv1.CertificateDenied, v); err != nil {
			return err
		}
		a.Metrics.decided("denied", v.reason)
	}
	a.tell(c, corev1.EventTypeWarning, v)
	log.FromContext(ctx).Info("certificate request denied", "request", c.csr.Name, "token", c.request.TokenID(), "reason", v.reason, "message", v.message)
	if c.token == nil {
		return nil
	}
	if err := a.Tokens.End(ctx, c.request.TokenID(), v.reason, cut(record(c.csr)+": "+v.message)); err != nil {
		return fmt.Errorf("ending the token: %w", err)
	}
	return nil
}

// write settles the request. One that changed meanwhile is judged again.
func (a *Approver) write(ctx context.Context, c *candidate, kind certificatesv1.RequestConditionType, v verdict) error {
	c.csr.Status.Conditions = append(c.csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: ours + v.reason, Message: cut(v.message), LastUpdateTime: metav1.NewTime(a.Now()),
	})
	if err := a.Client.SubResource("approval").Update(ctx, c.csr); err != nil {
		return fmt.Errorf("writing the approval of %q: %w", c.csr.Name, err)
	}
	return nil
}

// audit looks at a request that is settled: whether it was us.
func (a *Approver) audit(ctx context.Context, c *candidate) (verdict, error) {
	if i := slices.IndexFunc(c.csr.Status.Conditions, func(s certificatesv1.CertificateSigningRequestCondition) bool {
		return s.Type == certificatesv1.CertificateDenied
	}); i >= 0 {
		if c.token == nil {
			return left(), nil
		}
		// Denied, and the token lives: we were killed in between, or somebody else denied it.
		return denial(c.csr.Status.Conditions[i]), nil
	}
	by, err := a.approvedBy(ctx, c)
	if err != nil || by == "" {
		return left(), err
	}
	return verdict{what: alarm, reason: reasonForeignApproval, message: "the request was approved by somebody else: " + by}, nil
}

// denial is what a denied request's run says: our own reason, or that it was somebody else, who may
// say anything.
func denial(condition certificatesv1.CertificateSigningRequestCondition) verdict {
	reason, isOurs := strings.CutPrefix(condition.Reason, ours)
	// check: CSRMismatch: words that the API server takes for no reason, so that the token outlives the denial
	if !isOurs || !isReason(reason) {
		return denied(reasonForeignDenial, "the request was denied by somebody else: %.60q, %.200q", condition.Reason, condition.Message)
	}
	return denied(reason, "%s", cut(condition.Message))
}

// isReason: letters alone, as all reasons of ours are.
func isReason(s string) bool {
	return s != "" && len(s) <= maxReason && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') })
}

// approvedBy says what somebody else said in approving, "" where it was us or nobody.
func (a *Approver) approvedBy(ctx context.Context, c *candidate) (string, error) {
	i := slices.IndexFunc(c.csr.Status.Conditions, func(s certificatesv1.CertificateSigningRequestCondition) bool {
		return s.Type == certificatesv1.CertificateApproved
	})
	if i < 0 {
		return "", nil
	}
	condition := c.csr.Status.Conditions[i]
	said := fmt.Sprintf("%.60q, %.200q", condition.Reason, condition.Message)
	if c.token == nil {
		if strings.HasPrefix(condition.Reason, ours) {
			return "", nil
		}
		return said, nil
	}
	run := &v1alpha1.HostRun{}
	err := a.Objects.Reader.Get(ctx, c.token.Run, run)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading the HostRun: %w", err)
	}
	// check: CSRMismatch: somebody approves past us, in our name
	if !strings.HasPrefix(joinedBy(run), record(c.csr)) {
		return said, nil
	}
	return "", nil
}

// raise says loudly that something happened past us, and ends the token.
func (a *Approver) raise(ctx context.Context, c *candidate, v verdict) error {
	if a.isNews(c.csr) {
		a.Metrics.alarm(v.reason)
		a.tell(c, corev1.EventTypeWarning, v)
		log.FromContext(ctx).Info("ALARM: "+v.message, "reason", v.reason, "request", c.csr.Name, "token", c.request.TokenID())
	}
	if c.token == nil {
		return nil
	}
	if err := a.Tokens.End(ctx, c.request.TokenID(), v.reason, cut(record(c.csr)+": "+v.message)); err != nil {
		return fmt.Errorf("ending the token: %w", err)
	}
	return nil
}

// isNews: a request is cried about once, however often it changes.
func (a *Approver) isNews(csr *certificatesv1.CertificateSigningRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.alarmed == nil {
		a.alarmed = map[string]types.UID{}
	}
	known := a.alarmed[csr.Name] == csr.UID
	a.alarmed[csr.Name] = csr.UID
	return !known
}

func (a *Approver) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.alarmed, name)
}

// tell writes an event on the run, or where there is none on the request.
func (a *Approver) tell(c *candidate, kind string, v verdict) {
	if a.Events == nil {
		return
	}
	if c.run != nil {
		a.Events.Eventf(c.run, c.csr, kind, v.reason, "Approve", "%s", cut(record(c.csr)+": "+v.message))
		return
	}
	a.Events.Eventf(c.csr, nil, kind, v.reason, "Approve", "%s", cut(v.message))
}

func cut(message string) string {
	return decision.OneLine(message, maxMessage)
}
