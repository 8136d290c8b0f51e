package object_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

const classJSON = `{"apiVersion":"karpenter.dklesev.github.io/v1beta1","kind":"SSHNodeClass","metadata":{"name":"bm"},
 "spec":{"joinProfileRef":{"name":"tls"},"joinSecretRef":{"name":"s"},"vars":{"dns":"10.0.0.10"},"cluster":{"endpoint":"https://a:6443","caBundle":"LS0tCg=="},
 "hostSelector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}}}`

func TestParseNodeClass(t *testing.T) {
	c, err := object.ParseNodeClass([]byte(classJSON))
	if err != nil {
		t.Fatal(err)
	}
	want := &object.NodeClass{
		Meta:    object.Meta{APIVersion: "karpenter.dklesev.github.io/v1beta1", Kind: "SSHNodeClass", Name: "bm"},
		Profile: "tls", JoinSecret: "s", Vars: map[string]string{"dns": "10.0.0.10"},
		HasCluster: true, Endpoint: "https://a:6443", CABundle: []byte("---\n"),
		Selector: object.Selector{MatchLabels: map[string]string{"a": "b"}, Expressions: []object.Expression{{Key: "k", Operator: "In", Values: []string{"v"}}}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("class (-want +got):\n%s", diff)
	}
	bare, err := object.ParseNodeClass([]byte(`{"kind":"SSHNodeClass","spec":{"joinProfileRef":{"name":"tls"},"cluster":null}}`))
	if err != nil || bare.HasCluster || !bare.Selector.Matches(nil) {
		t.Errorf("got %+v, %v", bare, err)
	}
}

const runJSON = `{"kind":"HostRun","metadata":{"name":"r","namespace":"pool"},"spec":{"hostRef":{"name":"a"},"profileRef":{"name":"tls"},"secretRef":{"name":"s"},
 "phase":"join","nodeName":"n","vars":{"k":"v"}},"status":{"conditions":[{"type":"Verified","status":"False"},{"type":"Succeeded","status":"Unknown"}]}}`

func TestParseHostRun(t *testing.T) {
	want := &object.HostRun{
		Meta: object.Meta{Kind: "HostRun", Name: "r", Namespace: "pool"}, Host: "a", Profile: "tls", Secret: "s", NodeName: "n", Phase: "join", Vars: map[string]string{"k": "v"},
		Deadline: time.Hour,
	}
	for state, finished := range map[string]bool{"Unknown": false, "True": true, "False": true, "": false} {
		r, err := object.ParseHostRun([]byte(strings.Replace(runJSON, `"Unknown"`, `"`+state+`"`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		want.Finished, want.Succeeded = finished, state == "True"
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%q (-want +got):\n%s", state, diff)
		}
	}
}

func TestAHostRunSaysWhenItWasMadeAndWhetherItWasSent(t *testing.T) {
	created := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		old, new string
		created  time.Time
		deadline time.Duration
		sent     bool
	}{
		"nothing said":         {"", "", time.Time{}, time.Hour, false},
		"made at noon":         {`"name":"r"`, `"name":"r","creationTimestamp":"2026-11-30T12:00:00Z"`, created, time.Hour, false},
		"no time":              {`"name":"r"`, `"name":"r","creationTimestamp":null`, time.Time{}, time.Hour, false},
		"a minute":             {`"phase"`, `"deadlineSeconds":60,"phase"`, time.Time{}, time.Minute, false},
		"null seconds":         {`"phase"`, `"deadlineSeconds":null,"phase"`, time.Time{}, time.Hour, false},
		"less than the CRD's":  {`"phase"`, `"deadlineSeconds":-1,"phase"`, time.Time{}, time.Hour, false},
		"the CRD's most":       {`"phase"`, `"deadlineSeconds":86400,"phase"`, time.Time{}, 24 * time.Hour, false},
		"more than the CRD's":  {`"phase"`, `"deadlineSeconds":9223372036854775807,"phase"`, time.Time{}, 24 * time.Hour, false},
		"sent":                 {`"Verified","status":"False"`, `"Delivered","status":"Unknown"`, time.Time{}, time.Hour, true},
		"delivered":            {`"Verified","status":"False"`, `"Delivered","status":"True"`, time.Time{}, time.Hour, true},
		"a state nobody knows": {`"Verified","status":"False"`, `"Delivered","status":"x"`, time.Time{}, time.Hour, true},
		"not delivered":        {`"Verified","status":"False"`, `"Delivered","status":"False"`, time.Time{}, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := object.ParseHostRun([]byte(strings.Replace(runJSON, tt.old, tt.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if !r.Created.Equal(tt.created) || r.Deadline != tt.deadline || r.Sent != tt.sent || r.Finished {
				t.Errorf("got %+v", r)
			}
		})
	}
	for _, bad := range []string{`"yesterday"`, `"2026-11-30 12:00:00"`, `7`} {
		_, err := object.ParseHostRun([]byte(strings.Replace(runJSON, `"name":"r"`, `"name":"r","creationTimestamp":`+bad, 1)))
		if e := decision.From(err); err == nil || e.Reason != decision.Malformed || e.Where != "metadata.creationTimestamp" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAHostRunSaysHowAndWhenItEnded(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		condition                   string
		ended                       time.Time
		finished, succeeded, joined bool
	}{
		"succeeded":          {`"Succeeded","status":"True","lastTransitionTime":"2026-11-30T12:00:00Z"`, noon, true, true, false},
		"failed":             {`"Succeeded","status":"False","lastTransitionTime":"2026-11-30T12:00:00Z"`, noon, true, false, false},
		"runs":               {`"Succeeded","status":"Unknown","lastTransitionTime":"2026-11-30T12:00:00Z"`, time.Time{}, false, false, false},
		"nobody knows when":  {`"Succeeded","status":"True"`, time.Time{}, true, true, false},
		"at no time":         {`"Succeeded","status":"True","lastTransitionTime":"noon"`, time.Time{}, true, true, false},
		"joined":             {`"Joined","status":"True","lastTransitionTime":"2026-11-30T12:00:00Z"`, time.Time{}, false, false, true},
		"did not join":       {`"Joined","status":"False","lastTransitionTime":"2026-11-30T12:00:00Z"`, time.Time{}, false, false, false},
		"may or may not yet": {`"Joined","status":"Unknown"`, time.Time{}, false, false, false},
	} {
		r, err := object.ParseHostRun([]byte(strings.Replace(runJSON, `"Verified","status":"False"`, tt.condition, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if !r.Ended.Equal(tt.ended) || r.Finished != tt.finished || r.Succeeded != tt.succeeded || r.Joined != tt.joined {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func TestAHostSaysItsClassAndWhatIsInstalled(t *testing.T) {
	h, err := object.ParseHost([]byte(`{"kind":"SSHHost","metadata":{"labels":{"karpenter.dklesev.github.io/host-class":"bm"}},"spec":{},"status":{"installedProfile":"tls@42"}}`))
	if err != nil || h.Class() != "bm" || h.Installed() != "tls" {
		t.Errorf("got %+v, %v", h, err)
	}
	bare, err := object.ParseHost([]byte(`{"kind":"SSHHost","spec":{}}`))
	if err != nil || bare.Class() != "default" || bare.Installed() != "" {
		t.Errorf("got %+v, %v", bare, err)
	}
}

func TestJSONIsReadInOneWay(t *testing.T) {
	class := func(raw string) error { _, err := object.ParseNodeClass([]byte(raw)); return err }
	run := func(raw string) error { _, err := object.ParseHostRun([]byte(raw)); return err }
	host := func(raw string) error { _, err := object.ParseHost([]byte(raw)); return err }
	const hostJSON = `{"kind":"SSHHost","metadata":{"name":"a","labels":{"x":"1","X":"2"}},"spec":{"user":"kpssh"},"status":{"a":1}}`
	for name, tt := range map[string]struct {
		parse    func(string) error
		raw      string
		old, new string
		where    string // of the refusal; "ok" for none
	}{
		"as it is":                       {host, hostJSON, "", "", "ok"},
		"labels that differ in case":     {host, hostJSON, `"2"`, `"1"`, "ok"},
		"spec twice":                     {host, hostJSON, `"status":{`, `"spec":{"user":"root"},"status":{`, ""},
		"Spec beside spec":               {host, hostJSON, `"status":{`, `"Spec":{"user":"root"},"status":{`, "spec"},
		"spec in a long s":               {host, hostJSON, `"status":{`, `"ſpec":{"user":"root"},"status":{`, "spec"},
		"spec twice, once escaped":       {host, hostJSON, `"status":{`, `"sp\u0065c":{"user":"root"},"status":{`, ""},
		"user twice":                     {host, hostJSON, `"user":"kpssh"`, `"user":"kpssh","user":"root"`, "spec"},
		"User beside user":               {host, hostJSON, `"user":"kpssh"`, `"user":"kpssh","User":"root"`, "spec.user"},
		"a user that is a number":        {host, hostJSON, `"user":"kpssh"`, `"user":3`, "spec.user"},
		"Name beside name":               {host, hostJSON, `"name":"a"`, `"name":"a","Name":"b"`, "metadata.name"},
		"a label twice":                  {host, hostJSON, `"X"`, `"x"`, "labels"},
		"twice within a list":            {host, hostJSON, `"status":{"a":1}`, `"status":{"a":[1,{"b":"}","c":{},"b":2}]}`, "a"},
		"the same name at two levels":    {host, hostJSON, `"status":{"a":1}`, `"status":{"a":[1,{"a":{"a":[]}},{"a":"\\\""}]}`, "ok"},
		"a byte that is no text":         {host, hostJSON, `"kpssh"`, "\"kp\xffssh\"", "user"},
		"U+FFFD as such":                 {host, hostJSON, `"kpssh"`, `"\ufffd�"`, "ok"},
		"half a surrogate pair":          {host, hostJSON, `"kpssh"`, `"\\\ud800\n"`, "user"},
		"its other half alone":           {host, hostJSON, `"kpssh"`, `"\uDC00"`, "user"},
		"a pair the wrong way round":     {host, hostJSON, `"kpssh"`, `"\udc00\ud800"`, "user"},
		"a whole pair":                   {host, hostJSON, `"kpssh"`, `"\ud83d\uDE00\\ud800"`, "ok"},
		"a class":                        {class, classJSON, "", "", "ok"},
		"a class's vars twice":           {class, classJSON, `"vars":{`, `"vars":{},"vars":{`, "spec"},
		"a var twice":                    {class, classJSON, `"dns":`, `"dns":"x","dns":`, "vars"},
		"a var in two cases":             {class, classJSON, `"dns":`, `"DNS":"x","dns":`, "ok"},
		"caBundle in two cases":          {class, classJSON, `"caBundle":`, `"cabundle":"x","caBundle":`, "spec.cluster.caBundle"},
		"a class without a profile":      {class, classJSON, `{"name":"tls"}`, `{"name":""}`, "spec.joinProfileRef.name"},
		"a profile ref of another type":  {class, classJSON, `{"name":"tls"}`, `"tls"`, "spec.joinProfileRef"},
		"an operator in two cases":       {class, classJSON, `"operator":"In"`, `"operator":"In","Operator":"Exists"`, "spec.hostSelector.matchExpressions[0].operator"},
		"vars of numbers":                {class, classJSON, `"10.0.0.10"`, `10`, "spec.vars"},
		"base64 with bits left over":     {class, classJSON, `LS0tCg==`, `LS0tCh==`, "spec.cluster.caBundle"},
		"a run":                          {run, runJSON, "", "", "ok"},
		"a run without a profile":        {run, runJSON, `{"name":"tls"}`, `{}`, "spec"},
		"a run of no phase":              {run, runJSON, `"phase":"join",`, ``, "spec"},
		"a secret of another namespace":  {run, runJSON, `{"name":"s"}`, `{"name":"kube-system/s"}`, "spec.secretRef.name"},
		"a host that a terminal obeys":   {run, runJSON, `{"name":"a"}`, `{"name":"a\u001b[2J"}`, "spec.hostRef.name"},
		"a host in capitals":             {run, runJSON, `{"name":"a"}`, `{"name":"A"}`, "spec.hostRef.name"},
		"hostRef in two cases":           {run, runJSON, `"hostRef":`, `"hostref":{"name":"b"},"hostRef":`, "spec.hostRef"},
		"conditions that are no list":    {run, runJSON, `[{"type":"Verified","status":"False"},{"type":"Succeeded","status":"Unknown"}]`, `1`, "status.conditions"},
		"a condition in two spellings":   {run, runJSON, `"type":"Succeeded"`, `"type":"Succeeded","Type":"x"`, "status.conditions.type"},
		"a final brace too many, unread": {host, hostJSON + "}", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			raw := strings.Replace(tt.raw, tt.old, tt.new, 1)
			err := tt.parse(raw)
			if tt.where == "ok" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if e := decision.From(err); err == nil || e.Reason != decision.Malformed || e.Where != tt.where {
				t.Errorf("got %v at %q, want Malformed at %q", err, e.Where, tt.where)
			}
		})
	}
}

func TestDigests(t *testing.T) {
	hash := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) }
	p, err := object.ParseJoinProfile([]byte(profileJSON))
	if err != nil {
		t.Fatal(err)
	}
	want := "sha256:" + hash("install "+hash("i\n")+"\njoin "+hash("j\n")+"\nleave "+hash("l\n")+"\n")
	if p.Digest() != want {
		t.Errorf("digest %s, not %s", p.Digest(), want)
	}
	const hostJSON = `{"kind":"SSHHost","metadata":{"name":"a","namespace":"pool"},"spec":{"user":"kpssh","address":"10.0.0.1","n":12345678901234567890}}`
	digest, err := object.ContentDigest([]byte(hostJSON))
	if want := "sha256:" + hash(`["pool","a","SSHHost",{"address":"10.0.0.1","execMode":"Raw","n":12345678901234567890,"port":22,"user":"kpssh"},"",false]`+"\n"); err != nil || digest != want {
		t.Errorf("content digest %s, %v, not %s", digest, err, want)
	}
	for name, tt := range map[string]struct {
		old, new string
		same     bool
	}{
		"order":           {`"user":"kpssh","address":"10.0.0.1"`, `"address":"10.0.0.1", "user":"kpssh"`, true},
		"an annotation":   {`"name":"a"`, `"name":"a","annotations":{"x":"y"}`, true},
		"a default":       {`"user":"kpssh"`, `"user":"kpssh","port":22`, true},
		"a null":          {`"user":"kpssh"`, `"user":"kpssh","shimCommand":null`, true},
		"the status":      {`"spec"`, `"status":{},"spec"`, true},
		"another port":    {`"user":"kpssh"`, `"user":"kpssh","port":23`, false},
		"another name":    {`"name":"a"`, `"name":"b"`, false},
		"elsewhere":       {`"pool"`, `"default"`, false},
		"a class":         {`"name":"a"`, `"name":"a","labels":{"karpenter.dklesev.github.io/host-class":"x"}`, false},
		"a digit":         {`12345678901234567890`, `12345678901234567891`, false},
		"an empty string": {`"user":"kpssh"`, `"user":"kpssh","shimCommand":""`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := object.ContentDigest([]byte(strings.Replace(hostJSON, tt.old, tt.new, 1)))
			if err != nil || (got == digest) != tt.same {
				t.Errorf("digest %s of %s, %v", got, digest, err)
			}
		})
	}
	if _, err := object.ContentDigest([]byte(`{"kind":"Secret","spec":{}}`)); decision.From(err).Reason != decision.Malformed {
		t.Errorf("a kind without a rule: %v", err)
	}
	if _, err := object.ContentDigest([]byte(`{"kind":"SSHHost"}`)); decision.From(err).Reason != decision.Malformed {
		t.Errorf("no spec: %v", err)
	}
}

func TestGuardedContentOfClassesAndRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, raw, old, new string
		want                bool
	}{
		"a class's label":      {"SSHNodeClass", classJSON, `"name":"bm"`, `"name":"bm","labels":{"x":"y"}`, true},
		"a class's var":        {"SSHNodeClass", classJSON, `10.0.0.10`, `10.0.0.11`, false},
		"a run is cancelled":   {"HostRun", runJSON, `"phase"`, `"cancel":true,"phase"`, true},
		"a run's TTL":          {"HostRun", runJSON, `"phase"`, `"ttlSecondsAfterFinished":1,"phase"`, true},
		"a run's status":       {"HostRun", runJSON, `"Unknown"`, `"True"`, true},
		"a run's node name":    {"HostRun", runJSON, `"nodeName":"n"`, `"nodeName":"m"`, false},
		"a run's deadline":     {"HostRun", runJSON, `"phase"`, `"deadlineSeconds":1,"phase"`, false},
		"a field that is new":  {"HostRun", runJSON, `"phase"`, `"Cancel":true,"phase"`, false},
		"a name that is twice": {"HostRun", runJSON, `"nodeName":"n"`, `"nodeName":"n","nodeName":"n"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := object.SameGuarded(tt.kind, []byte(tt.raw), []byte(strings.Replace(tt.raw, tt.old, tt.new, 1))); got != tt.want {
				t.Errorf("SameGuarded = %v", got)
			}
		})
	}
}

func TestADeepObjectCostsNoMoreThanALargeOne(t *testing.T) {
	deep := func(leaf string) []byte {
		const levels = 4000
		return []byte(`{"kind":"SSHHost","metadata":{"name":"a"},"spec":` + strings.Repeat(`{"a":[`, levels) + `"` + leaf + `"` + strings.Repeat(`]}`, levels) + `}`)
	}
	large := strings.Repeat("x", 1<<20)
	start := time.Now()
	if object.SameGuarded("SSHHost", deep(large+"a"), deep(large+"b")) {
		t.Error("the same")
	}
	if !object.SameGuarded("SSHHost", deep(large), deep(large)) {
		t.Error("not the same")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestALargeReviewIsReadQuickly(t *testing.T) {
	script := strings.Repeat(`\u003c`, 262144)
	raw := []byte(`{"kind":"SSHJoinProfile","metadata":{"name":"tls"},"spec":{"scripts":{"install":"` + script + `","join":"` + script + `","leave":"` + script + `","uninstall":"` + script + `"}}}`)
	other := []byte(strings.Replace(string(raw), `"metadata"`, `"status":{},"metadata"`, 1))
	start := time.Now()
	if err := json.Unmarshal(raw, new(any)); err != nil {
		t.Fatal(err)
	}
	once := time.Since(start) // with which to compare: machines are fast or slow, and busy or not
	start = time.Now()
	if !object.SameGuarded("SSHJoinProfile", raw, other) {
		t.Error("not the same")
	}
	if _, err := object.ParseJoinProfile(raw); err != nil {
		t.Error(err)
	}
	took := time.Since(start)
	t.Logf("%d MiB read in %s, decoding one of the two takes %s", (len(raw)+len(other))>>20, took, once)
	if took > 5*time.Second+40*once {
		t.Errorf("took %s, and decoding one of the two %s", took, once)
	}
}

func TestAHostRunOfPhaseProbeNamesAHostAlone(t *testing.T) {
	const probe = `{"kind":"HostRun","metadata":{"name":"r","namespace":"pool"},"spec":{"hostRef":{"name":"a"},"phase":"probe"}}`
	r, err := object.ParseHostRun([]byte(probe))
	if err != nil || !r.Probes() || r.Host != "a" {
		t.Fatalf("%+v, %v", r, err)
	}
	for name, spec := range map[string]string{
		"no host":                `"phase":"probe"`,
		"a profile":              `"hostRef":{"name":"a"},"profileRef":{"name":"p"},"phase":"probe"`,
		"a node name":            `"hostRef":{"name":"a"},"nodeName":"n","phase":"probe"`,
		"vars":                   `"hostRef":{"name":"a"},"vars":{"x":"1"},"phase":"probe"`,
		"a Secret":               `"hostRef":{"name":"a"},"secretRef":{"name":"s"},"phase":"probe"`,
		"a join without one":     `"hostRef":{"name":"a"},"nodeName":"n","phase":"join"`,
		"a leave without one":    `"hostRef":{"name":"a"},"phase":"leave"`,
		"prove, which is no run": `"hostRef":{"name":"a"},"phase":"prove"`,
	} {
		_, err := object.ParseHostRun([]byte(`{"kind":"HostRun","metadata":{"name":"r"},"spec":{` + spec + `}}`))
		if e := decision.From(err); err == nil || e.Reason != decision.Malformed || e.Where != "spec" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
