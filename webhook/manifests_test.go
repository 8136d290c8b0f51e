package main

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
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/webhook/cabundle"
)

// shipped reads every object of a file of manifests/base, strictly.
func shipped(t *testing.T, file string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "manifests", "base", file))
	if err != nil {
		t.Fatal(err)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var all []runtime.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		o, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, o)
	}
}

// hook is what both kinds of webhook have in common.
type hook struct {
	name, path, service string
	failure             admissionregistrationv1.FailurePolicyType
	rules               []admissionregistrationv1.RuleWithOperations
	selectors           bool
	timeout             int32
	sideEffects         admissionregistrationv1.SideEffectClass
	match               admissionregistrationv1.MatchPolicyType
	bundle              []byte
}

func shippedHooks(t *testing.T) (hooks []hook) {
	t.Helper()
	for _, o := range shipped(t, "webhook-configurations.yaml") {
		switch c := o.(type) {
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			if c.Name != cabundle.ConfigurationName {
				t.Errorf("a configuration named %s", c.Name)
			}
			for _, w := range c.Webhooks {
				hooks = append(hooks, hook{
					w.Name, *w.ClientConfig.Service.Path, w.ClientConfig.Service.Name, *w.FailurePolicy, w.Rules,
					w.NamespaceSelector != nil || w.ObjectSelector != nil, *w.TimeoutSeconds, *w.SideEffects, *w.MatchPolicy, w.ClientConfig.CABundle,
				})
			}
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			if c.Name != cabundle.ConfigurationName {
				t.Errorf("a configuration named %s", c.Name)
			}
			for _, w := range c.Webhooks {
				hooks = append(hooks, hook{
					w.Name, *w.ClientConfig.Service.Path, w.ClientConfig.Service.Name, *w.FailurePolicy, w.Rules,
					w.NamespaceSelector != nil || w.ObjectSelector != nil, *w.TimeoutSeconds, *w.SideEffects, *w.MatchPolicy, w.ClientConfig.CABundle,
				})
			}
		default:
			t.Errorf("a %T among the webhook configurations", o)
		}
	}
	return hooks
}

func TestShippedWebhookConfigurationsLeaveNoWayAround(t *testing.T) {
	hooks := shippedHooks(t)
	if len(hooks) != 4 {
		t.Fatalf("%d webhooks; want three validating and one mutating", len(hooks))
	}
	certificate := serviceNames("hostwarrant-system")
	var guarded []string
	for _, h := range hooks {
		failure := admissionregistrationv1.Fail
		if h.path == "/mutate" {
			failure = admissionregistrationv1.Ignore
		}
		if h.failure != failure {
			t.Errorf("%s: failurePolicy %s; want %s", h.name, h.failure, failure)
		}
		if h.selectors || h.sideEffects != admissionregistrationv1.SideEffectClassNone || h.match != admissionregistrationv1.Equivalent || h.bundle != nil {
			t.Errorf("%s: %+v", h.name, h)
		}
		if h.timeout > 5 || h.path == "/validate" && time.Duration(h.timeout)*time.Second <= reviewLimit {
			t.Errorf("%s: timeoutSeconds %d", h.name, h.timeout)
		}
		if !slices.Contains(certificate, h.service+".hostwarrant-system.svc") {
			t.Errorf("%s: the serving certificate is not for the Service %s", h.name, h.service)
		}
		for _, r := range h.rules {
			if !slices.Equal(r.APIVersions, []string{"*"}) || slices.Contains(r.APIGroups, "*") || strings.Contains(strings.Join(r.Resources, ""), "*") {
				t.Errorf("%s: rule %+v", h.name, r)
			}
			for _, resource := range r.Resources {
				for _, operation := range r.Operations {
					guarded = append(guarded, h.path+" "+string(operation)+" "+resource)
				}
			}
		}
	}
	slices.Sort(guarded)
	want := []string{
		"/mutate CREATE sshhosts", "/mutate UPDATE sshhosts",
		"/validate CREATE containerprofiles", "/validate CREATE hostruns", "/validate CREATE hoststatements", "/validate CREATE rules", "/validate CREATE runtimerulealertbindings",
		"/validate CREATE seccompprofiles", "/validate CREATE sshhosts", "/validate CREATE sshjoinprofiles", "/validate CREATE sshnodeclasses", "/validate CREATE trustpolicies",
		"/validate DELETE hoststatements", "/validate DELETE sshjoinprofiles", "/validate DELETE trustpolicies",
		"/validate UPDATE containerprofiles", "/validate UPDATE hostruns", "/validate UPDATE hoststatements", "/validate UPDATE rules", "/validate UPDATE runtimerulealertbindings",
		"/validate UPDATE seccompprofiles", "/validate UPDATE sshhosts", "/validate UPDATE sshjoinprofiles", "/validate UPDATE sshnodeclasses", "/validate UPDATE trustpolicies",
	}
	if !slices.Equal(guarded, want) {
		t.Errorf("judged are %q; want %q", guarded, want)
	}
}

