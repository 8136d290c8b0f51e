package drift

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/manifests"
	"github.com/hostwarrant/hostwarrant/policies"
)

// Group is that of everything compared here.
const Group = "admissionregistration.k8s.io"

// Shipped returns the objects that the product ships, for an installation in a namespace.
func Shipped(namespace string) ([]*unstructured.Unstructured, error) {
	texts, err := policies.Guards()
	if err != nil {
		return nil, err
	}
	texts = append([]string{manifests.WebhookConfigurations()}, texts...)
	var all []*unstructured.Unstructured
	for _, text := range texts {
		for _, document := range separator.Split(text, -1) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
				return nil, fmt.Errorf("reading what is shipped: %v", err)
			}
			if u.GroupVersionKind().Group != Group {
				return nil, fmt.Errorf("reading what is shipped: %s/%s is not of group %s", u.GetKind(), u.GetName(), Group)
			}
			if err := normalize(u, namespace); err != nil {
				return nil, err
			}
			all = append(all, u)
		}
	}
	return all, nil
}

// separator stands between the documents of a file.
var separator = regexp.MustCompile(`(?m)^---$`)

// normalize gives u integers as a client reads them, and the namespace of the installation.
func normalize(u *unstructured.Unstructured, namespace string) error {
	whole(u.Object)
	hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
	if err != nil || hooks == nil {
		return err
	}
	for _, hook := range hooks {
		h, ok := hook.(map[string]any)
		if !ok {
			return fmt.Errorf("reading what is shipped: %s holds what is no webhook", u.GetName())
		}
		if err := unstructured.SetNestedField(h, namespace, "clientConfig", "service", "namespace"); err != nil {
			return fmt.Errorf("reading what is shipped: %v", err)
		}
	}
	u.Object["webhooks"] = hooks
	return nil
}

// whole turns the floats that YAML gives into integers.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = whole(v[name])
		}
		return v
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
		return v
	case float64:
		return int64(v)
	default:
		return value
	}
}
