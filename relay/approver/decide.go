package approver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// maxSkew is how far the minter's clock and the API server's may be apart: a token of
// nine minutes leaves one of the ten that admission allows.
const maxSkew = time.Minute

// beforeTheEnd is how long before a token's end a proof is waited for no more.
const beforeTheEnd = 5 * time.Second

// policyAgain is how soon a request is looked at again that waits for a policy to judge by.
const policyAgain = 5 * time.Second

// candidate is a request that is being judged.
type candidate struct {
	csr     *certificatesv1.CertificateSigningRequest
	request kubeletcsr.Request
	token   *Token // nil: nobody has it

	run      *v1alpha1.HostRun
	host     *object.Host
	snapshot verify.Snapshot
	key      ssh.PublicKey
}

// proofEnd is until when a proof counts.
func (c *candidate) proofEnd() time.Time { return c.token.Expires.Add(-beforeTheEnd) }

// what is done about a request.
type what int

const (
	deny  what = iota // the zero value
	leave             // nothing, or nothing yet
	approve
	alarm // somebody else decided
)

// verdict is a decision and its reason.
type verdict struct {
	what    what
	reason  string
	message string
	again   time.Duration // look at it again
}

func left() verdict { return verdict{what: leave} }

func denied(reason, format string, args ...any) verdict {
	return verdict{what: deny, reason: reason, message: fmt.Sprintf(format, args...)}
}

func mismatch(format string, args ...any) verdict {
	return denied(string(decision.CSRMismatch), format, args...)
}

func refused(err error) verdict {
	e := decision.From(err)
	return denied(string(e.Reason), "%s", e.What)
}

// decide judges a request. An error means that somebody could not be asked.
func (a *Approver) decide(ctx context.Context, c *candidate) (verdict, error) {
	if c.token == nil && !slices.Contains(c.request.Groups, kubeletcsr.Group) {
		return left(), nil // somebody else's token, whose id looks like ours
	}
	if isSettled(c.csr) {
		return a.audit(ctx, c)
	}
	// check: CSRMismatch: a token that buys a server's or an administrator's certificate of another signer
	if c.request.Signer != kubeletcsr.SignerName {
		return verdict{what: alarm, reason: reasonOtherSigner, message: fmt.Sprintf("a join token was used to ask %.100q for a certificate", c.request.Signer)}, nil
	}
	// check: CSRMismatch: a token that was taken away, or that somebody else put into our group
	if c.token == nil {
		return mismatch("no run has the token %s", c.request.TokenID()), nil
	}
	for _, step := range []func(context.Context, *candidate) (*verdict, error){a.madeInTime, a.findRun, a.stillInTime, a.judgeRun, a.judgeRequest, a.firstUse, a.onlyUse, a.proved, a.vouched} {
		v, err := step(ctx, c)
		if err != nil || v != nil {
			return orZero(v), err
		}
	}
	return a.approval(c), nil
}

func orZero(v *verdict) verdict {
	if v == nil {
		return left()
	}
	return *v
}

// isSettled: somebody has decided, or the signer has.
func isSettled(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0
}

// madeInTime holds the request to the token's life.
func (a *Approver) madeInTime(_ context.Context, c *candidate) (*verdict, error) {
	made := c.csr.CreationTimestamp.Time
	// check: CSRMismatch: a request that waited since an earlier token of that id
	if made.Before(c.token.Minted.Add(-maxSkew)) {
		return new(mismatch("the request was made at %s, before its token", stamp(made))), nil
	}
	// check: CSRMismatch: a token that is over is used
	if !made.Before(c.token.Expires.Add(maxSkew)) {
		return new(over(c.token)), nil
	}
	return nil, nil
}

func over(t *Token) verdict {
	return mismatch("the time of the token is over since %s", stamp(t.Expires))
}

