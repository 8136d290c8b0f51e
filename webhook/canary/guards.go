package canary

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/drift"
)

// Guards reads webhook configurations and policies, to have them compared with what is shipped. It is
// not safe for concurrent use.
type Guards struct {
	Reader  client.Reader
	Shipped []drift.Object

	looks drift.Looks
}

// Check reads each object once. The error says that something could not be read, and nothing is known.
func (g *Guards) Check(ctx context.Context) ([]drift.Difference, error) {
	var all []drift.Difference
	for _, shipped := range g.Shipped {
		live, err := g.read(ctx, shipped)
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", shipped.Kind(), shipped.Name(), err)
		}
		all = append(all, g.looks.At(shipped, live)...)
	}
	return all, nil
}

// read gives the object as it is stored, nil when there is none.
func (g *Guards) read(ctx context.Context, shipped drift.Object) (drift.Object, error) {
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(shipped.APIVersion())
	live.SetKind(shipped.Kind())
	err := g.Reader.Get(ctx, client.ObjectKey{Name: shipped.Name()}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live.Object, err
}
