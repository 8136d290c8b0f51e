//go:build linux

package courier

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// Run asks for a join: of host-a as pool-1, of others under names of their own, since two hosts cannot join under one.
func (w *World) Run(t testing.TB, name, host, profile string, change func(*v1alpha1.HostRun)) {
	t.Helper()
	node := "pool-1"
	if host != "host-a" {
		node = "pool-" + host
	}
	r := &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: v1alpha1.HostRunSpec{
			HostRef: v1alpha1.ObjectRef{Name: host}, ProfileRef: v1alpha1.ObjectRef{Name: profile}, Phase: v1alpha1.HostRunJoin, NodeName: node,
		},
	}
	if change != nil {
		change(r)
	}
	must(t, w.Client.Create(t.Context(), r))
}

// Read gives a run as it is stored.
func (w *World) Read(t testing.TB, name string) *v1alpha1.HostRun {
	t.Helper()
	var r v1alpha1.HostRun
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, &r))
	return &r
}

// ConditionOf gives a condition of a run, the zero one where there is none.
func ConditionOf(r *v1alpha1.HostRun, kind string) metav1.Condition {
	for _, c := range r.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// Until polls a run.
func (w *World) Until(t testing.TB, name string, limit time.Duration, done func(*v1alpha1.HostRun) bool) *v1alpha1.HostRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		r := w.Read(t, name)
		if done(r) {
			return r
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after %s the run %s is %+v; the relay's log:\n%s", limit, name, r.Status, w.Programs.Relay.Tail(20))
		}
	}
}

// IsOver says whether a run is final.
func IsOver(r *v1alpha1.HostRun) bool {
	c := ConditionOf(r, v1alpha1.ConditionSucceeded)
	return c.Status == metav1.ConditionTrue || c.Status == metav1.ConditionFalse
}

// Ended waits for the end of a run and compares its result and exit codes; -1 is none.
func (w *World) Ended(t testing.TB, name, reason string, shim, script int32) *v1alpha1.HostRun {
	t.Helper()
	r := w.Until(t, name, stepLimit, IsOver)
	c := ConditionOf(r, v1alpha1.ConditionSucceeded)
	if c.Reason != reason || Value(r.Status.ShimExitCode) != shim || Value(r.Status.ScriptExitCode) != script {
		t.Fatalf("run %s ended %s (%s), shim %d, script %d; want %s, %d, %d; output %q", name, c.Reason, c.Message,
			Value(r.Status.ShimExitCode), Value(r.Status.ScriptExitCode), reason, shim, script, r.Status.TranscriptTail)
	}
	return r
}

// Value is an exit code, -1 where there is none.
func Value(n *int32) int32 {
	if n == nil {
		return -1
	}
	return *n
}
