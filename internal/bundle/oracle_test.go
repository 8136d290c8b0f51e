package bundle_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// oracle merges fragments by the words of docs/spec/bundle.md alone, as plain JSON and without a
// care for cost.
func oracle(t *testing.T, fragments []*fragment.Fragment) map[string]any {
	t.Helper()
	strength := func(class string) int {
		return slices.Index([]string{"base", "admission", "overlay", class}, class)
	}
	sorted := slices.Clone(fragments)
	sort.Slice(sorted, func(i, j int) bool {
		a, b := sorted[i], sorted[j]
		switch {
		case strength(a.Class) != strength(b.Class):
			return strength(a.Class) < strength(b.Class)
		case a.Signer != b.Signer:
			return a.Signer < b.Signer
		default:
			return a.Digest < b.Digest
		}
	})
	var specs []map[string]any
	for _, f := range sorted {
		specs = append(specs, plain(t, f.Profile))
	}
	whole := plain(t, &fragment.ProfileSpec{})
	for field, merge := range map[string]func(string, []map[string]any) any{
		"architectures": united, "capabilities": united, "syscalls": united,
		"execs": appended, "opens": appended, "endpoints": appended, "identifiedCallStacks": appended,
		"ingress": byIdentifier, "egress": byIdentifier, "rulePolicies": lastOfEachKey, "matchLabels": lastOfEachKey,
		"matchExpressions": everyOne, "imageID": lastSet, "imageTag": lastSet, "seccompProfile": lastSet,
	} {
		value := merge(field, specs)
		if _, optional := map[string]bool{"matchLabels": true, "matchExpressions": true}[field]; optional && value == nil {
			continue
		}
		whole[field] = value
	}
	return whole
}

func plain(t *testing.T, spec *fragment.ProfileSpec) map[string]any {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// as is the value of that type, empty where it is of another.
func as[T any](value any) T {
	typed, ok := value.(T)
	if !ok {
		var empty T
		return empty
	}
	return typed
}

// everyOne gives nil, as does each below, where there is nothing.
func everyOne(field string, specs []map[string]any) any {
	var all []any
	for _, s := range specs {
		list := as[[]any](s[field])
		all = append(all, list...)
	}
	if all == nil {
		return nil
	}
	return all
}

func united(field string, specs []map[string]any) any {
	list := as[[]any](everyOne(field, specs))
	var all []string
	for _, value := range list {
		if text := as[string](value); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	sort.Strings(all)
	var sorted []any
	for _, text := range all {
		sorted = append(sorted, text)
	}
	if sorted == nil {
		return nil
	}
	return sorted
}

func appended(field string, specs []map[string]any) any {
	list := as[[]any](everyOne(field, specs))
	var all []any
	for _, value := range list {
		if !slices.ContainsFunc(all, func(other any) bool { return cmp.Equal(value, other) }) {
			all = append(all, value)
		}
	}
	if all == nil {
		return nil
	}
	return all
}

func byIdentifier(field string, specs []map[string]any) any {
	list := as[[]any](everyOne(field, specs))
	var all []any
	identifier := func(of any) any { return as[map[string]any](of)["identifier"] }
	for _, value := range list {
		at := slices.IndexFunc(all, func(other any) bool { return identifier(other) == identifier(value) })
		if at < 0 {
			all = append(all, value)
			continue
		}
		all[at] = value
	}
	if all == nil {
		return nil
	}
	return all
}

func lastOfEachKey(field string, specs []map[string]any) any {
	all := map[string]any{}
	for _, s := range specs {
		for key, value := range as[map[string]any](s[field]) {
			all[key] = value
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func lastSet(field string, specs []map[string]any) any {
	empty := map[string]any{"imageID": "", "imageTag": "", "seccompProfile": map[string]any{"spec": map[string]any{"defaultAction": ""}}}[field]
	value := empty
	for _, s := range specs {
		if !cmp.Equal(s[field], empty) {
			value = s[field]
		}
	}
	return value
}

// TestTheOracleAgrees merges sets of chance by the code and by the page.
func TestTheOracleAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 3))
	for i := range 500 {
		fragments := contradicting(r, 1+r.IntN(12))
		if diff := cmp.Diff(oracle(t, fragments), plain(t, &assembled(t, fragments).Spec)); diff != "" {
			t.Fatalf("set %d: %s", i, diff)
		}
	}
	if diff := cmp.Diff(oracle(t, bundle37(t)), plain(t, &assembled(t, bundle37(t)).Spec)); diff != "" {
		t.Errorf("bundle37: %s", diff)
	}
}
