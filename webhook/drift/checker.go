package drift

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Difference is one live object that is not as it was shipped.
type Difference struct {
	Kind, Name string
	// What says how it differs: "is missing", or a field.
	What string
}

// String is one line.
func (d Difference) String() string { return d.Kind + "/" + d.Name + ": " + d.What }

// Checker compares the cluster with what is shipped.
type Checker struct {
	Reader  client.Reader
	Shipped []*unstructured.Unstructured
}

// Check reads each object once. The error says that something could not be read, and nothing is known.
func (c *Checker) Check(ctx context.Context) ([]Difference, error) {
	var all []Difference
	for _, shipped := range c.Shipped {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(shipped.GroupVersionKind())
		err := c.Reader.Get(ctx, client.ObjectKeyFromObject(shipped), live)
		if apierrors.IsNotFound(err) {
			all = append(all, Difference{shipped.GetKind(), shipped.GetName(), "is missing"})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", shipped.GetKind(), shipped.GetName(), err)
		}
		for _, field := range compare(shipped.Object, live.Object) {
			all = append(all, Difference{shipped.GetKind(), shipped.GetName(), field})
		}
	}
	return all, nil
}
