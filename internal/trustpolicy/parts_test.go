package trustpolicy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// full is a document that uses every field.
func full(signer, authority testkit.Signer) string {
	hex := strings.Repeat("ab", 32)
	return `version: 3
clusters: {prod-1: {endpoints: ["https://10.0.0.5:6443"], caSHA256: ["` + hex + `"], uid: 5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b}}
issued: "2026-11-29T00:00:00Z"
expires: "2027-05-29T00:00:00Z"
mode: enforce
rootVersion: 1
joinProfiles:
  signers:
  - {name: platform-ci, key: "` + signer.Line + `", validBefore: "2027-03-01T00:00:00Z", profiles: ["tls-*"], targets: ["class bm-*"], phases: [install, join, leave]}
  - {name: people, key: "` + authority.Line + `", certAuthority: true}
  thresholds: {install: 1, join: 2, leave: 1, uninstall: 1}
  requireWarrant: true
  maxValidity: 30d
  unguarded: [{profiles: ["legacy-*"], until: "2027-01-01T00:00:00Z"}]
  hosts:
    raw: [{host: "pool/old-1", until: "2027-01-01T00:00:00Z"}]
    users: [kpssh]
    ports: [22]
    shimCommands: [/opt/kpssh/kpssh-shim]
    profiles: {default: ["tls-*"]}
    namespaces: {pool: {classes: [default, bm-amd64], nodeNames: ["pool-*"], hostCA: "` + authority.Line + `"}}
fragmentClasses: {base: {signers: ["key:` + hex + `"], allowedSpecPaths: [execs], values: {execs: ["/usr/bin/*"]}}}
ruleClasses: {base: {signers: ["key:` + hex + `"], allowedRuleIDs: ["*", R0001], mayDisable: false}}
bindingClasses: {base: {signers: ["key:` + hex + `"]}}
learners: ["system:serviceaccount:kubescape:node-agent"]
bundles: {redis: {required: [{class: base, name: redis-base}], tombstones: [{class: base, name: old, version: 4}], priority: [base, base/redis-base]}}
revoked: {signers: ["SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0"], fragmentSigners: ["key:` + hex + `"]}
floors: {tls-bootstrap: 40, "web-*": 1}
resets: [{profile: tls-bootstrap, serial: 41, digest: "sha256:` + hex + `"}, {slot: pool/redis/base/redis-base, serial: 3, digest: "sha256:` + hex + `"}]
waivers: [{kind: SSHJoinProfile, name: x, digest: "sha256:` + hex + `", expires: "2026-12-10T00:00:00Z", reason: "until the vendor signs"}]
`
}

