package canary

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// homes parts the kinds into those that the API server itself serves, which get a canary, and the
// outcomes of those that an aggregated one serves: nobody asks a webhook about these, and the
// controller judges what is stored.
func (p *Prober) homes(ctx context.Context, kinds []Served) (here []Served, elsewhere []Outcome, err error) {
	for _, k := range kinds {
		service := ""
		if k.movable() {
			if service, err = p.service(ctx, k); err != nil {
				return nil, nil, err
			}
		}
		if service == "" {
			here = append(here, k)
			continue
		}
		elsewhere = append(elsewhere, Outcome{Served: k, Endpoint: service, Result: Aggregated})
	}
	return here, elsewhere, nil
}

// service names the Service to which the API server hands requests about a kind; "" where it serves
// the kind itself.
func (p *Prober) service(ctx context.Context, k Served) (string, error) {
	registration := &unstructured.Unstructured{}
	registration.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	name := k.Version + "." + k.Group
	if err := p.Reader.Get(ctx, client.ObjectKey{Name: name}, registration); err != nil {
		return "", fmt.Errorf("finding out who serves %s: %w", name, err)
	}
	service, there, err := unstructured.NestedMap(registration.Object, "spec", "service")
	if err != nil {
		return "", fmt.Errorf("reading APIService %s: %w", name, err)
	}
	if !there || service == nil {
		return "", nil
	}
	return fmt.Sprintf("%v/%v", service["namespace"], service["name"]), nil
}
