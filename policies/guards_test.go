package policies

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// staticSuffix is what the API server wants at the end of the name of what it reads from files.
const staticSuffix = ".static.k8s.io"

// guard is one file: one policy and its binding.
type guard struct {
	policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

func readGuard(t *testing.T, file string) guard {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var g guard
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		o, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch o := o.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy:
			if g.policy != nil {
				t.Errorf("%s: a second policy", file)
			}
			g.policy = o
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			if g.binding != nil {
				t.Errorf("%s: a second binding", file)
			}
			g.binding = o
		default:
			t.Errorf("%s: a %T", file, o)
		}
	}
	if g.policy == nil || g.binding == nil {
		t.Fatalf("%s: policy %v, binding %v; want one of each", file, g.policy != nil, g.binding != nil)
	}
	return g
}

// guards are those of a directory, by the name of the file without its extension.
func guards(t *testing.T, dir string) map[string]guard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if dir == "." {
		files = append(files, filepath.Join("webhook-configurations", "webhook-configurations.yaml"))
	}
	all := map[string]guard{}
	for _, file := range files {
		switch name := strings.TrimSuffix(filepath.Base(file), ".yaml"); name {
		case "kustomization", "trust-policy.document":
		default:
			all[name] = readGuard(t, file)
		}
	}
	return all
}

func TestEveryGuardStandsAloneAndRefuses(t *testing.T) {
	for dir, suffix := range map[string]string{".": "", filepath.Join("static", "manifests"): staticSuffix} {
		all := guards(t, dir)
		if len(all) < 6 {
			t.Fatalf("%s holds %d guards", dir, len(all))
		}
		for file, g := range all {
			t.Run(filepath.Join(dir, file), func(t *testing.T) {
				name := "hostwarrant-" + file + suffix
				if g.policy.Name != name || g.binding.Name != name || g.binding.Spec.PolicyName != name {
					t.Errorf("policy %q, binding %q of %q; want %q", g.policy.Name, g.binding.Name, g.binding.Spec.PolicyName, name)
				}
				s := g.policy.Spec
				if s.FailurePolicy == nil || *s.FailurePolicy != admissionregistrationv1.Fail {
					t.Error("failurePolicy is not Fail")
				}
				if s.ParamKind != nil || g.binding.Spec.ParamRef != nil || g.binding.Spec.MatchResources != nil {
					t.Error("parameters, or a narrower binding: what is absent then guards nothing")
				}
				if s.MatchConstraints.ObjectSelector != nil || len(s.MatchConstraints.ExcludeResourceRules) > 0 {
					t.Error("a label or an exclusion would be a way around")
				}
				for _, r := range s.MatchConstraints.ResourceRules {
					if len(r.ResourceNames) > 0 {
						t.Error("resourceNames do not match the deletion of a collection")
					}
					if !slices.Equal(r.APIVersions, []string{"*"}) || slices.Contains(r.APIGroups, "*") {
						t.Errorf("rule %+v", r)
					}
				}
				if !slices.Contains(g.binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
					t.Error("the binding does not deny")
				}
				checkMessages(t, s.Validations)
			})
		}
	}
}

// checkMessages wants every refusal to say in one line what is wrong.
func checkMessages(t *testing.T, validations []admissionregistrationv1.Validation) {
	t.Helper()
	if len(validations) == 0 {
		t.Error("nothing is validated")
	}
	for _, v := range validations {
		if v.Message == "" || strings.Contains(v.Message, "\n") || len(v.Message) > 256 {
			t.Errorf("message %q of %q", v.Message, v.Expression)
		}
	}
}

// What is read from files says the same as what is applied, for a cluster may have either.
func TestStaticManifestsSayWhatTheAppliedOnesSay(t *testing.T) {
	applied := guards(t, ".")
	for file, g := range guards(t, filepath.Join("static", "manifests")) {
		if file == "guards" { // guards policies and bindings, which policies of the API cannot
			continue
		}
		same, ok := applied[file]
		if !ok {
			t.Errorf("%s stands only among the static manifests", file)
			continue
		}
		if diff := cmp.Diff(same.policy.Spec, g.policy.Spec); diff != "" {
			t.Errorf("%s differs: %s", file, diff)
		}
	}
}

// Break-glass opens what holds the guards themselves, and nothing that says who may do what.
func TestBreakGlassOpensTheGuardsOnly(t *testing.T) {
	opened := map[string]bool{
		"ledger": true, "anchor": true, "trust-policy": true, "crds": true, "webhook-configurations": true, "guards": true,
		"profile-shape": false, "canary": false, "decommission": false, "serving-secret": false, "controller-hosts": false, "composites": false, "hostrun-status": false, "minter-secrets": false, "minter-approvals": false, "leases": false, "host-reports": false,
	}
	for _, dir := range []string{".", filepath.Join("static", "manifests")} {
		for file, g := range guards(t, dir) {
			want, known := opened[file]
			if !known {
				t.Errorf("%s: say here whether break-glass opens it", file)
			}
			has := slices.ContainsFunc(g.policy.Spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
				return c.Expression == "!('hostwarrant:break-glass' in request.userInfo.groups)"
			})
			if has != want {
				t.Errorf("%s: opened by break-glass: %v; want %v", file, has, want)
			}
		}
	}
}

// TestGuards in e2e shows each on a real API server, by its name.
func TestEveryGuardIsShownOnAnAPIServer(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(testkit.Root(t), "e2e", "guard_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, suffix := range map[string]string{".": "", filepath.Join("static", "manifests"): staticSuffix} {
		for file := range guards(t, dir) {
			// Of the static manifests the whole set is shown at once, by what each of them says.
			if name := "hostwarrant-" + file; !bytes.Contains(source, []byte(name+suffix)) && !bytes.Contains(source, []byte(`"`+file+`":`)) {
				t.Errorf("%s%s is not shown by TestGuards of e2e/guard_test.go", name, suffix)
			}
		}
	}
}

// The kustomization brings every guard but that of the webhook configurations, which is a component:
// with it an upgrade of those needs one more step.
func TestTheKustomizationBringsEveryGuard(t *testing.T) {
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file := range guards(t, ".") {
		brought := strings.Contains(string(text), "  - "+file+".yaml\n")
		if brought == (file == "webhook-configurations") {
			t.Errorf("%s: in the kustomization: %v", file, brought)
		}
	}
}
