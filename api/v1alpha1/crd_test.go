package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// The API server's limits on the cost of rules (k8s.io/apiserver/pkg/apis/cel: PerCallLimit, RuntimeCELCostBudget).
const (
	perCallLimit = 1000000
	costBudget   = 10000000
)

// readCRD reads a shipped CustomResourceDefinition.
func readCRD(t *testing.T, file string) (definition apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "manifests", "crds", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

// crdFaults answers what the API server finds wrong with an object that takes the place of old, by the
// shipped CustomResourceDefinition in file.
func crdFaults(t *testing.T, file string) func(o, old map[string]any) string {
	t.Helper()
	definition := readCRD(t, file)
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structural, true, perCallLimit)
	return func(o, old map[string]any) string {
		errs := validation.ValidateCustomResource(nil, o, validator)
		if len(errs) == 0 {
			var was any
			if old != nil {
				was = old
			}
			errs, _ = rules.Validate(t.Context(), nil, structural, o, was, costBudget)
		}
		var faults []string
		for _, err := range errs {
			faults = append(faults, err.Error())
		}
		return strings.Join(faults, "\n")
	}
}
