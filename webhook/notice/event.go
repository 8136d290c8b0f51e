package notice

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// component is who reports.
const component = "hostwarrant-controller"

// maxMessage is the limit of an event's message (k8s.io/kubernetes/pkg/apis/core/validation, events: NoteLengthLimit 1024).
const maxMessage = 1024

// Events writes events. Its zero value writes nothing.
type Events struct {
	Client client.Client
	// Reader finds the trust policy's UID. It must not be a cache: that would hold every policy twice.
	Reader client.Reader
	Log    *slog.Logger
	Now    func() time.Time
	// Wait holds a write back until it may go, or ctx ends.
	Wait func(context.Context) error
}

// Normal tells of something good.
func (e *Events) Normal(ctx context.Context, about corev1.ObjectReference, reason, message string) bool {
	return e.write(ctx, about, corev1.EventTypeNormal, reason, message)
}

// Warning tells of something bad.
func (e *Events) Warning(ctx context.Context, about corev1.ObjectReference, reason, message string) bool {
	return e.write(ctx, about, corev1.EventTypeWarning, reason, message)
}

// write reports whether the event was stored. One that is lost is in the log.
func (e *Events) write(ctx context.Context, about corev1.ObjectReference, kind, reason, message string) bool {
	if e == nil || e.Client == nil {
		return false
	}
	if e.Wait != nil {
		if err := e.Wait(ctx); err != nil {
			return false
		}
	}
	now := e.Now()
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events about cluster-scoped objects are looked for
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name(about, reason, message, now), Namespace: namespace},
		InvolvedObject: e.identified(ctx, about), Type: kind, Reason: reason, Message: decision.OneLine(message, maxMessage),
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), Count: 1,
	}
	if err := e.Client.Create(ctx, event); err != nil {
		e.Log.Warn("writing an event", "about", about.Kind+"/"+about.Name, "reason", reason, "error", err)
		return false
	}
	return true
}

// identified names the object by its UID too: kubectl describe shows no event without it. Who tells of the
// trust policy does not know it.
func (e *Events) identified(ctx context.Context, about corev1.ObjectReference) corev1.ObjectReference {
	if about.UID != "" || about.Kind != object.KindTrustPolicy {
		return about
	}
	var policy v1alpha1.TrustPolicy
	if err := e.Reader.Get(ctx, client.ObjectKey{Name: about.Name}, &policy); err == nil {
		about.UID = policy.UID
	}
	return about
}

// name is unique for what is said when, and no longer than a name may be.
func name(about corev1.ObjectReference, reason, message string, now time.Time) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n%s", about.Kind, about.Namespace, about.Name, reason, message)
	return fmt.Sprintf("%.200s.%s-%x", about.Name, hex.EncodeToString(h.Sum(nil)), now.UnixNano())
}
