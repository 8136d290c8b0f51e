package canary

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/internal/drift"
	"github.com/hostwarrant/hostwarrant/manifests"
)

// What differs how is tested in internal/drift; here, that the stored objects are what is compared.
func TestWhatIsStoredIsCompared(t *testing.T) {
	texts, err := manifests.Guards()
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := drift.Parse(texts, "hostwarrant-system")
	if err != nil {
		t.Fatal(err)
	}
	stored := func(but string) *fake.ClientBuilder {
		b := fake.NewClientBuilder().WithScheme(runtime.NewScheme())
		for _, o := range shipped {
			if o.String() != but {
				b = b.WithObjects((&unstructured.Unstructured{Object: o}).DeepCopy())
			}
		}
		return b
	}
	const binding = "ValidatingAdmissionPolicyBinding/hostwarrant-ledger"
	broken := errors.New("broken")
	unreadable := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if key.Name == "hostwarrant-ledger" {
			return broken
		}
		return c.Get(ctx, key, o, opts...)
	}}
	for name, c := range map[string]struct {
		reader client.Reader
		want   []drift.Difference
		err    error
	}{
		"all of it":            {stored("").Build(), nil, nil},
		"one is missing":       {stored(binding).Build(), []drift.Difference{{Kind: "ValidatingAdmissionPolicyBinding", Name: "hostwarrant-ledger", What: drift.Missing}}, nil},
		"one cannot be read":   {stored("").WithInterceptorFuncs(unreadable).Build(), nil, broken},
		"nothing is installed": {fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), missing(shipped), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Guards{Reader: c.reader, Shipped: shipped}).Check(t.Context())
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v; want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func missing(shipped []drift.Object) []drift.Difference {
	var all []drift.Difference
	for _, o := range shipped {
		all = append(all, drift.Difference{Kind: o.Kind(), Name: o.Name(), What: drift.Missing})
	}
	return all
}
