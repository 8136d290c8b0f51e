package judge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// All runs of the node's name are judged by, whoever has them, and none of the thousands of other names.
func TestRunsOfTheNodesNameAreLookedAtAndNoOthers(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run := func(namespace, name, node string) *v1alpha1.HostRun {
		return &v1alpha1.HostRun{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"},
			Spec:       v1alpha1.HostRunSpec{HostRef: v1alpha1.ObjectRef{Name: "h"}, ProfileRef: v1alpha1.ObjectRef{Name: "p"}, Phase: v1alpha1.HostRunJoin, NodeName: node},
		}
	}
	mine := run("pool", "mine", "pool-1")
	b := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.HostRun{}, NodeNames, NodeNameOf).WithObjects(mine, run("pool", "same", "pool-1"), run("farm", "elsewhere", "pool-1"), run("pool", "probe", ""))
	for n := range 5 {
		b = b.WithObjects(run("pool", fmt.Sprint("other-", n), fmt.Sprint("pool-1", n)))
	}
	reader := b.Build()
	for node, want := range map[string][]string{"pool-1": {"farm/elsewhere", "pool/mine", "pool/same"}, "pool-13": {"pool/other-3"}, "": nil} {
		of := mine.DeepCopy()
		of.Spec.NodeName = node
		l, err := Objects{Reader: reader, Runs: reader}.Look(t.Context(), of, nil, Stored{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range l.HostRuns() {
			got = append(got, r.Namespace+"/"+r.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", node, diff)
		}
	}
}