// stillInTime ends what waited too long. For a proof it gives up a moment before the minter takes the
// token back, so that request and run say the same.
func (a *Approver) stillInTime(_ context.Context, c *candidate) (*verdict, error) {
	// check: ProofFailed: a host that is kept from answering, until nobody looks any more
	if !a.WithoutProof && token.Unproved(c.run) && !a.Now().Before(c.proofEnd()) {
		return new(unproved("%s", token.NoProof(c.run))), nil
	}
	// check: CSRMismatch: a request that is judged late, when its token is over
	if !a.Now().Before(c.token.Expires) {
		return new(over(c.token)), nil
	}
	return nil, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// findRun wants the run that the token was given to, and one that joins.
func (a *Approver) findRun(ctx context.Context, c *candidate) (*verdict, error) {
	run := &v1alpha1.HostRun{}
	err := a.Objects.Reader.Get(ctx, c.token.Run, run)
	// check: CSRMismatch: the run was deleted, and another of its name made
	if apierrors.IsNotFound(err) || err == nil && run.UID != c.token.UID {
		return new(mismatch("the HostRun %s of the token is gone", c.token.Run)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the HostRun: %w", err)
	}
	// check: CSRMismatch: a run that is over, cancelled or being deleted makes no node
	if isOver(run) || run.DeletionTimestamp != nil || run.Spec.Cancel || run.Spec.Phase != v1alpha1.HostRunJoin {
		return new(mismatch("the HostRun %s is over, or joins nobody", c.token.Run)), nil
	}
	c.run = run
	return nil, nil
}

// judgeRun judges the run anew, under the policy in force.
func (a *Approver) judgeRun(ctx context.Context, c *candidate) (*verdict, error) {
	refusal, err := a.judgeStored(ctx, c)
	if err != nil {
		return nil, err
	}
	if refusal != nil && refusal.Waiting {
		return &verdict{what: leave, again: policyAgain}, nil
	}
	// check: NodeNameRefused: what the policy allowed when the token was given, and no more
	if refusal != nil {
		return new(denied(refusal.Reason, "%s", refusal.Message)), nil
	}
	return nil, nil
}

// judgeStored judges what the run names.
func (a *Approver) judgeStored(ctx context.Context, c *candidate) (*judge.Refusal, error) {
	s, err := a.Policy.Snapshot(ctx, a.Now())
	if e, ok := errors.AsType[*decision.Error](err); ok {
		return judge.RefusedBy(e.Denied(object.KindTrustPolicy, object.TrustPolicyName)), nil
	}
	if err != nil {
		return nil, err
	}
	var stored judge.Stored
	if err := a.Objects.Host(ctx, c.run.Namespace, c.run.Spec.HostRef.Name, &stored); err != nil {
		return nil, err
	}
	host, refusal := judge.Host(s, c.run, stored)
	if refusal != nil {
		return refusal, nil
	}
	if _, stored.Profile, err = a.Objects.Get(ctx, object.KindJoinProfile, "", c.run.Spec.ProfileRef.Name); err != nil {
		return nil, err
	}
	if s.Stored, err = a.Objects.Look(ctx, c.run, host, stored); err != nil {
		return nil, err
	}
	c.host, c.snapshot = host, s
	_, refusal = judge.Sending(s, c.run, stored)
	return refusal, nil
}

func isOver(run *v1alpha1.HostRun) bool {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return c != nil && c.Status == metav1.ConditionFalse
}

// judgeRequest compares the request with the run.
func (a *Approver) judgeRequest(_ context.Context, c *candidate) (*verdict, error) {
	key, err := c.request.Check(c.request.TokenID(), c.run.Spec.NodeName)
	// check: CSRMismatch: a request that is not the one of that node's kubelet
	if err != nil {
		return new(refused(err)), nil
	}
	c.key = key
	return nil, nil
}

// firstUse: a token is good for one key. Of several requests for that key one is the kubelet's, the others are
// left alone. No request precedes itself.
func (a *Approver) firstUse(ctx context.Context, c *candidate) (*verdict, error) {
	others, err := a.madeWith(ctx, c.request.TokenID())
	if err != nil {
		return nil, err
	}
	var original *certificatesv1.CertificateSigningRequest
	for i := range others {
		o := &others[i]
		if o.CreationTimestamp.Time.Before(c.token.Minted.Add(-maxSkew)) {
			continue
		}
		if sameKey(o, c.key) {
			if precedes(o, c.csr) {
				original = o
			}
			continue
		}
		// check: CSRMismatch: two machines use one token. Of one second, neither was first
		if !c.csr.CreationTimestamp.Before(&o.CreationTimestamp) {
			a.Metrics.alarm(reasonSecondRequest)
			return new(mismatch("another request, %.100q, used the token first, with another key", o.Name)), nil
		}
	}
	// check: CSRMismatch: a copy of the kubelet's request, by another bearer of the token, that is approved in its place
	if original != nil {
		a.tell(c, corev1.EventTypeWarning, verdict{reason: reasonSecondRequest, message: fmt.Sprintf(
			"left alone: the request %.100q is for the same key, and is the kubelet's; unless the host itself asked twice, somebody else holds the token", original.Name)})
		return new(left()), nil
	}
	return nil, nil
}

// precedes: of two requests for one key the one that a kubelet named so is the one whose certificate it waits
// for. Of others that is the older one: a copy is made later.
func precedes(o, c *certificatesv1.CertificateSigningRequest) bool {
	if own, other := isNamedByKubelet(o), isNamedByKubelet(c); own != other {
		return own
	}
	if !o.CreationTimestamp.Equal(&c.CreationTimestamp) {
		return o.CreationTimestamp.Before(&c.CreationTimestamp)
	}
	return o.Name < c.Name
}

func isNamedByKubelet(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Name == requestOf(csr).OwnName()
}

// onlyUse: one token, one certificate. Whoever holds the token may hand in the kubelet's own request once
// more, which is nothing to deny: that would end the token with which the kubelet fetches its certificate.
func (a *Approver) onlyUse(_ context.Context, c *candidate) (*verdict, error) {
	// check: CSRMismatch: a second certificate for the key, whose approval no run can record
	if by := joinedBy(c.run); by != "" && !strings.HasPrefix(by, record(c.csr)) {
		return new(left()), nil
	}
	return nil, nil
}

// sameKey reports whether another request is for the key. One that cannot be read is for another.
func sameKey(o *certificatesv1.CertificateSigningRequest, key ssh.PublicKey) bool {
	other, err := kubeletcsr.Key(o.Spec.Request)
	return err == nil && bytes.Equal(other.Marshal(), key.Marshal())
}

func (a *Approver) approval(c *candidate) verdict {
	v := verdict{what: approve, reason: reasonApproved, message: fmt.Sprintf("the host proved that %s is its kubelet's key", sshsig.Fingerprint(c.key))}
	if a.WithoutProof {
		v.reason = reasonProofSkipped
		v.message = fmt.Sprintf("nobody proved that %s is the key of the host's kubelet: the minter runs with --proof=off", sshsig.Fingerprint(c.key))
	}
	return v
}
