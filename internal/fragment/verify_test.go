package fragment_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const prefix = "signature.kubescape.io/"

// base is a fragment of class base as a person writes it.
const base = `{
  "apiVersion": "spdx.softwarecomposition.kubescape.io/v1beta1", "kind": "ContainerProfile",
  "metadata": {"name": "redis-base", "namespace": "shop", "labels": {
    "signature.kubescape.io/bundle": "redis", "signature.kubescape.io/fragment-class": "base", "signature.kubescape.io/version": "7"}},
  "spec": {"execs": [{"path": "/usr/bin/redis-server", "args": ["redis-server", "*"]}], "imageID": "redis@sha256:1", "matchLabels": {"app": "redis"}}
}`

const rules = `{
  "apiVersion": "kubescape.io/v1", "kind": "Rules",
  "metadata": {"name": "base-rules", "labels": {"signature.kubescape.io/fragment-class": "base"}},
  "spec": {"rules": [{"enabled": true, "id": "R0001", "profileDataRequired": {"execs": "all"}, "state": {"n": 1}}]}
}`

func parse(t testing.TB, text []byte) *fragment.Object {
	t.Helper()
	o, err := fragment.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func content(t testing.TB, object string) []byte {
	t.Helper()
	c, err := fragment.Content(parse(t, []byte(object)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatIsSignedIsWhatIsGiven(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	embedded := parse(t, signer.Sign(t, base, true))
	f, err := fragment.Verify(embedded)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := fragment.Verify(parse(t, signer.Sign(t, base, false)))
	if diff := cmp.Diff(f, bare); diff != "" || err != nil {
		t.Errorf("without embedded content it is another: %v %s", err, diff)
	}
	got := fmt.Sprintln(f.APIVersion, f.Kind, f.Name, f.Bundle, f.Class, f.Version, f.Labels[fragment.LabelBundle], f.Profile.Set(), f.Diverges)
	want := "spdx.softwarecomposition.kubescape.io/v1beta1 ContainerProfile redis-base redis base 7 redis [execs imageID labelSelector] []\n"
	if got != want || f.Signer != signer.Fingerprint || f.Rules != nil || f.Other != nil {
		t.Errorf("got %s (signer %s)", got, f.Signer)
	}
	if name, err := fragment.Signer(embedded); err != nil || name != signer.Fingerprint {
		t.Errorf("signer %s, %v", name, err)
	}
}

// change returns a signed object after a change of its fields.
func change(t testing.TB, signed []byte, alter func(o map[string]any)) []byte {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(signed, &o); err != nil {
		t.Fatal(err)
	}
	alter(o)
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func in(o map[string]any, path ...string) map[string]any {
	for _, name := range path {
		o = as[map[string]any](o[name])
	}
	return o
}

func annotations(o map[string]any) map[string]any { return in(o, "metadata", "annotations") }
func labels(o map[string]any) map[string]any      { return in(o, "metadata", "labels") }

// The attacks on an object (A1 to A11 of the format's list): of each, what happens with and without embedded content.
func TestAttacksOnAnObject(t *testing.T) {
	signer, other := testkit.NewFragmentSigner(t), testkit.NewFragmentSigner(t)
	const ok = decision.Verified
	foreign := signer.Annotations(t, content(t, rules), false)
	set := func(name, value string) func(map[string]any) {
		return func(o map[string]any) { annotations(o)[prefix+name] = value }
	}
	for name, tt := range map[string]struct {
		alter          func(o map[string]any)
		embedded, bare decision.Reason
	}{
		"nothing":                       {func(map[string]any) {}, ok, ok},
		"signature taken away":          {func(o map[string]any) { delete(annotations(o), prefix+"signature") }, decision.Unsigned, decision.Unsigned},
		"signature emptied":             {set("signature", ""), decision.Unsigned, decision.Unsigned},
		"signature of another object":   {set("signature", foreign[prefix+"signature"]), decision.Tampered, decision.Tampered},
		"signature cut":                 {set("signature", "MEUC"), decision.Tampered, decision.Tampered},
		"signature not base64":          {set("signature", "-"), decision.SignatureMalformed, decision.SignatureMalformed},
		"certificate not base64":        {set("certificate", "-"), decision.SignatureMalformed, decision.SignatureMalformed},
		"timestamp not a number":        {set("timestamp", "today"), decision.SignatureMalformed, decision.SignatureMalformed},
		"timestamp taken away":          {func(o map[string]any) { delete(annotations(o), prefix+"timestamp") }, ok, ok},
		"another timestamp":             {set("timestamp", "1"), ok, ok},
		"certificate of another key":    {set("certificate", base64.StdEncoding.EncodeToString(other.Certificate)), decision.Tampered, decision.Tampered},
		"certificate taken away":        {func(o map[string]any) { delete(annotations(o), prefix+"certificate") }, decision.Tampered, decision.Tampered},
		"identity and issuer spoofed":   {func(o map[string]any) { set("identity", "root")(o); set("issuer", "https://accounts.example")(o) }, ok, ok},
		"carrier renamed":               {func(o map[string]any) { in(o, "metadata")["name"] = "other" }, decision.Tampered, decision.Tampered},
		"carrier in another namespace":  {func(o map[string]any) { in(o, "metadata")["namespace"] = "other" }, ok, ok},
		"stored spec edited":            {func(o map[string]any) { in(o, "spec")["imageID"] = "evil" }, ok, decision.Tampered},
		"stored class flipped":          {func(o map[string]any) { labels(o)[fragment.LabelClass] = "overlay" }, ok, decision.Tampered},
		"stored bundle flipped":         {func(o map[string]any) { labels(o)[fragment.LabelBundle] = "other" }, ok, decision.Tampered},
		"a label added by somebody":     {func(o map[string]any) { labels(o)["team"] = "a" }, ok, decision.Tampered},
		"an annotation added":           {set("note", "x"), ok, ok},
		"a status":                      {func(o map[string]any) { o["status"] = map[string]any{"x": 1} }, ok, ok},
		"another kind":                  {func(o map[string]any) { o["kind"] = "SeccompProfile" }, decision.KindMismatch, decision.Tampered},
		"another version of the kind":   {func(o map[string]any) { o["apiVersion"] = "spdx.softwarecomposition.kubescape.io/v1" }, decision.KindMismatch, decision.KindMismatch},
		"a kind that nobody signs":      {func(o map[string]any) { o["kind"] = "ApplicationProfile" }, decision.KindMismatch, decision.KindMismatch},
		"an unknown kind without group": {func(o map[string]any) { o["kind"], o["apiVersion"] = "X", "" }, decision.KindMismatch, decision.KindMismatch},
		"an unknown field in the spec":  {func(o map[string]any) { in(o, "spec")["hooks"] = "x" }, ok, decision.NotCanonical},
		"a field in other letters":      {func(o map[string]any) { in(o, "spec")["Opens"] = []any{} }, ok, decision.NotCanonical},
		"a value of another type":       {func(o map[string]any) { in(o, "spec")["execs"] = "all" }, ok, decision.Malformed},
		"fields that are empty":         {func(o map[string]any) { in(o, "spec")["opens"] = nil; in(o, "spec")["x"] = "" }, ok, ok},
		"no spec":                       {func(o map[string]any) { delete(o, "spec") }, ok, decision.Tampered},
		"no labels":                     {func(o map[string]any) { delete(in(o, "metadata"), "labels") }, ok, decision.Tampered},
	} {
		t.Run(name, func(t *testing.T) {
			for embed, want := range map[bool]decision.Reason{true: tt.embedded, false: tt.bare} {
				o := parse(t, change(t, signer.Sign(t, base, embed), tt.alter))
				f, err := fragment.Verify(o)
				testkit.WantReason(t, err, want)
				if err == nil && (f.Signer != signer.Fingerprint || f.Bundle != "redis" || f.Class != "base" || f.Version != 7) {
					t.Errorf("signer %s, bundle %s, class %s, version %d", f.Signer, f.Bundle, f.Class, f.Version)
				}
			}
		})
	}
}

func TestSignerIsReadBeforeAnyContent(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	broken := change(t, signer.Sign(t, base, true), func(o map[string]any) { annotations(o)[prefix+"content"] = "-" })
	if name, err := fragment.Signer(parse(t, broken)); err != nil || name != signer.Fingerprint {
		t.Errorf("%s, %v", name, err)
	}
	_, err := fragment.Signer(parse(t, []byte(base)))
	testkit.WantReason(t, err, decision.Unsigned)
}

func zip(t testing.TB, members ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, m := range members {
		w := gzip.NewWriter(&out)
		if _, err := w.Write(m); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// What is embedded is unpacked in one way, and to a bounded size.
func TestEmbeddedContentHasOneSpelling(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	good := content(t, base)
	encode := base64.StdEncoding.EncodeToString
	packed := zip(t, good)
	text := encode(packed)
	for name, tt := range map[string]struct {
		content string
		want    decision.Reason
	}{
		"as it is":                    {text, decision.Verified},
		"compressed less":             {encode(level(t, good)), decision.Verified},
		"empty":                       {"", decision.Tampered},
		"not base64":                  {"-" + text[1:], decision.Tampered},
		"a line end":                  {text[:64] + "\n" + text[64:], decision.NotCanonical},
		"a carriage return":           {text + "\r", decision.NotCanonical},
		"not gzip":                    {encode(good), decision.Tampered},
		"cut":                         {encode(packed[:len(packed)-9]), decision.Tampered},
		"a wrong checksum":            {encode(append(bytes.Clone(packed[:len(packed)-8]), 0, 0, 0, 0, 0, 0, 0, 0)), decision.Tampered},
		"a second member":             {encode(zip(t, good, nil)), decision.NotCanonical},
		"two halves as two members":   {encode(zip(t, good[:100], good[100:])), decision.NotCanonical},
		"something behind the member": {encode(append(bytes.Clone(packed), 0)), decision.NotCanonical},
		"edited":                      {encode(zip(t, bytes.Replace(good, []byte("redis-server"), []byte("redis-evil"), 1))), decision.Tampered},
		"another version":             {encode(zip(t, bytes.Replace(good, []byte(`"7"`), []byte(`"8"`), 1))), decision.Tampered},
		"not JSON":                    {encode(zip(t, []byte("{"))), decision.Tampered},
		"a number without value":      {encode(zip(t, []byte(`{"a":1e999}`))), decision.Tampered},
		"8 MiB":                       {encode(zip(t, bytes.Repeat([]byte(" "), fragment.MaxContent))), decision.Tampered},
		"a byte more":                 {encode(zip(t, bytes.Repeat([]byte(" "), fragment.MaxContent+1))), decision.TooLarge},
		"a bomb":                      {encode(zip(t, bytes.Repeat([]byte("["), 1<<28))), decision.TooLarge},
		"a million values":            {encode(zip(t, []byte("["+strings.Repeat("0,", 1<<20)+"0]"))), decision.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			all := signer.Annotations(t, good, true)
			all[fragment.AnnotationContent] = tt.content
			_, err := fragment.Verify(parse(t, testkit.Annotate(t, []byte(base), all)))
			testkit.WantReason(t, err, tt.want)
		})
	}
}

func level(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Content that its signer did sign, and that two readers take differently.
func TestSignedContentMustBeCanonical(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	profile, rule := string(content(t, base)), string(content(t, rules))
	if profile == rule || !strings.Contains(rule, `"opens":null,"execs":"all"`) {
		t.Fatal(rule)
	}
	withHeaders := strings.Replace(profile, `"endpoints":null`, `"endpoints":[{"internal":false,"headers":H}]`, 1)
	for name, tt := range map[string]struct {
		content, old, new string
		want              decision.Reason
		says              string
	}{
		"as it is":                          {profile, "", "", decision.Verified, ""},
		"rules as they are":                 {rule, "", "", decision.Verified, ""},
		"a field that newer types may have": {profile, `"spec":{`, `"spec":{"hooks":["x"],`, decision.NotCanonical, `spec.hooks: NotCanonical: unknown field "spec.hooks"`},
		"such a field deeper":               {profile, `"path":"/usr`, `"cwd":"/","path":"/usr`, decision.NotCanonical, `spec.execs[0].cwd: NotCanonical: unknown field`},
		"such a field beside the spec":      {profile, `"kind":`, `"immutable":true,"kind":`, decision.NotCanonical, `unknown field "immutable"`},
		"a namespace":                       {profile, `"name":"redis-base"`, `"name":"redis-base","namespace":"shop"`, decision.NotCanonical, `unknown field "metadata.namespace"`},
		"the field no hash covers":          {profile, `{"apiVersion"`, `{"status.conditions":{"x":1},"apiVersion"`, decision.NotCanonical, `unknown field "status.conditions"`},
		"a known optional field":            {profile, `"args":["redis-server","*"]`, `"args":["redis-server","*"],"parentPath":"/sbin/init"`, decision.Verified, ""},
		"a field twice":                     {profile, `"spec":{`, `"spec":{"matchLabels":{"evil":"1"}},"spec":{`, decision.NotCanonical, "otherwise spelled"},
		"a label twice":                     {profile, `"labels":{`, `"labels":{"signature.kubescape.io/version":"9",`, decision.NotCanonical, "otherwise spelled"},
		"a field in other letters":          {profile, `"opens"`, `"Opens"`, decision.NotCanonical, `unknown field "spec.Opens"`},
		"fields in another order":           {profile, `"opens":null,"syscalls":null`, `"syscalls":null,"opens":null`, decision.NotCanonical, "otherwise spelled"},
		"white space":                       {profile, `"opens":null`, `"opens": null`, decision.NotCanonical, "otherwise spelled"},
		"another spelling of a string":      {profile, `"redis-base"`, `"\u0072edis-base"`, decision.NotCanonical, "otherwise spelled"},
		"a line end behind it":              {profile + "\n", "", "", decision.NotCanonical, "otherwise spelled"},
		"a field left out":                  {profile, `"opens":null,`, ``, decision.NotCanonical, "otherwise spelled"},
		"labels that are empty":             {rule, `{"signature.kubescape.io/fragment-class":"base"}`, `{}`, decision.NotCanonical, "otherwise spelled"},
		"rule policies as null":             {profile, `"rulePolicies":{}`, `"rulePolicies":null`, decision.NotCanonical, "otherwise spelled"},
		"null as text":                      {profile, `"opens":null`, `"opens":"null"`, decision.Tampered, `"opens" has a value of another type`},
		"an object as a list":               {profile, `"rulePolicies":{}`, `"rulePolicies":[]`, decision.Tampered, `"rulePolicies" has a value of another type`},
		"labels as a list":                  {rule, `{"signature.kubescape.io/fragment-class":"base"}`, `[]`, decision.Tampered, `"metadata.labels" has a value of another type`},
		"a spec that is none":               {profile, `"spec":{`, `"spec":null,"x":{`, decision.NotCanonical, "unknown field"},
		"no spec":                           {`{"apiVersion":"kubescape.io/v1","kind":"Rules","metadata":{"labels":null,"name":"base-rules"}}`, "", "", decision.NotCanonical, "otherwise spelled"},
		"a number with a point":             {rule, `"severity":0`, `"severity":0.0`, decision.Tampered, "severity"},
		"a need as text":                    {rule, `"execs":"all"`, `"execs":"null"`, decision.Tampered, "not of the types"},
		"a need as an empty list":           {rule, `"execs":"all"`, `"execs":[]`, decision.Tampered, "not of the types"},
		"a need as a list":                  {rule, `"execs":"all"`, `"execs":[{"prefix":"/usr/"}]`, decision.Verified, ""},
		"a need as a list of texts":         {rule, `"execs":"all"`, `"execs":["all"]`, decision.Tampered, ""},
		"state beyond 2^53":                 {rule, `"n":1`, `"n":9007199254740993`, decision.NotCanonical, "otherwise spelled"},
		"state below it":                    {rule, `"n":1`, `"n":9007199254740992`, decision.Verified, ""},
		"headers":                           {withHeaders, "H", `{"b":[1,"x",null,true],"a":{}}`, decision.Verified, ""},
		"headers with a field twice":        {withHeaders, "H", `{"a":1,"b":[{"c":1,"c":2}]}`, decision.NotCanonical, `the field "c" stands there twice`},
		"headers in another spelling":       {withHeaders, "H", `{"\u0061":1}`, decision.NotCanonical, "otherwise spelled"},
		"headers with a number otherwise":   {withHeaders, "H", `{"a":1.0}`, decision.NotCanonical, "otherwise spelled"},
		"headers beyond 2^53":               {withHeaders, "H", `9007199254740993`, decision.NotCanonical, "otherwise spelled"},
		"headers with white space":          {withHeaders, "H", `[1, 2]`, decision.NotCanonical, "otherwise spelled"},
		"version two":                       {profile, `"7"`, `"two"`, decision.Malformed, "whole number"},
		"version 07":                        {profile, `"7"`, `"07"`, decision.Malformed, "whole number"},
		"version +7":                        {profile, `"7"`, `"+7"`, decision.Malformed, "whole number"},
		"version -7":                        {profile, `"7"`, `"-7"`, decision.Malformed, "whole number"},
		"no text as version":                {profile, `"7"`, `""`, decision.Malformed, "whole number"},
		"version 0":                         {profile, `"7"`, `"0"`, decision.Verified, ""},
		"the highest version":               {profile, `"7"`, `"9223372036854775807"`, decision.Verified, ""},
		"one more":                          {profile, `"7"`, `"9223372036854775808"`, decision.Malformed, "whole number"},
		"a kind of the same group":          {profile, `"ContainerProfile"`, `"SeccompProfile"`, decision.KindMismatch, "SeccompProfile"},
		"another apiVersion":                {profile, `v1beta1`, `v1beta2`, decision.KindMismatch, "v1beta2"},
		"another name":                      {profile, `"redis-base"`, `"redis-other"`, decision.Tampered, "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			signed := strings.Replace(tt.content, tt.old, tt.new, 1)
			carrier := base
			if strings.Contains(tt.content, `"Rules"`) {
				carrier = rules
			}
			_, err := fragment.Verify(parse(t, testkit.Annotate(t, []byte(carrier), signer.Annotations(t, []byte(signed), true))))
			testkit.WantReason(t, err, tt.want)
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
}

// Content of a profile on a carrier of rules would be admitted as rules, none of them.
func TestContentOfOneKindOnACarrierOfAnother(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	all := signer.Annotations(t, content(t, base), true)
	carrier := strings.Replace(rules, "base-rules", "redis-base", 1)
	_, err := fragment.Verify(parse(t, testkit.Annotate(t, []byte(carrier), all)))
	testkit.WantReason(t, err, decision.KindMismatch)
}

func TestParseAndContentRefuse(t *testing.T) {
	for name, tt := range map[string]struct {
		text           string
		parse, content decision.Reason
	}{
		"a profile":              {base, decision.Verified, decision.Verified},
		"no JSON":                {"{", decision.Malformed, ""},
		"a field twice":          {`{"kind":"a","kind":"b"}`, decision.Malformed, ""},
		"half a pair":            {`{"spec":{"imageID":"\ud800"}}`, decision.Malformed, ""},
		"8 MiB":                  {base + strings.Repeat(" ", fragment.MaxContent-len(base)), decision.Verified, decision.Verified},
		"a byte more":            {base + strings.Repeat(" ", fragment.MaxContent-len(base)+1), decision.TooLarge, ""},
		"a kind of others":       {`{"apiVersion":"v1","kind":"Secret"}`, decision.Verified, decision.KindMismatch},
		"nothing":                {`{}`, decision.Verified, decision.KindMismatch},
		"a field of other types": {strings.Replace(base, `"imageID": "redis@sha256:1"`, `"imageID": 7`, 1), decision.Verified, decision.Malformed},
		"an unknown field":       {strings.Replace(base, `"imageID"`, `"imageIDs"`, 1), decision.Verified, decision.NotCanonical},
		"a version that is none": {strings.Replace(base, `"7"`, `"seven"`, 1), decision.Verified, decision.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := fragment.Parse([]byte(tt.text))
			testkit.WantReason(t, err, tt.parse)
			if err != nil {
				return
			}
			_, err = fragment.Content(o)
			testkit.WantReason(t, err, tt.content)
		})
	}
}

// The worked example of the format's description, byte for byte.
func TestContentIsThatOfTheReference(t *testing.T) {
	const want = `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"labels":{"signature.kubescape.io/bundle":"bundle37",` +
		`"signature.kubescape.io/fragment-class":"overlay"},"name":"bundle37-overlay"},"spec":{"architectures":null,"capabilities":null,"execs":[{"path":"/usr/bin/id"}],` +
		`"opens":null,"syscalls":null,"seccompProfile":{"spec":{"defaultAction":""}},"endpoints":null,"imageID":"","imageTag":"","rulePolicies":{},` +
		`"identifiedCallStacks":null,"ingress":null,"egress":null}}`
	got := content(t, `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"bundle37-overlay","labels":{`+
		`"signature.kubescape.io/fragment-class":"overlay","signature.kubescape.io/bundle":"bundle37"}},"spec":{"execs":[{"path":"/usr/bin/id","args":[]}]}}`)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	digest, err := fragment.Digest(got)
	if err != nil || digest != "1513b0723b51e5f1b49aea750d72bbfbff9d1039a6dd3c28b4cad901446acb8a" {
		t.Errorf("%s, %v", digest, err)
	}
}

// The experimental kinds: what is signed is given back as it was written.
func TestExperimentalKinds(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	for kind, api := range map[string]string{fragment.KindRuleBinding: "kubescape.io/v1", fragment.KindSeccompProfile: "spdx.softwarecomposition.kubescape.io/v1beta1"} {
		object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"n"},"spec":{"z":[1,{"a":null}],"a":"x"}}`, api, kind)
		for _, embed := range []bool{true, false} {
			f, err := fragment.Verify(parse(t, signer.Sign(t, object, embed)))
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind != kind || !json.Valid(f.Other) || len(f.Other) != len(`{"z":[1,{"a":null}],"a":"x"}`) || f.Profile != nil || f.Rules != nil {
				t.Errorf("%s %s", f.Kind, f.Other)
			}
			_, err = fragment.Verify(parse(t, change(t, signer.Sign(t, object, embed), func(o map[string]any) { in(o, "spec")["a"] = "y" })))
			testkit.WantReason(t, err, map[bool]decision.Reason{true: decision.Verified, false: decision.Tampered}[embed])
		}
	}
}

// Where JSON has no fixed shape, no type tells apart what hashes alike: Bytes does.
func TestFreeValuesThatHashAlikeDifferInBytes(t *testing.T) {
	signer := testkit.NewFragmentSigner(t)
	profile := strings.Replace(string(content(t, base)), `"endpoints":null`, `"endpoints":[{"internal":false,"headers":H}]`, 1)
	verified := func(headers string) *fragment.Fragment {
		signed := signer.Annotations(t, []byte(strings.Replace(profile, "H", headers, 1)), true)
		f, err := fragment.Verify(parse(t, testkit.Annotate(t, []byte(base), signed)))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for a, b := range map[string]string{`null`: `"null"`, `[]`: `{}`, `{"a":1,"b":2}`: `{"b":2,"a":1}`} {
		one, other := verified(a), verified(b)
		if one.Digest != other.Digest || one.Bytes == other.Bytes {
			t.Errorf("%s and %s: digests %s and %s, bytes %s and %s", a, b, one.Digest, other.Digest, one.Bytes, other.Bytes)
		}
	}
}
