package fresh

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects reads what an API server stores. Those who ask for one object share a read.
type Objects struct {
	client.Reader // not a cache
	reads         Reads[thing, client.Object]
}

// NewObjects reads by that reader.
func NewObjects(r client.Reader) *Objects { return &Objects{Reader: r} }

// thing is an object, and the Go type that it is read into.
type thing struct {
	client.ObjectKey
	kind schema.GroupVersionKind // of what is unstructured
	as   reflect.Type
}

// Get reads an object. What stood in o before is replaced.
func (r *Objects) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	empty, ok := o.DeepCopyObject().(client.Object) // o is its owner's again when ctx ends
	if !ok || len(opts) > 0 {
		return r.Reader.Get(ctx, key, o, opts...)
	}
	what := thing{key, o.GetObjectKind().GroupVersionKind(), reflect.TypeOf(o)}
	found, err := r.reads.Do(ctx, what, func(ctx context.Context) (client.Object, error) {
		return empty, r.Reader.Get(ctx, key, empty)
	})
	if err != nil {
		return err
	}
	mine := reflect.ValueOf(found.DeepCopyObject()) // found is everybody's
	if mine.Type() != what.as {
		return fmt.Errorf("a copy of %s %s is a %s", what.as, key, mine.Type())
	}
	reflect.ValueOf(o).Elem().Set(mine.Elem())
	return nil
}

var _ client.Reader = (*Objects)(nil)
