package fragment_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/fragment/specpath"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// settings are, of each field of a profile, a value that sets it; the fields of one path are confined together.
func settings() map[string]string {
	return map[string]string{
		"architectures": `["amd64"]`, "capabilities": `["CAP_CHOWN"]`, "execs": `[{}]`, "opens": `[{"path":"/a"}]`, "syscalls": `["read"]`,
		"seccompProfile": `{"spec":{"architectures":["SCMP_ARCH_X86"]}}`, "endpoints": `[{"internal":true}]`, "imageID": `"a"`, "imageTag": `"a"`,
		"rulePolicies": `{"R0001":{}}`, "identifiedCallStacks": `[{"callID":"a"}]`, "matchLabels": `{"a":"b"}`,
		"matchExpressions": `[{"key":"a","operator":"Exists"}]`, "ingress": `[{"identifier":"a"}]`, "egress": `[{"identifier":"a"}]`,
	}
}

func profileOf(t *testing.T, spec string) *fragment.ProfileSpec {
	t.Helper()
	var p fragment.ProfileSpec
	if err := json.Unmarshal([]byte(spec), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// Each field of the spec belongs to one path, so that no part of a profile is confined by nothing.
func TestEachFieldOfAProfileHasItsPath(t *testing.T) {
	var keys []string
	for _, path := range specpath.All() {
		keys = append(keys, path.Keys...)
	}
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[fragment.ProfileSpec]()) {
		if !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, name)
		}
	}
	if diff := cmp.Diff(fields, keys); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(fields)), slices.Sorted(func(yield func(string) bool) {
		for name := range settings() {
			if !yield(name) {
				return
			}
		}
	})); diff != "" {
		t.Error(diff)
	}
	if n := len(fragment.SpecPaths()); n != 14 {
		t.Errorf("%d paths", n)
	}
}

func TestSet(t *testing.T) {
	if got := profileOf(t, `{}`).Set(); len(got) > 0 {
		t.Errorf("the empty spec sets %v", got)
	}
	empty := `{"architectures":[],"execs":[],"opens":null,"seccompProfile":{"spec":{"defaultAction":""}},"imageID":"","rulePolicies":{},"matchLabels":{},"matchExpressions":[]}`
	if got := profileOf(t, empty).Set(); len(got) > 0 {
		t.Errorf("an empty spec sets %v", got)
	}
	for field, value := range settings() {
		got := profileOf(t, fmt.Sprintf(`{%q:%s}`, field, value)).Set()
		if diff := cmp.Diff([]string{specpath.Of(field)}, got); diff != "" {
			t.Error(field, diff)
		}
	}
	for _, seccomp := range []string{`{"name":"a"}`, `{"path":"a"}`, `{"spec":{"defaultAction":"SCMP_ACT_LOG"}}`, `{"spec":{"flags":["a"]}}`, `{"spec":{"disabled":true}}`, `{"spec":{"syscalls":[{}]}}`} {
		if got := profileOf(t, `{"seccompProfile":`+seccomp+`}`).Set(); len(got) != 1 || got[0] != "seccompProfile" {
			t.Errorf("%s sets %v", seccomp, got)
		}
	}
	all := []string{}
	for field, value := range settings() {
		all = append(all, fmt.Sprintf(`%q:%s`, field, value))
	}
	if diff := cmp.Diff(fragment.SpecPaths(), profileOf(t, "{"+strings.Join(all, ",")+"}").Set()); diff != "" {
		t.Error(diff)
	}
	if got := specpath.Of("hooks"); got != "" {
		t.Errorf("hooks belong to %q", got)
	}
}

