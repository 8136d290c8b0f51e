package drift

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Group is that of everything compared here.
const Group = "admissionregistration.k8s.io"

// Parse reads the YAML of what is shipped, for an installation in a namespace.
func Parse(texts []string, namespace string) ([]Object, error) {
	var all []Object
	for _, text := range texts {
		decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
		for {
			o := Object{}
			err := decoder.Decode((*map[string]any)(&o))
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("reading what is shipped: %v", err)
			}
			if !strings.HasPrefix(o.APIVersion(), Group+"/") || o.Name() == "" {
				return nil, fmt.Errorf("reading what is shipped: %s is not a named object of group %s", o, Group)
			}
			if err := o.normalize(namespace); err != nil {
				return nil, err
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// normalize gives an object integers as a client reads them, and the namespace of the installation.
func (o Object) normalize(namespace string) error {
	whole(map[string]any(o))
	for _, hook := range as[[]any](o["webhooks"]) {
		config := as[map[string]any](as[map[string]any](hook)["clientConfig"])
		service, ok := config["service"].(map[string]any)
		if !ok {
			return fmt.Errorf("reading what is shipped: %s holds a webhook without a service", o)
		}
		service["namespace"] = namespace
	}
	return nil
}

// whole turns the integers that YAML gives into those of a client.
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
	case int:
		return int64(v)
	default:
		return value
	}
}