func TestTheFullDocumentIsRead(t *testing.T) {
	signer, authority := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	p, err := trustpolicy.ReadUnverified([]byte(full(signer, authority)))
	if err != nil {
		t.Fatal(err)
	}
	until := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	hex := strings.Repeat("ab", 32)
	for name, pair := range map[string][2]any{
		"uid":              {"5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b", p.Clusters["prod-1"].UID},
		"targets":          {[]string{"class bm-*"}, p.Signers[0].Targets},
		"certAuthority":    {[]bool{false, true}, []bool{p.Signers[0].CertAuthority, p.Signers[1].CertAuthority}},
		"requireWarrant":   {true, p.RequireWarrant},
		"maxValidity":      {30 * 24 * time.Hour, p.MaxValidity},
		"unguarded":        {[]trustpolicy.Unguarded{{Profiles: []string{"legacy-*"}, Until: until}}, p.Unguarded},
		"hosts.raw":        {[]trustpolicy.RawHost{{Host: "pool/old-1", Until: until}}, p.Hosts.Raw},
		"hosts.profiles":   {map[string][]string{"default": {"tls-*"}}, p.Hosts.Profiles},
		"namespaces":       {[]string{"default", "bm-amd64", "pool-*"}, append(p.Hosts.Namespaces["pool"].Classes, p.Hosts.Namespaces["pool"].NodeNames...)},
		"hostCA":           {string(authority.PublicKey().Marshal()), string(p.Hosts.Namespaces["pool"].HostCA.Marshal())},
		"fragmentClasses":  {map[string]trustpolicy.FragmentClass{"base": {Signers: []string{"key:" + hex}, AllowedSpecPaths: []string{"execs"}, Values: map[string][]string{"execs": {"/usr/bin/*"}}}}, p.FragmentClasses},
		"ruleClasses":      {map[string]trustpolicy.RuleClass{"base": {Signers: []string{"key:" + hex}, AllowedRuleIDs: []string{"*", "R0001"}}}, p.RuleClasses},
		"bindingClasses":   {map[string]trustpolicy.BindingClass{"base": {Signers: []string{"key:" + hex}}}, p.BindingClasses},
		"learners":         {[]string{"system:serviceaccount:kubescape:node-agent"}, p.Learners},
		"bundles":          {map[string]trustpolicy.Bundle{"redis": {Required: []trustpolicy.Member{{Class: "base", Name: "redis-base"}}, Tombstones: []trustpolicy.Tombstone{{Class: "base", Name: "old", Version: 4}}, Priority: []string{"base", "base/redis-base"}}}, p.Bundles},
		"revoked.signers":  {[]string{"SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0"}, p.RevokedSigners()},
		"revoked.fragment": {[]string{"key:" + hex}, p.RevokedFragmentSigners},
		"floors":           {map[string]int64{"tls-bootstrap": 40, "web-*": 1}, p.Floors},
		"resets":           {[]trustpolicy.Reset{{Profile: "tls-bootstrap", Serial: 41, Digest: "sha256:" + hex}, {Slot: "pool/redis/base/redis-base", Serial: 3, Digest: "sha256:" + hex}}, p.Resets},
		"waivers":          {[]trustpolicy.Waiver{{Kind: "SSHJoinProfile", Name: "x", Digest: "sha256:" + hex, Reason: "until the vendor signs", Expires: time.Date(2026, 12, 10, 0, 0, 0, 0, time.UTC)}}, p.Waivers},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{signer.Line}, p.TrustedSigners()); diff != "" {
		t.Errorf("an authority is no trusted signer:\n%s", diff)
	}
	if p.Roots() != nil {
		t.Error("a policy that nobody verified has roots")
	}
}