// A filter may leave out updates of nothing that is guarded, and no creation or deletion.
func TestShippedConditionsFilterUpdatesAlone(t *testing.T) {
	seen := 0
	for _, o := range shipped(t, "webhook-configurations.yaml") {
		c, ok := o.(*admissionregistrationv1.ValidatingWebhookConfiguration)
		if !ok {
			continue
		}
		for _, w := range c.Webhooks {
			for _, m := range w.MatchConditions {
				seen++
				if !strings.HasPrefix(strings.TrimSpace(m.Expression), "request.operation != 'UPDATE' ||") || strings.Contains(m.Expression, "&& request") {
					t.Errorf("%s: %s filters more than updates: %s", w.Name, m.Name, m.Expression)
				}
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d conditions; want two", seen)
	}
}

func TestShippedRightsHoldNoWildcardAndNoWayToMore(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Root(t), "manifests", "base", "rbac-*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		for _, o := range shipped(t, filepath.Base(file)) {
			var rules []rbacv1.PolicyRule
			switch r := o.(type) {
			case *rbacv1.ClusterRole:
				rules = r.Rules
				if len(r.Labels) > 0 || r.AggregationRule != nil {
					t.Errorf("%s: ClusterRole %s could be aggregated", file, r.Name)
				}
			case *rbacv1.Role:
				rules = r.Rules
			}
			for _, r := range rules {
				checkRule(t, filepath.Base(file), r)
			}
		}
	}
}

func checkRule(t *testing.T, file string, r rbacv1.PolicyRule) {
	t.Helper()
	all := slices.Concat(r.Verbs, r.Resources, r.APIGroups)
	for _, no := range []string{"*", "escalate", "bind", "impersonate", "deletecollection"} {
		if slices.Contains(all, no) {
			t.Errorf("%s: %q in %+v", file, no, r)
		}
	}
	if file == "rbac-canary.yaml" && slices.Equal(r.Verbs, []string{"create"}) {
		return // policies/canary.yaml holds it to dry runs
	}
	if file == "rbac-controller.yaml" && slices.Equal(r.Verbs, []string{"delete"}) {
		return // policies/canary.yaml holds it to canaries that were stored
	}
	if file == "rbac-controller.yaml" && slices.Equal(r.Resources, []string{"sshhosts"}) && slices.Equal(r.Verbs, []string{"get", "list", "watch", "patch"}) {
		return // refreshed trustedSigners; admission judges that write
	}
	// No request uses the verb decommission: policies/decommission.yaml asks for it.
	writes := slices.ContainsFunc(r.Verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch", "decommission"}, v) })
	named := len(r.ResourceNames) > 0
	for _, resource := range r.Resources {
		switch resource {
		case "secrets", "trustpolicies/status", "validatingwebhookconfigurations", "mutatingwebhookconfigurations":
			if !named {
				t.Errorf("%s: %s without resourceNames: %+v", file, resource, r)
			}
		case "trustpolicies":
			if writes || !named && !slices.Equal(r.Verbs, []string{"get"}) {
				t.Errorf("%s: %s: %+v", file, resource, r)
			}
		case "sshhosts", "sshjoinprofiles", "sshnodeclasses":
			if writes && !mayWrite(file, resource, r.Verbs) {
				t.Errorf("%s: writes %s: %+v", file, resource, r)
			}
		}
	}
}

// The heap is collected before the container reaches its limit, with room for what is no heap.
func TestTheCollectorKnowsTheMemoryLimit(t *testing.T) {
	seen := 0
	for _, o := range shipped(t, "deployment-webhook.yaml") {
		d, ok := o.(*appsv1.Deployment)
		if !ok {
			t.Fatalf("a %T", o)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, v := range c.Env {
				if v.Name != "GOMEMLIMIT" {
					continue
				}
				seen++
				soft, err := resource.ParseQuantity(strings.TrimSuffix(v.Value, "B"))
				if hard := c.Resources.Limits.Memory(); err != nil || soft.Value() < hard.Value()/2 || soft.Value() > hard.Value()*4/5 {
					t.Errorf("GOMEMLIMIT %s (%v) of %s", v.Value, err, hard)
				}
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d memory limits for the collector; want one", seen)
	}
}

// mayWrite says what the controller writes of the provider's kinds: it deletes canaries that were
// stored by mistake (policies/canary.yaml holds it to their names), and renews trustedSigners.
func mayWrite(file, resource string, verbs []string) bool {
	canaries := slices.Equal(verbs, []string{"delete"})
	renewal := resource == "sshhosts" && slices.Equal(verbs, []string{"get", "list", "watch", "patch"})
	return file == "rbac-controller.yaml" && (canaries || renewal)
}
