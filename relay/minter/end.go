package minter

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// ending is why a token is over, and what its run says of it.
type ending struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// take deletes both Secrets of a token. By their names: nobody reads them.
func (m *Minter) take(ctx context.Context, id string, run types.NamespacedName, uid types.UID) error {
	// check: InUse: whoever writes a status has somebody else's bootstrap token deleted
	if !token.IsID(id) {
		return m.delete(ctx, run.Namespace, token.HandoverName(uid), "")
	}
	return errors.Join(m.delete(ctx, metav1.NamespaceSystem, token.BootstrapName(id), ""), m.delete(ctx, run.Namespace, token.HandoverName(uid), ""))
}

// end takes the token away, then says so, then lets the run go. Killed anywhere in between it is done
// again from the start.
func (m *Minter) end(ctx context.Context, run *v1alpha1.HostRun, why ending) error {
	id := run.Status.TokenID
	key := client.ObjectKeyFromObject(run)
	if e, ok := m.Book.of(run.UID); ok && e.ID != id { // recorded here alone
		if err := m.take(ctx, e.ID, key, run.UID); err != nil {
			return err
		}
	}
	if err := m.take(ctx, id, key, run.UID); err != nil {
		return err
	}
	m.step("taken")
	if !isFinal(run) {
		err := m.write(ctx, run, func(s *v1alpha1.HostRunStatus) {
			say(s, run.Generation, why.status, why.reason, why.message, m.Now())
		})
		if err != nil {
			return err
		}
	}
	m.forget(run.UID, why.reason)
	m.tell(run, corev1.EventTypeNormal, "TokenDeleted", fmt.Sprintf("token %s: %s", id, why.message))
	return m.finalize(ctx, run, false)
}

// forget strikes a token out.
func (m *Minter) forget(uid types.UID, reason string) {
	if _, ok := m.Book.of(uid); !ok {
		return
	}
	m.Book.drop(uid)
	m.Metrics.ended.WithLabelValues(reason).Inc()
	m.Metrics.living.Set(float64(m.Book.size()))
}

// orphans takes the tokens of a run that is gone, or was replaced by another of its name.
func (m *Minter) orphans(ctx context.Context, key types.NamespacedName, but types.UID) error {
	for _, e := range m.Book.find(func(e Entry) bool { return e.Run == key && e.UID != but }) {
		if err := m.take(ctx, e.ID, e.Run, e.UID); err != nil {
			return err
		}
		m.forget(e.UID, "RunDeleted")
	}
	return nil
}

// End ends the token of an id at once, and its run will not join: reason and message say why. It is the
// approver's. Nothing happens where no run holds it.
func (m *Minter) End(ctx context.Context, id, reason, message string) error {
	return m.settle(ctx, id, func(run *v1alpha1.HostRun) error {
		return m.end(ctx, run, ending{metav1.ConditionFalse, reason, message})
	})
}

// Approved records that the certificate request of the token's bearer was approved. The token lives
// until the node registers: its kubelet fetches the certificate with it. An error means that this
// approval is not recorded.
func (m *Minter) Approved(ctx context.Context, id, reason, message string) error {
	recorded := false
	err := m.settle(ctx, id, func(run *v1alpha1.HostRun) error {
		if c := joined(run); isFinal(run) {
			recorded = c.Status == metav1.ConditionTrue && c.Message == fitting(message)
			return nil
		}
		e, _ := m.Book.of(run.UID)
		err := m.write(ctx, run, func(s *v1alpha1.HostRunStatus) {
			say(s, run.Generation, metav1.ConditionTrue, reason, message, e.minted())
		})
		recorded = err == nil
		return err
	})
	// check: CSRMismatch: a certificate for a run that was cancelled a moment ago, or whose token is gone
	if err == nil && !recorded {
		return fmt.Errorf("nothing was recorded: the token %s is over, or another request was approved", id)
	}
	return err
}

// settle does something with the run that holds a token, as it is stored.
func (m *Minter) settle(ctx context.Context, id string, do func(*v1alpha1.HostRun) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.Book.Holder(id)
	if !ok {
		return nil
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var run v1alpha1.HostRun
		err := m.Objects.Reader.Get(ctx, e.Run, &run)
		if apierrors.IsNotFound(err) || err == nil && run.UID != e.UID {
			return m.orphans(ctx, e.Run, run.UID)
		}
		if err != nil {
			return wrap(err, "reading the run of a token")
		}
		return do(&run)
	})
}
