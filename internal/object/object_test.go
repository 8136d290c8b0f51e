package object_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

const profileJSON = `{"apiVersion":"karpenter.dklesev.github.io/v1beta1","kind":"SSHJoinProfile",
 "metadata":{"name":"tls","uid":"u","labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["f"],"deletionTimestamp":"2026-11-30T00:00:00Z"},
 "spec":{"version":"7","scripts":{"install":"i\n","join":"j\n","leave":"l\n","uninstall":""},"signatures":{"install":"s","join":null,"leave":""},
 "timeouts":{"install":"1h30m","join":"90s","leave":null}}}`

func TestParseJoinProfile(t *testing.T) {
	p, err := object.ParseJoinProfile([]byte(profileJSON))
	if err != nil {
		t.Fatal(err)
	}
	want := &object.JoinProfile{
		Meta: object.Meta{
			APIVersion: "karpenter.dklesev.github.io/v1beta1", Kind: "SSHJoinProfile", Name: "tls", UID: "u",
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"f"}, Deleting: true,
		},
		Version:    "7",
		Scripts:    map[script.Phase]string{"install": "i\n", "join": "j\n", "leave": "l\n"},
		Signatures: map[script.Phase]string{"install": "s"},
		Timeouts:   map[script.Phase]time.Duration{"install": 90 * time.Minute, "join": 90 * time.Second},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]script.Phase{"install", "join", "leave"}, p.Phases()); diff != "" {
		t.Errorf("phases:\n%s", diff)
	}
}

