package object

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
)

// SameGuarded reports whether an update leaves the guarded content of an object
// of the given kind as it was: its spec (of a HostRun but for cancel and the TTL,
// which start nothing) and, for an SSHHost, the host-class label too; of kubescape's kinds also
// all labels and the annotations that sign them or say who manages them. Such an
// update is exempt from judgement, so that an object whose signature expired can
// still be labelled, released and deleted. When in doubt the answer is false, and
// the object is judged.
func SameGuarded(kind string, oldJSON, newJSON []byte) bool {
	was, wasErr := guarded(kind, oldJSON)
	is, isErr := guarded(kind, newJSON)
	if wasErr != nil || isErr != nil || was.kind != is.kind || was.class != is.class || was.hasClass != is.hasClass || len(was.spec) != len(is.spec) {
		return false
	}
	if !maps.Equal(was.labels, is.labels) || !maps.Equal(was.annotations, is.annotations) {
		return false
	}
	for name, value := range was.spec {
		if other, ok := is.spec[name]; !ok || !same(value, other, maxLevels) {
			return false
		}
	}
	return true
}

// maxLevels is far above the depth of any kind's spec.
const maxLevels = 16

// ContentDigest is the identity of an object's kind, namespace, name and guarded
// content: "sha256:" and hex. How the JSON is written does not matter, nor whether
// a field that has a default in the CRD is left out or says it, so that a file and
// what is stored of it are one. The error carries Malformed.
func ContentDigest(raw []byte) (string, error) {
	o, err := parseAny(raw)
	if err != nil {
		return "", err
	}
	content, err := guarded(o.Kind, raw)
	if err != nil {
		return "", err
	}
	spec, err := content.values()
	if err != nil {
		return "", err
	}
	fillDefaults(o.Kind, spec)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	identity := []any{o.Namespace, o.Name, content.kind, spec, content.class, content.hasClass}
	if content.annotations != nil {
		identity = append(identity, content.labels, content.annotations)
	}
	if err := encoder.Encode(identity); err != nil {
		return "", malformed("", "cannot be written as JSON")
	}
	sum := sha256.Sum256(text.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// fillDefaults does what the API server does before admission: it drops nulls and
// sets the defaults that the CRDs give to fields of spec.
func fillDefaults(kind string, spec map[string]any) {
	dropNulls(spec)
	for path, value := range defaults(kind) {
		setDefault(spec, strings.Split(path, "."), value)
	}
}

// defaults are those of a kind's CRD, by path below spec; a path goes through each element of a list.
func defaults(kind string) map[string]any {
	switch kind {
	case KindJoinProfile:
		return map[string]any{"version": "1"}
	case KindHost:
		return map[string]any{"port": json.Number("22"), "user": "root", "execMode": ExecRaw, "sshKeySecretRef.name": ""}
	case KindNodeClass:
		return map[string]any{
			"providerIDSource": "Static", "pricePerCPUHour": "0.02", "joinProfileRef.name": "", "joinSecretRef.name": "",
			"startupTaintGates.removeWhen.podsReady.minReady":   json.Number("1"),
			"startupTaintGates.removeWhen.nodeCondition.status": "True",
		}
	case KindHostRun:
		return map[string]any{"deadlineSeconds": json.Number("3600")}
	default:
		return nil
	}
}

// setDefault sets a field that its object, which is there, leaves out.
func setDefault(in any, path []string, value any) {
	switch in := in.(type) {
	case []any:
		for _, element := range in {
			setDefault(element, path, value)
		}
	case map[string]any:
		if len(path) > 1 {
			setDefault(in[path[0]], path[1:], value)
		} else if _, given := in[path[0]]; !given {
			in[path[0]] = value
		}
	}
}

func dropNulls(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			dropNulls(element)
		}
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
			}
			dropNulls(field)
		}
	}
}

// content is what is guarded of an object: its kind, its spec and, of a host, its class; of
// kubescape's kinds, and of no others, its labels and those annotations.
type content struct {
	kind                string
	spec                fields
	class               string
	hasClass            bool
	labels, annotations map[string]string
}

// values gives the spec as plain values.
func (c content) values() (map[string]any, error) {
	all := map[string]any{}
	for name, raw := range c.spec {
		var value any
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber() // float64 would make large numbers equal that are not
		if err := decoder.Decode(&value); err != nil {
			return nil, malformed("spec."+name, "cannot be read")
		}
		all[name] = value
	}
	return all, nil
}

func guarded(kind string, raw []byte) (content, error) {
	o, err := parseAny(raw)
	if err != nil {
		return content{}, err
	}
	// check: Malformed: without a spec there is nothing to compare
	if o.spec == nil {
		return content{}, malformed("spec", "is missing")
	}
	c := content{kind: o.Kind, spec: o.spec}
	switch kind {
	case KindJoinProfile, KindNodeClass, KindTrustPolicy, KindHostStatement:
	case KindHost:
		c.class, c.hasClass = o.Labels[HostClassLabel]
	case KindHostRun:
		delete(c.spec, "cancel")
		delete(c.spec, "ttlSecondsAfterFinished")
	case KindContainerProfile, KindSeccompProfile, KindRules, KindRuleBinding:
		c.labels, c.annotations = o.Labels, map[string]string{}
		for name, value := range o.Annotations {
			if Claims(name) || name == ManagedByAnnotation {
				c.annotations[name] = value
			}
		}
	default:
		return content{}, malformed("kind", "no rule says what is guarded in a %.60q", kind)
	}
	return c, nil
}
