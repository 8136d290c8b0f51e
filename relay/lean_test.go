package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// Whoever creates HostRuns fills no memory with what the relay never reads.
func TestTheCacheKeepsNoAnnotations(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "pool", Name: "r", UID: "u", ResourceVersion: "7", Finalizers: []string{"example.com/hold"}}
	want := &v1alpha1.HostRun{ObjectMeta: meta, Spec: v1alpha1.HostRunSpec{NodeName: "pool-1"}}
	run := want.DeepCopy()
	run.Annotations, run.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	kept, err := lean(run)
	if diff := cmp.Diff(want, kept); err != nil || diff != "" {
		t.Error(err, diff)
	}
	gone := toolscache.DeletedFinalStateUnknown{Key: "pool/r"}
	if kept, err := lean(gone); err != nil || kept != any(gone) {
		t.Errorf("%v, %v", kept, err)
	}
}
