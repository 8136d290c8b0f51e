package v1beta1_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// The API server's limits on the cost of rules (k8s.io/apiserver/pkg/apis/cel: PerCallLimit, RuntimeCELCostBudget).
const (
	perCallLimit = 1000000
	costBudget   = 10000000
)

// crd is a definition in the form in which an API server applies it.
type crd struct {
	definition apiextensionsv1.CustomResourceDefinition
	structural *schema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator
}

// loadCRDs reads the definitions of a directory, by kind.
func loadCRDs(t *testing.T, dir string) map[string]*crd {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%d definitions in %s: %v", len(files), dir, err)
	}
	all := map[string]*crd{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := &crd{}
		if err := yaml.UnmarshalStrict(text, &c.definition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		c.compile(t)
		all[c.definition.Spec.Names.Kind] = c
	}
	return all
}

// compile turns the schema of the only version into what validates.
func (c *crd) compile(t *testing.T) {
	t.Helper()
	if len(c.definition.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions", c.definition.Name, len(c.definition.Spec.Versions))
	}
	var props apiextensions.JSONSchemaProps
	v1props := c.definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1props, &props, nil); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.structural, err = schema.NewStructural(&props); err != nil {
		t.Fatalf("%s: %v", c.definition.Name, err)
	}
	if c.validator, _, err = validation.NewSchemaValidator(&props); err != nil {
		t.Fatalf("%s: %v", c.definition.Name, err)
	}
	c.cel = cel.NewValidator(c.structural, true, perCallLimit)
}

// admit does to an object what the API server does, and returns it defaulted, and the faults.
func (c *crd) admit(o, old map[string]any) (map[string]any, []string) {
	o = runtime.DeepCopyJSON(o)
	pruning.Prune(o, c.structural, true)
	defaulting.Default(o, c.structural)
	errs := validation.ValidateCustomResource(nil, o, c.validator)
	if len(errs) == 0 {
		var was any
		if old != nil {
			was = old
		}
		errs, _ = c.cel.Validate(context.Background(), nil, c.structural, o, was, costBudget)
	}
	var faults []string
	for _, err := range errs {
		faults = append(faults, err.Error())
	}
	slices.Sort(faults)
	return o, faults
}

func ours(t *testing.T) map[string]*crd {
	t.Helper()
	return loadCRDs(t, filepath.Join(testkit.Root(t), "e2e", "testdata", "crds"))
}

func upstream(t *testing.T) map[string]*crd {
	t.Helper()
	return loadCRDs(t, testkit.CorpusDir(t, "upstream/crds"))
}

// withoutDescriptions drops the prose, which is ours, and what names the generator.
func withoutDescriptions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if _, isText := value.(string); isText && key == "description" {
				continue
			}
			out[key] = withoutDescriptions(value)
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, withoutDescriptions(value))
		}
		return out
	default:
		return v
	}
}

