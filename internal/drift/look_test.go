package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A guard that is taken away, used and put back between two looks is as shipped at both.
func TestAGuardThatWasPutBackIsToldOnce(t *testing.T) {
	const configuration, binding = "ValidatingWebhookConfiguration/hostwarrant", "ValidatingAdmissionPolicyBinding/hostwarrant-ledger"
	const back = ": " + touchedSince
	raise := func(o Object) { o.metadata()["generation"] = int64(2) }
	renew := func(o Object) { o.metadata()["uid"] = "v" }
	bundle := func(generation int64) func(Object) {
		return func(o Object) {
			o.metadata()["generation"] = generation
			for _, hook := range list(o, "webhooks") {
				at(hook, "clientConfig")["caBundle"] = "Qg=="
			}
		}
	}
	for name, tt := range map[string]struct {
		of     string
		change func(Object)
		want   []string
	}{
		"nothing":                                    {binding, func(Object) {}, nil},
		"a binding, deleted and made again":          {binding, renew, []string{binding + back}},
		"a binding, changed and back":                {binding, raise, []string{binding + back}},
		"a configuration, changed and back":          {configuration, raise, []string{configuration + back}},
		"a configuration, made again":                {configuration, renew, []string{configuration + back}},
		"labels":                                     {binding, func(o Object) { o.metadata()["labels"] = map[string]any{"a": "b"} }, nil},
		"a caBundle, which is a change, too":         {configuration, bundle(2), nil},
		"opened, used and closed by the next bundle": {configuration, bundle(3), []string{configuration + back}},
		"a bundle that came back an older object":    {configuration, bundle(0), []string{configuration + back}},
	} {
		t.Run(name, func(t *testing.T) {
			live, l := served(t), &Looks{}
			if got := differences(t, l, live); got != nil {
				t.Fatalf("at first: %q", got)
			}
			tt.change(live[tt.of])
			if diff := cmp.Diff(tt.want, differences(t, l, live)); diff != "" {
				t.Error(diff)
			}
			if got := differences(t, l, live); got != nil {
				t.Errorf("at the next look: %q", got)
			}
		})
	}
	t.Run("what was told as missing or as changed is not told again when it is back", func(t *testing.T) {
		live, l := served(t), &Looks{}
		differences(t, l, live)
		gone := live[binding]
		delete(live, binding)
		policy := live["ValidatingAdmissionPolicy/hostwarrant-ledger"]
		at(policy, "spec")["failurePolicy"] = "Ignore"
		if got := differences(t, l, live); len(got) != 2 {
			t.Fatalf("%q", got)
		}
		renew(gone)
		live[binding] = gone
		at(policy, "spec")["failurePolicy"] = "Fail"
		raise(policy)
		if got := differences(t, l, live); got != nil {
			t.Errorf("%q", got)
		}
	})
}
