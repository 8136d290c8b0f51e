package notice

import (
	"io"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// kubectl describe finds events by the UID of what they are about.
func TestEventsNameTheirObjectByItsUID(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	policy := &v1alpha1.TrustPolicy{ObjectMeta: metav1.ObjectMeta{Name: "cluster", UID: "of the policy"}}
	about := corev1.ObjectReference{Kind: "TrustPolicy", Name: "cluster"}
	for name, tt := range map[string]struct {
		stored []client.Object
		about  corev1.ObjectReference
		want   types.UID
	}{
		"the policy":          {[]client.Object{policy}, about, "of the policy"},
		"no policy is stored": {nil, about, ""},
		"a host":              {[]client.Object{policy}, corev1.ObjectReference{Kind: "SSHHost", Namespace: "pool", Name: "cluster", UID: "its own"}, "its own"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.stored...).Build()
			e := &Events{Client: c, Reader: c, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: testkit.Now}
			if !e.Warning(t.Context(), tt.about, "NotAsked", "said") {
				t.Fatal("it was not written")
			}
			var events corev1.EventList
			if err := c.List(t.Context(), &events); err != nil || len(events.Items) != 1 {
				t.Fatalf("%v, %d events", err, len(events.Items))
			}
			want := tt.about
			want.UID = tt.want
			if diff := cmp.Diff(want, events.Items[0].InvolvedObject); diff != "" {
				t.Error(diff)
			}
		})
	}
}
