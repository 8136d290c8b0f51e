package hostrun

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// maxNote is the API's limit of an event's note.
const maxNote = 1024

// actionRun is what the relay does to a HostRun, in the words of an event.
const actionRun = "Run"

// tell makes an event of a condition. Two with one reason are one event with a count: the reference
// holds no version, by which client-go would tell them apart.
func (r *Reconciler) tell(run *v1alpha1.HostRun, kind string) {
	c := condition(run, kind)
	if c == nil {
		return
	}
	level := corev1.EventTypeWarning
	if c.Status == metav1.ConditionTrue || c.Reason == reasonSending || c.Reason == token.Pending {
		level = corev1.EventTypeNormal
	}
	r.note(referenceTo(run), level, c.Reason, c.Message)
}

// sendingAfter is how long a run is under way before an event says so. Each event is a write; that of a run which
// is over by then would stand beside its end and say no more. The status says it from the first moment.
const sendingAfter = 10 * time.Second

// tellSending makes one event of two conditions that change together, once the run is under way for a while. It is
// told no more after stop. The run may be changed meanwhile.
func (r *Reconciler) tellSending(run *v1alpha1.HostRun) (stop func()) {
	c := condition(run, v1alpha1.ConditionVerified)
	if c == nil {
		return func() {}
	}
	regarding, message := referenceTo(run), c.Message+", and is being sent"
	timer := time.AfterFunc(sendingAfter, func() {
		r.note(regarding, corev1.EventTypeNormal, reasonSending, message)
	})
	return func() { timer.Stop() }
}

func referenceTo(run *v1alpha1.HostRun) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: object.KindHostRun,
		Namespace: run.Namespace, Name: run.Name, UID: run.UID,
	}
}

func (r *Reconciler) note(regarding *corev1.ObjectReference, level, reason, message string) {
	r.Events.Eventf(regarding, nil, level, reason, actionRun, "%s", fmt.Sprintf("%.*s", maxNote, message))
}