// What is confined is what is reported: each field that sets a path diverges by that path.
func TestDivergence(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	verified := func(t *testing.T, object, stored string) []string {
		t.Helper()
		f, err := fragment.Verify(parse(t, change(t, signer.Sign(t, object, true), func(o map[string]any) { o["spec"] = json.RawMessage(stored) })))
		testkit.WantReason(t, err, decision.Verified)
		return f.Diverges
	}
	const head = `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"n"},"spec":`
	for field, value := range settings() {
		spec := fmt.Sprintf(`{%q:%s}`, field, value)
		for _, tt := range []struct{ signed, stored string }{{spec, `{}`}, {`{}`, spec}} {
			if diff := cmp.Diff([]string{specpath.Of(field)}, verified(t, head+tt.signed+"}", tt.stored)); diff != "" {
				t.Error(tt, diff)
			}
		}
		if got := verified(t, head+spec+"}", spec); len(got) > 0 {
			t.Errorf("%s differs from itself in %v", spec, got)
		}
	}
	for name, tt := range map[string]struct {
		signed, stored string
		want           []string
	}{
		"nothing stored":        {`{"execs":[{"path":"/a"}],"imageID":"x"}`, `{}`, []string{"execs", "imageID"}},
		"empty at any depth":    {`{"execs":[{"path":"/a"}],"ingress":[{"identifier":"a","podSelector":{}}]}`, `{"execs":[{"path":"/a","args":[]}],"opens":[],"seccompProfile":{"name":"","spec":{"syscalls":[]}},"ingress":[{"identifier":"a","ports":null}]}`, nil},
		"order of a list":       {`{"execs":[{"path":"/a"},{"path":"/b"}]}`, `{"execs":[{"path":"/b"},{"path":"/a"}]}`, []string{"execs"}},
		"order of arguments":    {`{"execs":[{"args":["a","b"]}]}`, `{"execs":[{"args":["b","a"]}]}`, []string{"execs"}},
		"order of a set":        {`{"syscalls":["b","a"],"rulePolicies":{"R1":{"processAllowed":["b","a"]}}}`, `{"syscalls":["a","b","b"],"rulePolicies":{"R1":{"processAllowed":["a","b"]}}}`, nil},
		"an element less":       {`{"syscalls":["b","a"]}`, `{"syscalls":["a"]}`, []string{"syscalls"}},
		"a set of no texts":     {`{"syscalls":["1"]}`, `{"syscalls":[1]}`, []string{"syscalls"}},
		"an element more":       {`{"execs":[{"path":"/a"}]}`, `{"execs":[{"path":"/a"},{}]}`, []string{"execs"}},
		"both of one path":      {`{"matchLabels":{"a":"b"}}`, `{"matchExpressions":[{"key":"a"}]}`, []string{"labelSelector"}},
		"several, in order":     {`{}`, `{"egress":[1],"architectures":["x"],"opens":"x"}`, []string{"architectures", "opens", "egress"}},
		"a field of no kind":    {`{}`, `{"hooks":["x"],"execs":[{"path":"/a"}]}`, []string{"execs", "unknown"}},
		"an empty such field":   {`{}`, `{"hooks":[]}`, nil},
		"such a field deeper":   {`{"execs":[{"path":"/a"}]}`, `{"execs":[{"path":"/a","cwd":"/"}]}`, []string{"execs"}},
		"a large number":        {`{"endpoints":[{"headers":9007199254740992}]}`, `{"endpoints":[{"headers":9007199254740993}]}`, []string{"endpoints"}},
		"zero and absent":       {`{"seccompProfile":{"spec":{"syscalls":[{"errnoRet":0}]}}}`, `{"seccompProfile":{"spec":{"syscalls":[{}]}}}`, nil},
		"a label that is empty": {`{}`, `{"matchLabels":{"a":""}}`, []string{"labelSelector"}},
		"no spec":               {`{"imageTag":"a"}`, `null`, []string{"imageTag"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, verified(t, head+tt.signed+"}", tt.stored)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for stored, want := range map[string][]string{`{"rules":[]}`: {"rules"}, `{"rules":[{"id":"R0001","enabled":true,"profileDataRequired":{"execs":"all"},"state":{"n":1}}]}`: nil, `{"rules":null,"x":1}`: {"rules", "unknown"}} {
		if diff := cmp.Diff(want, verified(t, rules, stored)); diff != "" {
			t.Error(stored, diff)
		}
	}
	binding := `{"apiVersion":"kubescape.io/v1","kind":"RuntimeRuleAlertBinding","metadata":{"name":"n"},"spec":{"a":1,"b":{"c":[]}}}`
	if diff := cmp.Diff([]string{"a", "z"}, verified(t, binding, `{"a":2,"z":"x"}`)); diff != "" {
		t.Error(diff)
	}
}
