package drift

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A guard that is taken away, used and put back between two looks is as shipped at both.
func TestAGuardThatWasPutBackIsToldOnce(t *testing.T) {
	const configuration, binding = "ValidatingWebhookConfiguration/hostwarrant", "ValidatingAdmissionPolicyBinding/hostwarrant-ledger"
	const back = ": was changed, or deleted and made again, since it was looked at last; the audit log says by whom"
	raise := func(u *unstructured.Unstructured) { u.SetGeneration(u.GetGeneration() + 1) }
	for name, tt := range map[string]struct {
		of     string
		change func(*unstructured.Unstructured)
		want   []string
	}{
		"nothing":                            {binding, func(*unstructured.Unstructured) {}, nil},
		"a binding, deleted and made again":  {binding, func(u *unstructured.Unstructured) { u.SetUID(types.UID("v")) }, []string{binding + back}},
		"a binding, changed and back":        {binding, raise, []string{binding + back}},
		"a configuration, changed and back":  {configuration, raise, []string{configuration + back}},
		"a configuration, made again":        {configuration, func(u *unstructured.Unstructured) { u.SetUID(types.UID("v")) }, []string{configuration + back}},
		"labels":                             {binding, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, nil},
		"a caBundle, which is a change, too": {configuration, func(u *unstructured.Unstructured) { raise(u); bundle(u, "Qg==") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			live := served(t)
			c := checker(t, live)
			if got := differences(t, c); got != nil {
				t.Fatalf("at first: %q", got)
			}
			tt.change(live[tt.of])
			c.Reader = reader(live)
			if diff := cmp.Diff(tt.want, differences(t, c)); diff != "" {
				t.Error(diff)
			}
			if got := differences(t, c); got != nil {
				t.Errorf("at the next look: %q", got)
			}
		})
	}
	t.Run("what was told as missing or as changed is not told again when it is back", func(t *testing.T) {
		live := served(t)
		c := checker(t, live)
		differences(t, c)
		gone := live[binding]
		delete(live, binding)
		set(live["ValidatingAdmissionPolicy/hostwarrant-ledger"], "Ignore", "spec", "failurePolicy")
		c.Reader = reader(live)
		if got := differences(t, c); len(got) != 2 {
			t.Fatalf("%q", got)
		}
		gone.SetUID("v")
		live[binding] = gone
		set(live["ValidatingAdmissionPolicy/hostwarrant-ledger"], "Fail", "spec", "failurePolicy")
		raise(live["ValidatingAdmissionPolicy/hostwarrant-ledger"])
		c.Reader = reader(live)
		if got := differences(t, c); got != nil {
			t.Errorf("%q", got)
		}
	})
}

func bundle(u *unstructured.Unstructured, text string) {
	for _, hook := range list(u.Object, "webhooks") {
		set(&unstructured.Unstructured{Object: hook}, text, "clientConfig", "caBundle")
	}
}

func checker(t *testing.T, live map[string]*unstructured.Unstructured) *Checker {
	t.Helper()
	shipped, err := Shipped(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return &Checker{Reader: reader(live), Shipped: shipped}
}

func reader(live map[string]*unstructured.Unstructured) client.Reader {
	var objects []client.Object
	for _, o := range live {
		objects = append(objects, o.DeepCopy())
	}
	return fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(objects...).Build()
}

func differences(t *testing.T, c *Checker) []string {
	t.Helper()
	found, err := c.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range found {
		all = append(all, d.String())
	}
	slices.Sort(all)
	return all
}
