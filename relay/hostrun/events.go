package hostrun

import (
	"fmt"

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
	r.note(run, level, c.Reason, c.Message)
}

// tellSending makes one event of two conditions that change together: each event is a write.
func (r *Reconciler) tellSending(run *v1alpha1.HostRun) {
	if c := condition(run, v1alpha1.ConditionVerified); c != nil {
		r.note(run, corev1.EventTypeNormal, reasonSending, c.Message+", and is being sent")
	}
}

func (r *Reconciler) note(run *v1alpha1.HostRun, level, reason, message string) {
	regarding := &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: object.KindHostRun,
		Namespace: run.Namespace, Name: run.Name, UID: run.UID,
	}
	r.Events.Eventf(regarding, nil, level, reason, actionRun, "%s", fmt.Sprintf("%.*s", maxNote, message))
}