func TestParseHostFillsDefaults(t *testing.T) {
	h, err := object.ParseHost([]byte(`{"kind":"SSHHost","metadata":{"name":"a","namespace":"pool"},"spec":{"address":"10.0.0.1","sshKeySecretRef":{"name":"key"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &object.Host{Meta: object.Meta{Kind: "SSHHost", Name: "a", Namespace: "pool"}, Address: "10.0.0.1", Port: 22, User: "root", ExecMode: "Raw", SecretName: "key"}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
}

func TestParseTrustPolicy(t *testing.T) {
	p, err := object.ParseTrustPolicy([]byte(`{"kind":"TrustPolicy","metadata":{"name":"cluster"},"spec":{"document":"d","signatures":["s"],"rootChain":[]}}`))
	if err != nil || p.Document != "d" || len(p.Signatures) != 1 || p.Name != "cluster" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestParseRefuses(t *testing.T) {
	profile := func(raw string) error { _, err := object.ParseJoinProfile([]byte(raw)); return err }
	host := func(raw string) error { _, err := object.ParseHost([]byte(raw)); return err }
	policy := func(raw string) error { _, err := object.ParseTrustPolicy([]byte(raw)); return err }
	change := func(old, new string) string {
		if !strings.Contains(profileJSON, old) {
			t.Fatalf("no %q in the profile", old)
		}
		return strings.Replace(profileJSON, old, new, 1)
	}
	tests := map[string]struct {
		parse func(string) error
		raw   string
		where string
	}{
		"nothing":                   {profile, ``, ""},
		"null":                      {profile, `null`, ""},
		"a list":                    {profile, `[]`, ""},
		"two objects":               {profile, profileJSON + profileJSON, ""},
		"another kind":              {host, profileJSON, "kind"},
		"a kind in other case":      {profile, change(`"kind"`, `"Kind"`), "kind"},
		"no spec":                   {profile, `{"kind":"SSHJoinProfile"}`, "spec"},
		"a null spec":               {profile, `{"kind":"SSHJoinProfile","spec":null}`, "spec"},
		"a spec in other case":      {profile, change(`"spec"`, `"Spec"`), "spec"},
		"a spec that is a list":     {profile, `{"kind":"SSHJoinProfile","spec":[]}`, "spec"},
		"scripts in other case":     {profile, change(`"scripts"`, `"Scripts"`), "spec.scripts"},
		"a script that is a number": {profile, change(`"i\n"`, `1`), "spec.scripts.install"},
		"an unknown phase":          {profile, change(`"uninstall":""`, `"probe":"x"`), "spec.scripts"},
		"a phase in other case":     {profile, change(`"uninstall":""`, `"Uninstall":"x"`), "spec.scripts"},
		"an unknown signature":      {profile, change(`"leave":""},`, `"probe":"x"},`), "spec.signatures"},
		"no install":                {profile, change(`"install":"i\n",`, ``), "spec.scripts.install"},
		"an empty join":             {profile, change(`"j\n"`, `""`), "spec.scripts.join"},
		"a null leave":              {profile, change(`"l\n"`, `null`), "spec.scripts.leave"},
		"signature of no script":    {profile, change(`"join":null`, `"uninstall":"x"`), "spec.signatures.uninstall"},
		"a time without a unit":     {profile, change(`"90s"`, `"90"`), "spec.timeouts.join"},
		"a time in days":            {profile, change(`"90s"`, `"1d"`), "spec.timeouts.join"},
		"a time with a fraction":    {profile, change(`"90s"`, `"1.5h"`), "spec.timeouts.join"},
		"a time below zero":         {profile, change(`"90s"`, `"-90s"`), "spec.timeouts.join"},
		"a time that overflows":     {profile, change(`"90s"`, `"99999999999999999h"`), "spec.timeouts.join"},
		"a time of no phase":        {profile, change(`"join":"90s"`, `"probe":"90s"`), "spec.timeouts"},
		"a label that is a number":  {profile, change(`"b"`, `1`), "metadata.labels"},
		"a port that is a text":     {host, `{"kind":"SSHHost","spec":{"port":"22"}}`, "spec.port"},
		"signers that are a text":   {host, `{"kind":"SSHHost","spec":{"trustedSigners":"k"}}`, "spec.trustedSigners"},
		"a secret that is a text":   {host, `{"kind":"SSHHost","spec":{"sshKeySecretRef":"k"}}`, "spec.sshKeySecretRef"},
		"a root chain of texts":     {policy, `{"kind":"TrustPolicy","spec":{"document":"d","rootChain":["a"]}}`, "spec.rootChain"},
		"an empty root link":        {policy, `{"kind":"TrustPolicy","spec":{"document":"d","rootChain":[{"document":"a","signatures":["s"]},{}]}}`, "spec.rootChain[1]"},
		"an unsigned root link":     {policy, `{"kind":"TrustPolicy","spec":{"document":"d","rootChain":[{"document":"a"}]}}`, "spec.rootChain[0]"},
		"a root link without text":  {policy, `{"kind":"TrustPolicy","spec":{"document":"d","rootChain":[{"signatures":["s"]}]}}`, "spec.rootChain[0]"},
		"a root link of numbers":    {policy, `{"kind":"TrustPolicy","spec":{"document":"d","rootChain":[{"document":1,"signatures":["s"]}]}}`, "spec.rootChain[0].document"},
		"signatures that are text":  {policy, `{"kind":"TrustPolicy","spec":{"signatures":"s"}}`, "spec.signatures"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.parse(tt.raw)
			if err == nil {
				t.Fatal("accepted")
			}
			e := decision.From(err)
			if e.Reason != decision.Malformed || e.Where != tt.where {
				t.Errorf("got %s at %q (%s), want Malformed at %q", e.Reason, e.Where, e.What, tt.where)
			}
		})
	}
}

func TestSameGuarded(t *testing.T) {
	const host = `{"kind":"SSHHost","metadata":{"name":"a","labels":{"karpenter.dklesev.github.io/host-class":"x","other":"1"}},"spec":{"user":"kpssh","n":12345678901234567890}}`
	tests := map[string]struct {
		kind     string
		old, new string
		want     bool
	}{
		"nothing changed":           {"SSHHost", host, host, true},
		"order and space":           {"SSHHost", host, strings.Replace(host, `{"user":"kpssh","n":12345678901234567890}`, `{ "n":12345678901234567890, "user":"kpssh" }`, 1), true},
		"another label":             {"SSHHost", host, strings.Replace(host, `"1"`, `"2"`, 1), true},
		"a finalizer":               {"SSHHost", host, strings.Replace(host, `"name":"a"`, `"name":"a","finalizers":["f"]`, 1), true},
		"the status":                {"SSHHost", host, strings.Replace(host, `"spec"`, `"status":{"x":1},"spec"`, 1), true},
		"the spec":                  {"SSHHost", host, strings.Replace(host, "kpssh", "root", 1), false},
		"a digit of a large number": {"SSHHost", host, strings.Replace(host, "12345678901234567890", "12345678901234567891", 1), false},
		"the host class":            {"SSHHost", host, strings.Replace(host, `"x"`, `"y"`, 1), false},
		"the host class removed":    {"SSHHost", host, strings.Replace(host, `"karpenter.dklesev.github.io/host-class":"x",`, ``, 1), false},
		"the spec removed":          {"SSHHost", host, `{"kind":"SSHHost","metadata":{"name":"a"}}`, false},
		"both without a spec":       {"SSHHost", `{"kind":"SSHHost"}`, `{"kind":"SSHHost"}`, false},
		"no old object":             {"SSHHost", ``, host, false},
		"a kind without a rule":     {"Secret", host, host, false},
		"a profile's label":         {"SSHJoinProfile", profileJSON, strings.Replace(profileJSON, `"b"`, `"z"`, 1), true},
		"a profile's script":        {"SSHJoinProfile", profileJSON, strings.Replace(profileJSON, `"j\n"`, `"J\n"`, 1), false},
		"a profile's signature":     {"SSHJoinProfile", profileJSON, strings.Replace(profileJSON, `"s"`, `"S"`, 1), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := object.SameGuarded(tt.kind, []byte(tt.old), []byte(tt.new)); got != tt.want {
				t.Errorf("SameGuarded = %v", got)
			}
		})
	}
}

func TestParseMeta(t *testing.T) {
	m, err := object.ParseMeta([]byte(`{"kind":"Pod","metadata":{"name":"p"}}`))
	if err != nil || m.Kind != "Pod" || m.Name != "p" || m.Deleting {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := object.ParseMeta([]byte(`{"metadata":[]}`)); decision.From(err).Where != "metadata" {
		t.Errorf("got %v", err)
	}
}