func TestDefinitionsAreUpstreamsButForTheProse(t *testing.T) {
	plain := func(c *crd) any {
		raw, err := json.Marshal(c.definition.Spec)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		return withoutDescriptions(v)
	}
	mine := ours(t)
	for kind, theirs := range upstream(t) {
		t.Run(kind, func(t *testing.T) {
			if diff := cmp.Diff(plain(theirs), plain(mine[kind])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPublishedExamplesAreAcceptedAndDefaultedAlike(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.CorpusDir(t, "upstream/examples"), "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	mine, theirs := ours(t), upstream(t)
	judged := 0
	for _, file := range files {
		for i, o := range documents(t, file) {
			kind := kindOf(o)
			if mine[kind] == nil {
				continue // RBAC of the provider
			}
			judged++
			t.Run(fmt.Sprintf("%s document %d", filepath.Base(file), i), func(t *testing.T) { sameVerdict(t, mine[kind], theirs[kind], o, nil) })
		}
	}
	if judged < 5 {
		t.Errorf("only %d examples were judged", judged)
	}
}

// sameVerdict wants both definitions to make the same of an object, and returns the faults.
func sameVerdict(t *testing.T, mine, theirs *crd, o, old map[string]any) {
	t.Helper()
	got, faults := mine.admit(o, old)
	want, theirFaults := theirs.admit(o, old)
	if diff := cmp.Diff(theirFaults, faults); diff != "" {
		t.Errorf("faults (-upstream +ours): %s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaulted object (-upstream +ours): %s", diff)
	}
}

func documents(t *testing.T, file string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Placeholders of the examples, filled in as their comments say.
	text = []byte(strings.NewReplacer("${ENDPOINT}", "https://10.0.0.5:6443", "${CA}", "QUJD").Replace(string(text)))
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []map[string]any
	for {
		var o map[string]any
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

// kindOf is the kind of an object, empty where there is none.
func kindOf(o map[string]any) string {
	if kind, ok := o["kind"].(string); ok {
		return kind
	}
	return ""
}

// edit returns a copy of the object with a field of its spec set; nil removes it.
func edit(o map[string]any, path string, value any) map[string]any {
	o = runtime.DeepCopyJSON(o)
	names := strings.Split("spec."+path, ".")
	at := o
	for _, name := range names[:len(names)-1] {
		inner, ok := at[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	last := names[len(names)-1]
	if value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	return o
}

func fromYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := utilyaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// variations are objects with one thing changed, and what the fault says; empty is accepted.
func variations(t *testing.T) map[string]struct {
	object, old map[string]any
	says        string
} {
	t.Helper()
	profile := fromYAML(t, `{apiVersion: karpenter.dklesev.github.io/v1beta1, kind: SSHJoinProfile, metadata: {name: p}, spec: {scripts: {install: a, join: b, leave: c}}}`)
	host := fromYAML(t, `{apiVersion: karpenter.dklesev.github.io/v1beta1, kind: SSHHost, metadata: {name: h}, spec: {address: 10.0.0.1, sshKeySecretRef: {name: k}, capacity: {cpu: "2", memory: 4Gi}}}`)
	class := fromYAML(t, `{apiVersion: karpenter.dklesev.github.io/v1beta1, kind: SSHNodeClass, metadata: {name: c}, spec: {joinProfileRef: {name: p}}}`)
	gate := func(key string, when map[string]any) map[string]any {
		return map[string]any{"taintKey": key, "removeWhen": when}
	}
	condition := map[string]any{"nodeCondition": map[string]any{"type": "Ready"}}
	pods := func(selector map[string]any) map[string]any {
		return map[string]any{"podsReady": map[string]any{"namespace": "n", "selector": selector}}
	}
	some := map[string]any{"matchLabels": map[string]any{"a": "b"}}
	long := strings.Repeat("x", 262144)
	many := slices.Repeat([]any{"k"}, 17)
	return map[string]struct {
		object, old map[string]any
		says        string
	}{
		"profile":                               {profile, nil, ""},
		"profile without join":                  {edit(profile, "scripts.join", nil), nil, "Required value"},
		"profile with the longest script":       {edit(profile, "scripts.join", long), nil, ""},
		"profile with a script that is longer":  {edit(profile, "scripts.join", long+"x"), nil, "Too long"},
		"profile with a signature too long":     {edit(profile, "signatures.join", long[:16385]), nil, "Too long"},
		"profile with a version of symbols":     {edit(profile, "version", "1/2"), nil, "should match"},
		"profile with timeouts":                 {edit(profile, "timeouts.join", "1h30m"), nil, ""},
		"profile with a timeout without a unit": {edit(profile, "timeouts.join", "90"), nil, "should match"},
		"host":                                  {host, nil, ""},
		"host Verified":                         {edit(edit(host, "execMode", "Verified"), "trustedSigners", []any{"k"}), nil, ""},
		"host Verified without signers":         {edit(host, "execMode", "Verified"), nil, "at least one trustedSigners"},
		"host of a mode nobody knows":           {edit(host, "execMode", "raw"), nil, "Unsupported value"},
		"host with too many signers":            {edit(host, "trustedSigners", many), nil, "Too many"},
		"host with as many signers as fit":      {edit(host, "trustedSigners", many[:16]), nil, ""},
		"host at port 0":                        {edit(host, "port", int64(0)), nil, "greater than or equal to 1"},
		"host at port 65536":                    {edit(host, "port", int64(65536)), nil, "less than or equal to 65535"},
		"host without memory":                   {edit(host, "capacity.memory", nil), nil, "at least cpu and memory"},
		"host without a Secret name":            {edit(host, "sshKeySecretRef.name", nil), nil, "must not be empty"},
		"host with an address for the node":     {edit(host, "nodeAddress", "fd00::1"), nil, ""},
		"host with a name for the node":         {edit(host, "nodeAddress", "cafe.beef"), nil, "must be an IP literal"},
		"host that keeps its address":           {edit(host, "port", int64(23)), host, ""},
		"host that changes its address":         {edit(host, "address", "10.0.0.2"), host, "immutable"},
		"host with a field nobody knows":        {edit(host, "surprise", "x"), nil, ""},
		"class":                                 {class, nil, ""},
		"class without a profile name":          {edit(class, "joinProfileRef.name", ""), nil, "must not be empty"},
		"class with vars":                       {edit(class, "vars.clusterDNS", "10.96.0.10"), nil, ""},
		"class with vars of other names":        {edit(class, "vars.cluster-dns", "10.96.0.10"), nil, "valid shell identifiers"},
		"class with a var too long":             {edit(class, "vars.a", long[:2049]), nil, "at most 2048"},
		"class with a plain-text endpoint":      {edit(class, "cluster.endpoint", "http://10.0.0.5"), nil, "should match"},
		"class with a price in words":           {edit(class, "pricePerCPUHour", "cheap"), nil, "should match"},
		"class that reserves pods":              {edit(class, "kubeReserved.pods", "1"), nil, "kubeReserved keys"},
		"class with gates":                      {edit(class, "startupTaintGates", []any{gate("a/b", condition), gate("c", pods(some))}), nil, ""},
		"class with a gate twice":               {edit(class, "startupTaintGates", []any{gate("a", condition), gate("a", condition)}), nil, "must be unique"},
		"class with a gate on nothing":          {edit(class, "startupTaintGates", []any{gate("a", map[string]any{})}), nil, "exactly one of"},
		"class with a gate on any pod":          {edit(class, "startupTaintGates", []any{gate("a", pods(map[string]any{}))}), nil, "selector must not be empty"},
	}
}

func TestDefinitionsAcceptAndRefuse(t *testing.T) {
	mine := ours(t)
	for name, c := range variations(t) {
		t.Run(name, func(t *testing.T) {
			_, faults := mine[kindOf(c.object)].admit(c.object, c.old)
			if c.says == "" && len(faults) > 0 {
				t.Errorf("refused: %s", faults)
			}
			if c.says != "" && !strings.Contains(strings.Join(faults, "\n"), c.says) {
				t.Errorf("faults %q; want one that says %q", faults, c.says)
			}
		})
	}
}

func TestUpstreamsDefinitionsAcceptAndRefuseAlike(t *testing.T) {
	mine, theirs := ours(t), upstream(t)
	for name, c := range variations(t) {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(c.object)
			sameVerdict(t, mine[kind], theirs[kind], c.object, c.old)
		})
	}
}
