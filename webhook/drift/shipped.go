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
			all = append(all, normal(u, namespace))
		}
	}
	return all, nil
}

// separator stands between the documents of a file.
var separator = regexp.MustCompile(`(?m)^---$`)

// normal has integers as a client reads them, and the namespace of the installation.
func normal(u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	u.Object, _ = whole(u.Object).(map[string]any)
	hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
	if err != nil || hooks == nil {
		return u
	}
	for _, hook := range hooks {
		if h, ok := hook.(map[string]any); ok {
			// A webhook of ours names a service: where it does not, nothing is set, and it differs.
			_ = unstructured.SetNestedField(h, namespace, "clientConfig", "service", "namespace")
		}
	}
	u.Object["webhooks"] = hooks
	return u
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
