package minter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// What docs/spec/join.md says that a join costs, of the minter's part.
func TestWhatATokenCosts(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	writes := map[string]int{}
	w.fails = func(verb string, o client.Object) error {
		switch o.(type) {
		case *authorizationv1.SubjectAccessReview:
			writes["a review, which nothing stores"]++
		case *corev1.Secret:
			writes["a Secret"]++
		case *v1alpha1.HostRun:
			writes["a HostRun: "+verb]++
		case *corev1.Node: // which the test makes
		default:
			t.Errorf("%s %T", verb, o)
		}
		return nil
	}
	recorder := events.NewFakeRecorder(10)
	w.m.Events = recorder
	w.reconcile("r")
	id := w.wantToken("r")
	w.must(w.m.Approved(t.Context(), id, "Approved", "as the approver says"))
	w.must(w.client.Create(t.Context(), nodeOf(w, "pool-1", "kpssh://pool/host-a")))
	w.reconcile("r")
	w.wantJoined("r", isTrue, "Approved", "")
	w.wantNothing()
	writes["an event"] = len(recorder.Events)
	want := map[string]int{
		"a review, which nothing stores": 2,
		"a HostRun: patch":               2, // the finalizer, on and off
		"a HostRun: status":              3, // recorded, issued, approved
		"a Secret":                       4, // two, made and deleted
		"an event":                       2,
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Error(diff)
	}
}
