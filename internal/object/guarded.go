package object

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
)

// SameGuarded reports whether an update leaves the guarded content of an object
// of the given kind as it was: its spec (of a HostRun but for cancel and the TTL,
// which start nothing) and, for an SSHHost, the host-class label too. Such an
// update is exempt from judgement, so that an object whose signature expired can
// still be labelled, released and deleted. When in doubt the answer is false, and
// the object is judged.
func SameGuarded(kind string, oldJSON, newJSON []byte) bool {
	was, wasErr := guarded(kind, oldJSON)
	is, isErr := guarded(kind, newJSON)
	return wasErr == nil && isErr == nil && reflect.DeepEqual(was, is)
}

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
	if spec, ok := content[1].(map[string]any); ok {
		fillDefaults(o.Kind, spec)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(append([]any{o.Namespace, o.Name}, content...)); err != nil {
		return "", malformed("", "cannot be written as JSON")
	}
	sum := sha256.Sum256(text.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// fillDefaults does what the API server does before admission: it drops nulls and
// sets the defaults that the CRDs give to fields of spec.
func fillDefaults(kind string, spec map[string]any) {
	dropNulls(spec)
	defaults := map[string]any{}
	switch kind {
	case KindJoinProfile:
		defaults["version"] = "1"
	case KindHost:
		defaults["port"], defaults["user"], defaults["execMode"] = json.Number("22"), "root", ExecRaw
	case KindNodeClass:
		defaults["providerIDSource"], defaults["pricePerCPUHour"] = "Static", "0.02"
	case KindHostRun:
		defaults["deadlineSeconds"] = json.Number("3600")
	}
	for name, value := range defaults {
		if _, given := spec[name]; !given {
			spec[name] = value
		}
	}
}

func dropNulls(object map[string]any) {
	for name, value := range object {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			dropNulls(value)
		}
	}
}

// guarded returns the guarded content as plain values: the kind, the spec and what
// else there is.
func guarded(kind string, raw []byte) ([]any, error) {
	o, err := parseAny(raw)
	if err != nil {
		return nil, err
	}
	var spec any
	decoder := json.NewDecoder(bytes.NewReader(o.rawSpec))
	decoder.UseNumber() // float64 would make large numbers equal that are not
	if err := decoder.Decode(&spec); err != nil {
		return nil, malformed("spec", "is missing")
	}
	content := []any{o.Kind, spec}
	switch kind {
	case KindJoinProfile, KindNodeClass, KindTrustPolicy:
	case KindHost:
		class, ok := o.Labels[HostClassLabel]
		content = append(content, class, ok)
	case KindHostRun:
		if run, ok := spec.(map[string]any); ok {
			delete(run, "cancel")
			delete(run, "ttlSecondsAfterFinished")
		}
	default:
		return nil, malformed("kind", "no rule says what is guarded in a %.60q", kind)
	}
	return content, nil
}
