//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// ServeAlso has the API server serve a CRD in one more version, with the schema of the first, which
// stays the stored one. The function it returns takes the version away again.
func (w *Writer) ServeAlso(ctx context.Context, crd, version string) (undo func(context.Context) error, err error) {
	change := func(ctx context.Context, edit func([]any) []any) error {
		o, err := w.client.Resource(definitions()).Get(ctx, crd, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading %s: %w", crd, err)
		}
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		if err != nil || len(versions) == 0 {
			return fmt.Errorf("reading %s: no versions (%w)", crd, err)
		}
		if err := unstructured.SetNestedSlice(o.Object, edit(versions), "spec", "versions"); err != nil {
			return err
		}
		_, err = w.client.Resource(definitions()).Update(ctx, o, metav1.UpdateOptions{})
		return err
	}
	err = change(ctx, func(versions []any) []any {
		first, ok := versions[0].(map[string]any)
		if !ok {
			return versions
		}
		more := (&unstructured.Unstructured{Object: first}).DeepCopy().Object
		more["name"], more["storage"] = version, false
		return append(versions, any(more))
	})
	undo = func(ctx context.Context) error {
		return change(ctx, func(versions []any) []any { return versions[:1] })
	}
	return undo, errors.Join(err)
}
