package drift

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxFields bounds how many differences of one object are named.
const maxFields = 8

// compare says of each field that a live object does not have as it was shipped, such as
// webhooks[0].failurePolicy, how it differs.
func compare(shipped, live Object) []string {
	var found []string
	for _, field := range fields(shipped, live) {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
			continue
		}
		differ(field, shipped[field], live[field], &found)
	}
	return found[:min(len(found), maxFields)]
}

func fields(a, b map[string]any) []string {
	names := slices.Collect(maps.Keys(a))
	names = slices.AppendSeq(names, maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// differ compares two values. A field that is not shipped may have the API's default.
func differ(path string, shipped, live any, found *[]string) {
	if reflect.DeepEqual(shipped, live) {
		return
	}
	switch want := shipped.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			break
		}
		for _, name := range fields(want, have) {
			_, says := want[name]
			if name == "caBundle" || !says && isDefault(name, have[name]) {
				continue
			}
			differ(path+"."+name, want[name], have[name], found)
		}
		return
	case []any:
		have, ok := live.([]any)
		if !ok {
			break
		}
		if len(want) != len(have) {
			*found = append(*found, fmt.Sprintf("%s has %d entries, not %d", path, len(have), len(want)))
			return
		}
		for i := range want {
			differ(fmt.Sprintf("%s[%d]", path, i), want[i], have[i], found)
		}
		return
	}
	if sameText(shipped, live) {
		return
	}
	*found = append(*found, path+" differs from what is shipped")
}

// sameText reports whether two expressions differ in white space alone: kustomize and Helm fold lines
// as they like, and CEL does not care.
func sameText(shipped, live any) bool {
	a, ok := shipped.(string)
	b, is := live.(string)
	return ok && is && slices.Equal(strings.Fields(a), strings.Fields(b))
}

// isDefault reports whether the API server fills in this value where a field is left out
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
func isDefault(field string, value any) bool {
	switch field {
	case "namespaceSelector", "objectSelector":
		selector, ok := value.(map[string]any)
		return ok && len(selector) == 0
	case "matchResources", "paramRef", "variables", "auditAnnotations", "matchConditions":
		return value == nil
	default:
		return reflect.DeepEqual(value, defaults()[field])
	}
}

func defaults() map[string]any {
	return map[string]any{
		"matchPolicy": "Equivalent", "failurePolicy": "Fail", "scope": "*", "timeoutSeconds": int64(10), "port": int64(443),
		"reinvocationPolicy": "Never",
	}
}
