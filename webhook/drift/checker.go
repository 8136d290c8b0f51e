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

// Checker compares the cluster with what is shipped. It is not safe for concurrent use.
type Checker struct {
	Reader  client.Reader
	Shipped []*unstructured.Unstructured

	// looks are those at objects that were as shipped when they were looked at last.
	looks map[client.ObjectKey]look
}

// Check reads each object once. The error says that something could not be read, and nothing is known.
func (c *Checker) Check(ctx context.Context) ([]Difference, error) {
	var all []Difference
	for _, shipped := range c.Shipped {
		found, err := c.one(ctx, shipped)
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", shipped.GetKind(), shipped.GetName(), err)
		}
		for _, what := range found {
			all = append(all, Difference{shipped.GetKind(), shipped.GetName(), what})
		}
	}
	return all, nil
}

// one says how one object differs.
func (c *Checker) one(ctx context.Context, shipped *unstructured.Unstructured) ([]string, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(shipped.GroupVersionKind())
	err := c.Reader.Get(ctx, client.ObjectKeyFromObject(shipped), live)
	if apierrors.IsNotFound(err) {
		c.forget(shipped)
		return []string{"is missing"}, nil
	}
	if err != nil {
		return nil, err
	}
	if found := compare(shipped.Object, live.Object); len(found) > 0 {
		c.forget(shipped) // what is put right again is no other alarm
		return found, nil
	}
	if c.touched(live) {
		return []string{"was changed, or deleted and made again, since it was looked at last; the audit log says by whom"}, nil
	}
	return nil, nil
}
