package v1beta1_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// written are objects as people write them: every field that has a default is left out, or null.
func written(t *testing.T) []map[string]any {
	t.Helper()
	return []map[string]any{
		fromYAML(t, `{apiVersion: karpenter.dklesev.github.io/v1beta1, kind: SSHJoinProfile, metadata: {name: p}, spec: {version: null, scripts: {install: a, join: b, leave: c, uninstall: null}}}`),
		fromYAML(t, `{apiVersion: karpenter.dklesev.github.io/v1beta1, kind: SSHHost, metadata: {name: h, namespace: pool}, spec: {address: 10.0.0.1, sshKeySecretRef: {name: k}, capacity: {cpu: 2, memory: 4Gi}}}`),
		fromYAML(t, `{apiVersion: karpenter.dklesev.github.io/v1beta1, kind: SSHNodeClass, metadata: {name: c}, spec: {joinProfileRef: {name: p}, joinSecretRef: {name: s}, startupTaintGates: [
			{taintKey: a, removeWhen: {nodeCondition: {type: Ready, status: null}}},
			{taintKey: b, removeWhen: {podsReady: {namespace: ns, selector: {matchLabels: {a: b}, matchExpressions: null}}}}]}}`),
	}
}

// A waiver names what is stored by the digest of a file, whatever the API server fills in.
func TestTheDigestOfAFileIsThatOfWhatIsStoredOfIt(t *testing.T) {
	definitions := upstream(t)
	for _, o := range written(t) {
		t.Run(kindOf(o), func(t *testing.T) {
			c := definitions[kindOf(o)]
			stored := runtime.DeepCopyJSON(o)
			defaulting.PruneNonNullableNullsWithoutDefaults(stored, c.structural)
			stored, faults := c.admit(stored, nil)
			if len(faults) > 0 {
				t.Fatalf("refused: %q", faults)
			}
			left := c.structural.Properties["spec"]
			unfilled("spec", &left, stored["spec"], o["spec"], t.Error)
			if was, is := contentDigest(t, o), contentDigest(t, stored); was != is {
				t.Errorf("the file has %s, what is stored %s", was, is)
			}
			spec, ok := stored["spec"].(map[string]any)
			if !ok {
				t.Fatal("no spec")
			}
			spec["other"] = "x"
			if contentDigest(t, stored) == contentDigest(t, o) {
				t.Error("another field makes no difference")
			}
		})
	}
}

func contentDigest(t *testing.T, o map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := object.ContentDigest(raw)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// unfilled tells of each default that these objects do not show: a CRD that gets one more must be told
// to ContentDigest. An empty text is no default that anybody sees: names must not be empty.
func unfilled(path string, s *schema.Structural, stored, was any, tell func(...any)) {
	if s == nil {
		return
	}
	if s.Default.Object != nil && s.Default.Object != "" && (stored == nil || was != nil) {
		tell(path, "has a default, and no object here leaves it out")
	}
	for name := range s.Properties {
		property := s.Properties[name]
		unfilled(path+"."+name, &property, field(stored, name), field(was, name), tell)
	}
	if s.Items != nil {
		unfilled(path, s.Items, stored, was, tell)
	}
}

// field is a field of an object, or those of a list of objects; nil where none has it.
func field(in any, name string) any {
	switch in := in.(type) {
	case map[string]any:
		return in[name]
	case []any:
		var all []any
		for _, element := range in {
			if found := field(element, name); found != nil {
				all = append(all, found)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}
