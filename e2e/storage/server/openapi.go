package main

import (
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/hostwarrant/hostwarrant/e2e/storage/server/profile"
)

// definitions are what server-side apply reads types from. The spec is said to be anything: its lists
// are then replaced whole, as lists without a key are.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := maps.Clone(openapi.GetOpenAPIDefinitions(ref))
	meta, listMeta := metav1.ObjectMeta{}.OpenAPIModelName(), metav1.ListMeta{}.OpenAPIModelName()
	one := profile.ContainerProfile{}.OpenAPIModelName()
	all[one] = object(map[string]spec.Schema{
		"metadata": reference(ref(meta)), "spec": anything(), "status": anything(),
	}, meta)
	all[profile.ContainerProfileList{}.OpenAPIModelName()] = object(map[string]spec.Schema{
		"metadata": reference(ref(listMeta)), "items": *spec.ArrayProperty(new(reference(ref(one)))),
	}, listMeta, one)
	return all
}

// object is the definition of a kind.
func object(properties map[string]spec.Schema, dependencies ...string) common.OpenAPIDefinition {
	properties["apiVersion"], properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	return common.OpenAPIDefinition{
		Schema:       spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}},
		Dependencies: dependencies,
	}
}

func anything() spec.Schema {
	return spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}
}

func reference(to spec.Ref) spec.Schema { return spec.Schema{SchemaProps: spec.SchemaProps{Ref: to}} }
