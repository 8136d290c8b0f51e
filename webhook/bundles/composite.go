package bundles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// What a composite carries beside its spec.
const (
	// AnnotationRoot is the Merkle root of its members, AnnotationManifest names them.
	AnnotationRoot     = "hostwarrant.dev/merkle-root"
	AnnotationManifest = "hostwarrant.dev/manifest"

	annotationManagedBy = "kubescape.io/managed-by"
	managedByUser       = "User"

	labelManagedBy = "app.kubernetes.io/managed-by"
	labelBundle    = "hostwarrant.dev/bundle"
	us             = "hostwarrant"
)

// composite is what is to be stored under a bundle's name.
type composite struct {
	ID
	root     string
	manifest []byte
	spec     map[string]any
	// digest identifies the spec however it is written.
	digest string
	bytes  int
}

// compositeOf makes what is stored of an assembled profile.
func compositeOf(id ID, c *bundle.Composite) (*composite, error) {
	manifest, err := c.Manifest()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c.Spec)
	if err != nil {
		return nil, err
	}
	spec, err := generic(text)
	if err != nil {
		return nil, err
	}
	digest, err := specDigest(text)
	return &composite{ID: id, root: c.Root, manifest: manifest, spec: spec, digest: digest, bytes: len(text)}, err
}

// generic is a spec as the API server takes it in either home: lists and maps that are nil are left out.
func generic(text []byte) (map[string]any, error) {
	var spec map[string]any
	if err := utiljson.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	prune(spec, func(value any) bool { return value == nil })
	return spec, nil
}

// specDigest identifies a spec: what differs in nil, empty and absent alone is one, and what has a field
// that is not known is none.
func specDigest(text []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var typed fragment.ProfileSpec
	if err := decoder.Decode(&typed); err != nil {
		return "", decision.Errorf(decision.NotCanonical, "the spec has what no composite has: %v", err)
	}
	typed = settled(typed)
	normal, err := json.Marshal(typed)
	if err != nil {
		return "", err
	}
	var value map[string]any
	numbers := json.NewDecoder(bytes.NewReader(normal))
	numbers.UseNumber()
	if err := numbers.Decode(&value); err != nil {
		return "", err
	}
	prune(value, empty)
	normal, err = json.Marshal(value)
	sum := sha256.Sum256(normal)
	return hex.EncodeToString(sum[:]), err
}

// settled sorts what is a set, and says once what is said twice: storage does.
func settled(s fragment.ProfileSpec) fragment.ProfileSpec {
	for _, set := range []*[]string{&s.Architectures, &s.Capabilities, &s.Syscalls} {
		*set = slices.Compact(slices.Sorted(slices.Values(*set)))
	}
	policies := map[string]fragment.RulePolicy{}
	for id, policy := range s.RulePolicies {
		policy.ProcessAllowed = slices.Compact(slices.Sorted(slices.Values(policy.ProcessAllowed)))
		policies[id] = policy
	}
	s.RulePolicies = policies
	var expressions []fragment.Requirement
	for _, e := range s.MatchExpressions {
		same := func(other fragment.Requirement) bool { return reflect.DeepEqual(e, other) }
		if !slices.ContainsFunc(expressions, same) {
			expressions = append(expressions, e)
		}
	}
	s.MatchExpressions = expressions
	return s
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}

// prune drops from objects, at all depths, the fields of which drop says so, the innermost first.
func prune(value any, drop func(any) bool) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			prune(element, drop)
		}
	case map[string]any:
		for name, field := range value {
			prune(field, drop)
			if drop(field) {
				delete(value, name)
			}
		}
	}
}

// object is the composite as it is stored first.
func (c *composite) object(apiVersion string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": c.spec}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(fragment.KindContainerProfile)
	u.SetNamespace(c.Namespace)
	u.SetName(c.Name)
	c.mark(u)
	return u
}

// mark sets labels and annotations, and takes away what would make the object a fragment. What others
// added beside stays.
func (c *composite) mark(u *unstructured.Unstructured) {
	labels := unsignedOnly(u.GetLabels())
	labels[labelManagedBy], labels[labelBundle] = us, labelValue(c.Name)
	u.SetLabels(labels)
	annotations := unsignedOnly(u.GetAnnotations())
	annotations[annotationManagedBy] = managedByUser
	annotations[AnnotationRoot], annotations[AnnotationManifest] = c.root, bundle.Annotation(c.manifest)
	u.SetAnnotations(annotations)
}

// labelValue is a bundle's name where it fits a label, which it does wherever a pod names it by one.
func labelValue(name string) string { return name[:min(len(name), 63)] }

// unsignedOnly leaves out what belongs to signed fragments.
func unsignedOnly(m map[string]string) map[string]string {
	rest := map[string]string{}
	for key, value := range m {
		if !strings.HasPrefix(key, signedPrefix) {
			rest[key] = value
		}
	}
	return rest
}

// signedPrefix is of labels and annotations that fragments alone carry.
const signedPrefix = "signature.kubescape.io/"

// differs names the parts of a stored object in which it is not the composite.
func (c *composite) differs(u *unstructured.Unstructured) []string {
	var parts []string
	if digestOf(u) != c.digest {
		parts = append(parts, "spec")
	}
	want := c.object(u.GetAPIVersion())
	if !carries(u.GetLabels(), want.GetLabels()) {
		parts = append(parts, "labels")
	}
	if !carries(u.GetAnnotations(), want.GetAnnotations()) {
		parts = append(parts, "annotations")
	}
	return parts
}

// carries reports whether has holds all of want, and nothing that fragments alone carry.
func carries(has, want map[string]string) bool {
	for key := range has {
		if strings.HasPrefix(key, signedPrefix) {
			return false
		}
	}
	for key, value := range want {
		if has[key] != value {
			return false
		}
	}
	return true
}

// digestOf is the specDigest of a stored object; "" of one whose spec no composite has.
func digestOf(u *unstructured.Unstructured) string {
	spec, found, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil || !found {
		spec = map[string]any{}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	digest, err := specDigest(text)
	if err != nil {
		return ""
	}
	return digest
}