func TestTheFullDocumentsNearMisses(t *testing.T) {
	signer, authority := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	good := full(signer, authority)
	hex := strings.Repeat("ab", 32)
	tests := map[string][2]string{
		"a uid that is none":              {"uid: 5f3c2a10", "uid: 5F3C2A10"},
		"targets of nothing":              {`["class bm-*"]`, `[]`},
		"a target without a kind":         {`["class bm-*"]`, `["bm-*"]`},
		"a target of an unknown kind":     {`["class bm-*"]`, `["rack bm"]`},
		"a class with * inside":           {`["class bm-*"]`, `["class b*m"]`},
		"a class that is * alone":         {`["class bm-*"]`, `["class *"]`},
		"a host by name":                  {`["class bm-*"]`, `["host pool-1"]`},
		"a cluster with *":                {`["class bm-*"]`, `["cluster prod-*"]`},
		"a cluster that is any":           {`["class bm-*"]`, `["cluster any"]`},
		"any beside a class":              {`["class bm-*"]`, `["class bm-*", any]`},
		"certAuthority as a text":         {`certAuthority: true`, `certAuthority: "true"`},
		"certAuthority: yes":              {`certAuthority: true`, `certAuthority: yes`},
		"certAuthority: True":             {`certAuthority: true`, `certAuthority: True`},
		"unguarded without an end":        {`until: "2027-01-01T00:00:00Z"}]` + "\n  hosts", `}]` + "\n  hosts"},
		"unguarded for ever":              {`[{profiles: ["legacy-*"], until: "2027-01-01T00:00:00Z"}]`, `[{profiles: ["legacy-*"], until: never}]`},
		"unguarded of no profile":         {`[{profiles: ["legacy-*"], until`, `[{until`},
		"unguarded with a pattern":        {`"legacy-*"`, `"*-legacy"`},
		"a raw host without a namespace":  {"pool/old-1", "old-1"},
		"a raw host with *":               {"pool/old-1", "pool/*"},
		"a raw host without an end":       {`{host: "pool/old-1", until: "2027-01-01T00:00:00Z"}`, `{host: "pool/old-1"}`},
		"a class of no profile":           {`{default: ["tls-*"]}`, `{default: []}`},
		"a class with *, for profiles":    {`{default: ["tls-*"]}`, `{"bm-*": ["tls-*"]}`},
		"a namespace in capitals":         {`{pool: {classes`, `{Pool: {classes`},
		"a namespace's class with *":      {`[default, bm-amd64]`, `["bm-*"]`},
		"node names of nothing":           {`nodeNames: ["pool-*"]`, `nodeNames: []`},
		"a node name with a space":        {`nodeNames: ["pool-*"]`, `nodeNames: ["pool 1"]`},
		"a weak hostCA":                   {`hostCA: "` + authority.Line, `hostCA: "` + testkit.NewSigner(t, "rsa2048").Line},
		"a fragment class in capitals":    {"fragmentClasses: {base", "fragmentClasses: {Base"},
		"a fragment signer with *":        {`fragmentClasses: {base: {signers: ["key:` + hex, `fragmentClasses: {base: {signers: ["*`},
		"a fragment signer in capitals":   {`fragmentClasses: {base: {signers: ["key:` + hex, `fragmentClasses: {base: {signers: ["key:` + strings.ToUpper(hex)},
		"a fragment signer twice":         {`fragmentClasses: {base: {signers: ["key:` + hex + `"`, `fragmentClasses: {base: {signers: ["key:` + hex + `", "key:` + hex + `"`},
		"an unknown path":                 {"allowedSpecPaths: [execs]", "allowedSpecPaths: [exec, execs]"},
		"values of a path not allowed":    {"values: {execs", "values: {opens"},
		"values of nothing":               {`["/usr/bin/*"]`, `[]`},
		"an empty value":                  {`["/usr/bin/*"]`, `[""]`},
		"a value with * inside":           {`["/usr/bin/*"]`, `["/usr/*/id"]`},
		"a value with two *":              {`["/usr/bin/*"]`, `["*bin*"]`},
		"values of what has none":         {`[execs], values: {execs: ["/usr/bin/*"]}`, `[labelSelector], values: {labelSelector: ["*"]}`},
		"a reset of a slot with no class": {"slot: pool/redis/base/redis-base", "slot: pool/redis/redis-base"},
		"a reset of a slot in capitals":   {"slot: pool/redis/base/redis-base", "slot: pool/Redis/base/redis-base"},
		"a reset of a pattern of slots":   {"slot: pool/redis/base/redis-base", "slot: \"pool/redis/base/*\""},
		"an unknown field of a class":     {"mayDisable", "maydisable"},
		"a rule id with a space":          {"R0001", `"R 1"`},
		"a rule class in capitals":        {"ruleClasses: {base", "ruleClasses: {Base"},
		"a binding signer that is none":   {`bindingClasses: {base: {signers: ["key:` + hex, `bindingClasses: {base: {signers: ["` + hex},
		"a learner with *":                {"system:serviceaccount:kubescape:node-agent", "system:serviceaccount:kubescape:*"},
		"an empty learner":                {"system:serviceaccount:kubescape:node-agent", ""},
		"a bundle in capitals":            {"bundles: {redis", "bundles: {Redis"},
		"a member of an unknown class":    {"required: [{class: base", "required: [{class: overlay"},
		"a member without a name":         {"{class: base, name: redis-base}", "{class: base}"},
		"a tombstone of an unknown class": {"tombstones: [{class: base", "tombstones: [{class: overlay"},
		"a tombstone of version -1":       {"version: 4", "version: -1"},
		"a tombstone of what is required": {"name: old, version", "name: redis-base, version"},
		"a priority that is no class":     {"priority: [base", "priority: [overlay"},
		"a priority twice":                {"priority: [base", "priority: [base, base"},
		"a member's priority twice":       {"priority: [base", "priority: [base/redis-base"},
		"a member of no class":            {"priority: [base", "priority: [overlay/a"},
		"a priority of no name":           {"priority: [base", "priority: [base/, base"},
		"a member with half a path":       {"priority: [base", "priority: [base/a/b"},
		"a fragment revocation":           {`fragmentSigners: ["key:`, `fragmentSigners: ["SHA256:`},
		"a floor below 0":                 {"tls-bootstrap: 40", "tls-bootstrap: -1"},
		"a floor of 16 digits":            {"tls-bootstrap: 40", "tls-bootstrap: 1000000000000000"},
		"a floor with * inside":           {`"web-*": 1`, `"w*b": 1`},
		"a floor for nothing":             {`"web-*": 1`, `"": 1`},
		"a floor twice":                   {`"web-*": 1`, `tls-bootstrap: 1`},
		"a floor in octal":                {"tls-bootstrap: 40", "tls-bootstrap: 040"},
		"a floor in hex":                  {"tls-bootstrap: 40", "tls-bootstrap: 0x40"},
		"a floor of 4.5":                  {"tls-bootstrap: 40", "tls-bootstrap: 4.5"},
		"a floor of 4e1":                  {"tls-bootstrap: 40", "tls-bootstrap: 4e1"},
		"a floor with a line in it":       {"tls-bootstrap: 40", "tls-bootstrap: 4_0"},
		"a reset of nothing":              {"{profile: tls-bootstrap, serial: 41", "{serial: 41"},
		"a reset of both":                 {"{profile: tls-bootstrap, serial", "{profile: tls-bootstrap, slot: x, serial"},
		"a reset of a pattern":            {"{profile: tls-bootstrap, serial", "{profile: \"tls-*\", serial"},
		"a reset below 0":                 {"serial: 41", "serial: -1"},
		"a reset without a digest":        {`serial: 41, digest: "sha256:` + hex + `"`, `serial: 41`},
		"a waiver for an unknown kind":    {"kind: SSHJoinProfile", "kind: TrustPolicy"},
		"a waiver for every name":         {"name: x, digest", "name: \"*\", digest"},
		"a waiver without a digest":       {`name: x, digest: "sha256:` + hex + `"`, `name: x`},
		"a waiver without an end":         {`expires: "2026-12-10T00:00:00Z", reason`, `reason`},
		"a waiver without a reason":       {`, reason: "until the vendor signs"`, ``},
		"a date without quotes":           {`expires: "2026-12-10T00:00:00Z"`, `expires: 2026-12-10T00:00:00Z`},
		"a version with a point":          {`version: 3`, `version: 3.0`},
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, edit[0]) {
				t.Fatalf("no %q in the document", edit[0])
			}
			_, err := trustpolicy.ReadUnverified([]byte(strings.Replace(good, edit[0], edit[1], 1)))
			wantReason(t, err, decision.PolicyMalformed)
		})
	}
	for name, edit := range map[string][2]string{
		"as it is":                 {"", ""},
		"any alone":                {`["class bm-*"]`, `[any]`},
		"a host and a cluster":     {`["class bm-*"]`, `["host SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0", "cluster prod-1"]`},
		"every path":               {"allowedSpecPaths: [execs]", `allowedSpecPaths: ["*"]`},
		"a quoted yes":             {"name: people", `name: "yes"`},
		"a floor of 15 digits":     {"tls-bootstrap: 40", "tls-bootstrap: 999999999999999"},
		"no node names":            {`, nodeNames: ["pool-*"]`, ``},
		"requireWarrant left out":  {"  requireWarrant: true\n", ""},
		"a class without a signer": {`bindingClasses: {base: {signers: ["key:` + hex + `"]}}`, `bindingClasses: {base: {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := trustpolicy.ReadUnverified([]byte(strings.Replace(good, edit[0], edit[1], 1)))
			wantReason(t, err, decision.Verified)
			if err == nil && !p.RequireWarrant {
				t.Error("a warrant is not required")
			}
		})
	}
	_, err := trustpolicy.ReadUnverified([]byte(good + "#" + strings.Repeat("x", trustpolicy.MaxDocument)))
	wantReason(t, err, decision.PolicyMalformed)
}

func TestFloor(t *testing.T) {
	p := &trustpolicy.Policy{Floors: map[string]int64{"tls-bootstrap": 40, "web-*": 7, "web-1": 3, "web-2": 9, "*": 1, "db": 0}}
	for profile, want := range map[string]struct {
		serial int64
		exact  bool
	}{
		"tls-bootstrap": {40, true}, "tls-bootstrap2": {1, false}, "web-": {7, false}, "web-1": {7, true}, "web-2": {9, true}, "db": {1, true},
	} {
		if serial, exact := p.Floor(profile); serial != want.serial || exact != want.exact {
			t.Errorf("%s: %d, %v", profile, serial, exact)
		}
	}
	if serial, exact := (&trustpolicy.Policy{Floors: map[string]int64{"web": 1}}).Floor("we"); serial != 0 || exact {
		t.Errorf("no floor that matches: %d, %v", serial, exact)
	}
}

func TestCoversTargets(t *testing.T) {
	tests := map[string]struct {
		signer, warrant []string
		want            bool
	}{
		"no limits, no warrant":                {nil, nil, true},
		"no limits, any":                       {nil, []string{"any"}, true},
		"any, a class":                         {[]string{"any"}, []string{"class a"}, true},
		"any, any":                             {[]string{"any"}, []string{"any"}, true},
		"any, no warrant":                      {[]string{"any"}, nil, false},
		"a class, that class":                  {[]string{"class bm"}, []string{"class bm"}, true},
		"a class, a longer one":                {[]string{"class bm"}, []string{"class bm-2"}, false},
		"a prefix, a class in it":              {[]string{"class bm-*"}, []string{"class bm-amd64"}, true},
		"a prefix, two in it":                  {[]string{"class bm-*"}, []string{"class bm-amd64", "class bm-arm64"}, true},
		"a prefix, one in it and one not":      {[]string{"class bm-*"}, []string{"class bm-amd64", "class gpu"}, false},
		"a prefix, any":                        {[]string{"class bm-*"}, []string{"any"}, false},
		"a prefix, no warrant":                 {[]string{"class bm-*"}, nil, false},
		"a prefix, no targets":                 {[]string{"class bm-*"}, []string{}, false},
		"a prefix, a host":                     {[]string{"class bm-*"}, []string{"host SHA256:a"}, false},
		"a prefix, a class in it on a host":    {[]string{"class bm-*"}, []string{"class bm-amd64", "host SHA256:a"}, true},
		"a prefix, a class in it in a cluster": {[]string{"class bm-*"}, []string{"class bm-amd64", "cluster x"}, true},
		"two kinds, both":                      {[]string{"class bm-*", "cluster prod-1"}, []string{"class bm-amd64", "cluster prod-1"}, true},
		"two kinds, one":                       {[]string{"class bm-*", "cluster prod-1"}, []string{"class bm-amd64"}, false},
		"two kinds, another cluster":           {[]string{"class bm-*", "cluster prod-1"}, []string{"class bm-amd64", "cluster prod-2"}, false},
		"two classes, the second":              {[]string{"class a", "class b"}, []string{"class b"}, true},
		"a host, that host":                    {[]string{"host SHA256:a"}, []string{"host SHA256:a"}, true},
		"a host, another":                      {[]string{"host SHA256:a"}, []string{"host SHA256:b"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (trustpolicy.Signer{Targets: tt.signer}).CoversTargets(tt.warrant); got != tt.want {
				t.Errorf("CoversTargets = %v", got)
			}
		})
	}
}

func TestMayReach(t *testing.T) {
	tests := map[string]struct {
		targets        []string
		class, cluster string
		hosts          []string
		want           bool
	}{
		"no limits, nothing known":      {nil, "", "any", nil, true},
		"any, nothing known":            {[]string{"any"}, "", "any", nil, true},
		"a class, nothing known":        {[]string{"class bm-*"}, "", "any", nil, false},
		"a class, that one":             {[]string{"class bm-*"}, "bm-amd64", "any", nil, true},
		"a class, another":              {[]string{"class bm-*"}, "gpu", "any", nil, false},
		"a cluster, that one":           {[]string{"cluster prod-1"}, "", "prod-1", nil, true},
		"a cluster, another":            {[]string{"cluster prod-1"}, "", "prod-2", nil, false},
		"a host, not known":             {[]string{"host SHA256:a"}, "bm", "any", nil, false},
		"a host, one of its keys":       {[]string{"host SHA256:a"}, "bm", "any", []string{"SHA256:b", "SHA256:a"}, true},
		"a host, another":               {[]string{"host SHA256:a"}, "bm", "any", []string{"SHA256:b"}, false},
		"a host of a class, both":       {[]string{"class bm", "host SHA256:a"}, "bm", "any", []string{"SHA256:a"}, true},
		"a host of a class, not its":    {[]string{"class bm", "host SHA256:a"}, "gpu", "any", []string{"SHA256:a"}, false},
		"a class that must be no class": {[]string{"class *"}, "", "any", nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (trustpolicy.Signer{Targets: tt.targets}).MayReach(tt.class, tt.cluster, tt.hosts); got != tt.want {
				t.Errorf("MayReach = %v", got)
			}
		})
	}
}

func TestAnAuthorityIsNotOfferedToHosts(t *testing.T) {
	root, ca := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(ca), "name: signer-0,", "name: signer-0, certAuthority: true,", 1)
	p := testkit.Policy(t, document, root)
	if len(p.TrustedSigners()) != 0 || len(p.FillSigners(testkit.Now())) != 0 {
		t.Error("the authority's own key is offered to hosts")
	}
	if entries := p.SignersOf(ca.PublicKey()); len(entries) != 1 || !entries[0].CertAuthority {
		t.Errorf("entries %+v", entries)
	}
}
