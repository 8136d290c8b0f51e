package object

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	if wasErr != nil || isErr != nil || was.kind != is.kind || was.class != is.class || was.hasClass != is.hasClass || len(was.spec) != len(is.spec) {
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
	if err := encoder.Encode([]any{o.Namespace, o.Name, content.kind, spec, content.class, content.hasClass}); err != nil {
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

// content is what is guarded of an object: its kind, its spec and, of a host, its class.
type content struct {
	kind     string
	spec     fields
	class    string
	hasClass bool
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
	case KindJoinProfile, KindNodeClass, KindTrustPolicy:
	case KindHost:
		c.class, c.hasClass = o.Labels[HostClassLabel]
	case KindHostRun:
		delete(c.spec, "cancel")
		delete(c.spec, "ttlSecondsAfterFinished")
	default:
		return content{}, malformed("kind", "no rule says what is guarded in a %.60q", kind)
	}
	return c, nil
}
