package trustpolicy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func reasonOf(t *testing.T, err error) decision.Reason {
	t.Helper()
	if err == nil {
		return decision.Verified
	}
	return decision.From(err).Reason
}

func wantReason(t *testing.T, err error, want decision.Reason) {
	t.Helper()
	if got := reasonOf(t, err); got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func TestVerify(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	document := testkit.PolicyDocument(signer)
	p := testkit.Policy(t, document, root)
	if p.Version != 3 || p.RootVersion != 1 || p.Mode(testkit.Now()) != trustpolicy.Enforce || p.Digest != trustpolicy.Digest([]byte(document)) {
		t.Errorf("policy %+v", p)
	}
	if diff := cmp.Diff([]string{signer.Line}, p.TrustedSigners()); diff != "" {
		t.Errorf("trusted signers:\n%s", diff)
	}
	if diff := cmp.Diff(map[script.Phase]int{"install": 1, "join": 1, "leave": 1, "uninstall": 1}, p.Thresholds); diff != "" {
		t.Errorf("thresholds:\n%s", diff)
	}
	every := []string{"*"}
	space := trustpolicy.HostNamespace{Classes: []string{"default", "small", "large", "bm"}, NodeNames: every}
	hosts := trustpolicy.Hosts{
		Users: []string{"kpssh"}, Ports: []int{22}, ShimCommands: []string{"/opt/kpssh/kpssh-shim"},
		Profiles:   map[string][]string{"default": every, "small": every, "large": every, "bm": every},
		Namespaces: map[string]trustpolicy.HostNamespace{"default": space, "pool": space},
	}
	if diff := cmp.Diff(hosts, p.Hosts); diff != "" {
		t.Errorf("hosts:\n%s", diff)
	}
}

func TestRootSignatures(t *testing.T) {
	a, b, c := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	stranger := testkit.NewSigner(t, "ed25519")
	document := []byte(testkit.PolicyDocument(a))
	sign := func(s testkit.Signer) string { return testkit.Sign(t, s, trustpolicy.Namespace, document) }
	twoOfThree := &trustpolicy.Roots{Version: 1, Threshold: 2, Keys: []ssh.PublicKey{a.PublicKey(), b.PublicKey(), c.PublicKey()}}
	tests := map[string]struct {
		roots      *trustpolicy.Roots
		signatures []string
		want       decision.Reason
	}{
		"two of three":                 {twoOfThree, []string{sign(a), sign(c)}, decision.Verified},
		"all three":                    {twoOfThree, []string{sign(c), sign(b), sign(a)}, decision.Verified},
		"two and a stranger":           {twoOfThree, []string{sign(stranger), sign(a), sign(b)}, decision.Verified},
		"one":                          {twoOfThree, []string{sign(a)}, decision.PolicyUnsigned},
		"one and a stranger":           {twoOfThree, []string{sign(a), sign(stranger)}, decision.PolicyUnsigned},
		"the same key twice":           {twoOfThree, []string{sign(a), sign(a)}, decision.PolicyUnsigned},
		"none":                         {twoOfThree, nil, decision.PolicyUnsigned},
		"an empty signature":           {twoOfThree, []string{""}, decision.SignatureMalformed},
		"two blocks in one":            {twoOfThree, []string{sign(a) + sign(b)}, decision.SignatureMalformed},
		"another namespace":            {twoOfThree, []string{testkit.Sign(t, a, "kpssh", document), sign(b)}, decision.WrongNamespace},
		"a root over other bytes":      {twoOfThree, []string{testkit.Sign(t, a, trustpolicy.Namespace, append(document, '#')), sign(b)}, decision.SignatureInvalid},
		"a root over a lost newline":   {twoOfThree, []string{testkit.Sign(t, a, trustpolicy.Namespace, append(document, '\n')), sign(b)}, decision.NewlineChanged},
		"seventeen":                    {twoOfThree, slicesRepeat(sign(a), 17), decision.PolicyMalformed},
		"no roots":                     {nil, []string{sign(a)}, decision.PolicyUnavailable},
		"roots with threshold 0":       {&trustpolicy.Roots{Version: 1, Keys: twoOfThree.Keys}, []string{sign(a), sign(b)}, decision.PolicyUnavailable},
		"roots with too high a number": {&trustpolicy.Roots{Version: 1, Threshold: 4, Keys: twoOfThree.Keys}, []string{sign(a), sign(b)}, decision.PolicyUnavailable},
		"roots of another version":     {&trustpolicy.Roots{Version: 2, Threshold: 2, Keys: twoOfThree.Keys}, []string{sign(a), sign(b)}, decision.PolicyUnsigned},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := trustpolicy.Verify(trustpolicy.Signed{Document: document, Signatures: tt.signatures}, tt.roots, "any", testkit.Now())
			wantReason(t, err, tt.want)
			if (p != nil) != (tt.want == decision.Verified) {
				t.Errorf("policy %v with %v", p, err)
			}
		})
	}
}

func slicesRepeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestDocument(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	good := testkit.PolicyDocument(signer)
	roots := testkit.Roots(t, root)
	entry := "{name: signer-0, key: \"" + signer.Line + "\"}"
	digest := strings.Repeat("ab", 32)
	tests := map[string]struct {
		old, new string
		want     decision.Reason
	}{
		"as it is":                       {"", "", decision.Verified},
		"a named cluster":                {"{any: {}}", "{any: {}, prod-1: {endpoints: [\"https://10.0.0.5:6443\"], caSHA256: [\"" + digest + "\"]}}", decision.Verified},
		"warn with an end":               {"mode: enforce", "mode: warn\nwarnUntil: \"2026-12-29T00:00:00Z\"", decision.Verified},
		"a scope":                        {entry, strings.TrimSuffix(entry, "}") + ", profiles: [\"tls-*\", web], phases: [join], validBefore: \"2027-01-01T00:00:00Z\"}", decision.Verified},
		"a threshold":                    {"thresholds: {}", "thresholds: {join: 1}", decision.Verified},
		"a revoked key":                  {"joinProfiles:", "revoked: {signers: [\"" + signer.Fingerprint + "\"]}\njoinProfiles:", decision.Verified},
		"not YAML":                       {"mode: enforce", "mode: [", decision.PolicyMalformed},
		"a list":                         {good, "- a\n", decision.PolicyMalformed},
		"nothing":                        {good, "\n", decision.PolicyMalformed},
		"an unknown field":               {"mode: enforce", "mode: enforce\nspeed: 3", decision.PolicyMalformed},
		"an unknown field deep down":     {"requireWarrant", "requireWarrants", decision.PolicyMalformed},
		"a rule of a later version":      {"mode: enforce", "mode: enforce\nnotaries: [a]", decision.PolicyMalformed},
		"a repeated field":               {"mode: enforce", "mode: enforce\nmode: enforce", decision.PolicyMalformed},
		"a field in other case":          {"mode: enforce", "Mode: enforce", decision.PolicyMalformed},
		"a second document":              {"joinProfiles:", "---\njoinProfiles:", decision.PolicyMalformed},
		"an anchor":                      {"mode: enforce", "mode: &m enforce", decision.PolicyMalformed},
		"an alias":                       {"thresholds: {}", "thresholds: *t", decision.PolicyMalformed},
		"a merge":                        {"thresholds: {}", "<<: {thresholds: {}}", decision.PolicyMalformed},
		"a tag":                          {"mode: enforce", "mode: !!str enforce", decision.PolicyMalformed},
		"no version":                     {"version: 3\n", "", decision.PolicyMalformed},
		"version 0":                      {"version: 3\n", "version: 0\n", decision.PolicyMalformed},
		"version -1":                     {"version: 3\n", "version: -1\n", decision.PolicyMalformed},
		"a version that is a text":       {"version: 3\n", "version: \"3\"\n", decision.PolicyMalformed},
		"version of 15 digits":           {"version: 3\n", "version: 999999999999999\n", decision.Verified},
		"version of 16 digits":           {"version: 3\n", "version: 1000000000000000\n", decision.PolicyMalformed},
		"the largest version":            {"version: 3\n", "version: 9223372036854775807\n", decision.PolicyMalformed},
		"rootVersion of 16 digits":       {"rootVersion: 1\n", "rootVersion: 1000000000000000\n", decision.PolicyMalformed},
		"no rootVersion":                 {"rootVersion: 1\n", "", decision.PolicyMalformed},
		"another rootVersion":            {"rootVersion: 1\n", "rootVersion: 2\n", decision.PolicyUnsigned},
		"no clusters":                    {"clusters: {any: {}}\n", "", decision.PolicyMalformed},
		"empty clusters":                 {"{any: {}}", "{}", decision.PolicyMalformed},
		"a bad cluster id":               {"{any: {}}", "{any: {}, Prod: {}}", decision.PolicyMalformed},
		"a bad digest":                   {"{any: {}}", "{any: {caSHA256: [\"" + strings.ToUpper(digest) + "\"]}}", decision.PolicyMalformed},
		"a short digest":                 {"{any: {}}", "{any: {caSHA256: [abcd]}}", decision.PolicyMalformed},
		"an endpoint without TLS":        {"{any: {}}", "{any: {endpoints: [\"http://10.0.0.5\"]}}", decision.PolicyMalformed},
		"another cluster":                {"{any: {}}", "{prod-1: {}}", decision.PolicyWrongCluster},
		"no issued":                      {"issued: \"2026-11-29T00:00:00Z\"\n", "", decision.PolicyMalformed},
		"issued with a zone":             {"2026-11-29T00:00:00Z", "2026-11-29T00:00:00+01:00", decision.PolicyMalformed},
		"issued with half a second":      {"2026-11-29T00:00:00Z", "2026-11-29T00:00:00.5Z", decision.PolicyMalformed},
		"issued with a comma":            {"2026-11-29T00:00:00Z", "2026-11-29T00:00:00,5Z", decision.PolicyMalformed},
		"issued with no fraction":        {"2026-11-29T00:00:00Z", "2026-11-29T00:00:00.0Z", decision.PolicyMalformed},
		"issued on an hour of one digit": {"2026-11-29T00:00:00Z", "2026-11-29T0:00:00Z", decision.PolicyMalformed},
		"issued in lower case":           {"2026-11-29T00:00:00Z", "2026-11-29T00:00:00z", decision.PolicyMalformed},
		"issued tomorrow":                {"2026-11-29T00:00:00Z", "2026-12-01T11:59:59Z", decision.Verified},
		"issued after tomorrow":          {"2026-11-29T00:00:00Z", "2026-12-01T12:00:01Z", decision.NotYetValid},
		"expires before issued":          {"2027-05-29T00:00:00Z", "2026-11-28T00:00:00Z", decision.PolicyMalformed},
		"expired a second ago":           {"2027-05-29T00:00:00Z", "2026-11-30T12:00:00Z", decision.PolicyExpired},
		"expires in a second":            {"2027-05-29T00:00:00Z", "2026-11-30T12:00:01Z", decision.Verified},
		"no mode":                        {"mode: enforce\n", "", decision.PolicyMalformed},
		"an unknown mode":                {"mode: enforce", "mode: audit", decision.PolicyMalformed},
		"an unknown mode with an end":    {"mode: enforce", "mode: audit\nwarnUntil: \"2026-12-29T00:00:00Z\"", decision.PolicyMalformed},
		"warn without an end":            {"mode: enforce", "mode: warn", decision.PolicyMalformed},
		"warn for 31 days":               {"mode: enforce", "mode: warn\nwarnUntil: \"2026-12-30T00:00:00Z\"", decision.PolicyMalformed},
		"enforce with an end":            {"mode: enforce", "mode: enforce\nwarnUntil: \"2026-12-01T00:00:00Z\"", decision.PolicyMalformed},
		"threshold 0":                    {"thresholds: {}", "thresholds: {join: 0}", decision.PolicyMalformed},
		"threshold above the keys":       {"thresholds: {}", "thresholds: {join: 2}", decision.PolicyMalformed},
		"threshold of an unknown phase":  {"thresholds: {}", "thresholds: {joins: 1}", decision.PolicyMalformed},
		"threshold 2 by one key twice":   {"thresholds: {}\n  signers:\n", "thresholds: {join: 2}\n  signers:\n  - {name: again, key: \"" + signer.Line + " again\"}\n", decision.PolicyMalformed},
		"a signer without a name":        {"name: signer-0, ", "", decision.PolicyMalformed},
		"a signer without a key":         {", key: \"" + signer.Line + "\"", "", decision.PolicyMalformed},
		"a signer of a weak key":         {signer.Line, testkit.NewSigner(t, "rsa2048").Line, decision.PolicyMalformed},
		"a signer of an unknown phase":   {entry, strings.TrimSuffix(entry, "}") + ", phases: [probe]}", decision.PolicyMalformed},
		"a signer of no phase":           {entry, strings.TrimSuffix(entry, "}") + ", phases: []}", decision.PolicyMalformed},
		"a signer of no profile":         {entry, strings.TrimSuffix(entry, "}") + ", profiles: []}", decision.PolicyMalformed},
		"profiles without a value":       {entry, strings.TrimSuffix(entry, "}") + ", profiles: }", decision.PolicyMalformed},
		"phases that are null":           {entry, strings.TrimSuffix(entry, "}") + ", phases: null}", decision.PolicyMalformed},
		"validBefore that is ~":          {entry, strings.TrimSuffix(entry, "}") + ", validBefore: ~}", decision.PolicyMalformed},
		"requireWarrant without a value": {"requireWarrant: false", "requireWarrant:", decision.PolicyMalformed},
		"revocations without a value":    {"joinProfiles:", "revoked:\njoinProfiles:", decision.PolicyMalformed},
		"a pattern with * inside":        {entry, strings.TrimSuffix(entry, "}") + ", profiles: [\"a*b\"]}", decision.PolicyMalformed},
		"an empty pattern":               {entry, strings.TrimSuffix(entry, "}") + ", profiles: [\"\"]}", decision.PolicyMalformed},
		"a bad validBefore":              {entry, strings.TrimSuffix(entry, "}") + ", validBefore: \"2027\"}", decision.PolicyMalformed},
		"an empty validBefore":           {entry, strings.TrimSuffix(entry, "}") + ", validBefore: \"\"}", decision.PolicyMalformed},
		"an empty validBefore in '":      {entry, strings.TrimSuffix(entry, "}") + ", validBefore: ''}", decision.PolicyMalformed},
		"an empty validBefore, a block":  {"maxValidity: 90d", "maxValidity: |\n  unguarded: []", decision.PolicyMalformed},
		"an empty maxValidity":           {"90d", "\"\"", decision.PolicyMalformed},
		"an empty warnUntil":             {"mode: enforce", "mode: enforce\nwarnUntil: \"\"", decision.PolicyMalformed},
		"an empty uid":                   {"{any: {}}", "{any: {uid: \"\"}}", decision.PolicyMalformed},
		"an empty hostCA":                {"users: [kpssh]", "users: [kpssh]\n    namespaces: {pool: {hostCA: \"\"}}", decision.PolicyMalformed},
		"a reset with an empty slot":     {"joinProfiles:", "resets: [{profile: x, slot: \"\", serial: 1, digest: \"sha256:" + digest + "\"}]\njoinProfiles:", decision.PolicyMalformed},
		"and the same without":           {"joinProfiles:", "resets: [{profile: x, serial: 1, digest: \"sha256:" + digest + "\"}]\njoinProfiles:", decision.Verified},
		"a print with another digit":     {"joinProfiles:", "revoked: {signers: [\"" + otherDigit(signer.Fingerprint) + "\"]}\njoinProfiles:", decision.PolicyMalformed},
		"a host with another digit":      {entry, strings.TrimSuffix(entry, "}") + ", targets: [\"host " + otherDigit(signer.Fingerprint) + "\"]}", decision.PolicyMalformed},
		"a host":                         {entry, strings.TrimSuffix(entry, "}") + ", targets: [\"host " + signer.Fingerprint + "\"]}", decision.Verified},
		"a revocation that is no print":  {"joinProfiles:", "revoked: {signers: [\"MD5:aa\"]}\njoinProfiles:", decision.PolicyMalformed},
		"an empty user":                  {"users: [kpssh]", "users: [\"\"]", decision.PolicyMalformed},
		"an empty shim command":          {"[/opt/kpssh/kpssh-shim]", "[\"\"]", decision.PolicyMalformed},
		"port 0":                         {"ports: [22]", "ports: [0]", decision.PolicyMalformed},
		"port 65536":                     {"ports: [22]", "ports: [65536]", decision.PolicyMalformed},
		"a validity without a unit":      {"90d", "90", decision.PolicyMalformed},
		"a validity of 9999 days":        {"90d", "9999d", decision.PolicyMalformed},
		"a validity of 3650 days":        {"90d", "3650d", decision.Verified},
		"a validity with a sign":         {"90d", "+90d", decision.PolicyMalformed},
		"a validity with a leading 0":    {"90d", "090d", decision.PolicyMalformed},
		"a validity of nothing":          {"90d", "0d", decision.PolicyMalformed},
		"a document of more than 512 KB": {"mode: enforce", "mode: enforce\n#" + strings.Repeat("x", trustpolicy.MaxDocument), decision.PolicyMalformed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, tt.old) {
				t.Fatalf("no %q in the document", tt.old)
			}
			document := strings.Replace(good, tt.old, tt.new, 1)
			signed := trustpolicy.Signed{Document: []byte(document), Signatures: []string{testkit.Sign(t, root, trustpolicy.Namespace, []byte(document))}}
			_, err := trustpolicy.Verify(signed, roots, "any", testkit.Now())
			wantReason(t, err, tt.want)
		})
	}
}

// otherDigit gives a fingerprint that decodes to the same bytes where the decoder is lax, and names no key.
func otherDigit(fingerprint string) string {
	return fingerprint[:len(fingerprint)-1] + string(fingerprint[len(fingerprint)-1]+1)
}

func TestForCluster(t *testing.T) {
	root := testkit.NewSigner(t, "ed25519")
	named := "clusters: {prod-1: {}}"
	anywhere := "clusters: {any: {}}"
	warn := "mode: warn\nwarnUntil: \"2026-12-10T00:00:00Z\""
	tests := map[string]struct {
		clusters, mode, id string
		want               decision.Reason
	}{
		"named, here":                 {named, "mode: enforce", "prod-1", decision.Verified},
		"named, elsewhere":            {named, "mode: enforce", "prod-2", decision.PolicyWrongCluster},
		"named, elsewhere, warn":      {named, warn, "prod-2", decision.PolicyWrongCluster},
		"any, nowhere, warn":          {anywhere, warn, "", decision.PolicyWrongCluster},
		"named, nowhere":              {named, "mode: enforce", "", decision.PolicyWrongCluster},
		"named, anchor says any":      {named, "mode: enforce", "any", decision.PolicyWrongCluster},
		"any, anchor says any":        {anywhere, "mode: enforce", "any", decision.Verified},
		"any, named anchor, enforce":  {anywhere, "mode: enforce", "prod-1", decision.PolicyWrongCluster},
		"any, named anchor, warn":     {anywhere, warn, "prod-1", decision.Verified},
		"any, no anchor":              {anywhere, "mode: enforce", "", decision.PolicyWrongCluster},
		"any beside the name, named":  {"clusters: {any: {}, prod-1: {}}", "mode: enforce", "prod-1", decision.Verified},
		"any beside a name, another":  {"clusters: {any: {}, prod-1: {}}", "mode: enforce", "prod-2", decision.PolicyWrongCluster},
		"an id that is not quite one": {named, "mode: enforce", "prod-1 ", decision.PolicyWrongCluster},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			document := strings.Replace(strings.Replace(testkit.PolicyDocument(root), anywhere, tt.clusters, 1), "mode: enforce", tt.mode, 1)
			signed := trustpolicy.Signed{Document: []byte(document), Signatures: []string{testkit.Sign(t, root, trustpolicy.Namespace, []byte(document))}}
			_, err := trustpolicy.Verify(signed, testkit.Roots(t, root), tt.id, testkit.Now())
			wantReason(t, err, tt.want)
		})
	}
}

func TestAPolicyForAnyClusterEndsWithItsTrialWhereTheClusterHasAName(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	until := time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)
	document := []byte(strings.Replace(testkit.PolicyDocument(signer), "mode: enforce", "mode: warn\nwarnUntil: \"2026-12-02T00:00:00Z\"", 1))
	signed := trustpolicy.Signed{Document: document, Signatures: []string{testkit.Sign(t, root, trustpolicy.Namespace, document)}}
	for id, ends := range map[string]bool{"prod-1": true, "any": false} {
		p, err := trustpolicy.Verify(signed, testkit.Roots(t, root), id, testkit.Now())
		if err != nil {
			t.Fatal(err)
		}
		if p.Expired(until.Add(-time.Second)) || p.Expired(until) != ends {
			t.Errorf("in cluster %s it expires at %s", id, p.Expires)
		}
	}
}

func TestModeEndsByItself(t *testing.T) {
	root := testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(root), "mode: enforce", "mode: warn\nwarnUntil: \"2026-12-10T00:00:00Z\"", 1)
	p := testkit.Policy(t, document, root)
	end := time.Date(2026, 12, 10, 0, 0, 0, 0, time.UTC)
	if got := p.Mode(end.Add(-time.Second)); got != trustpolicy.Warn {
		t.Errorf("a second before the end: %s", got)
	}
	if got := p.Mode(end); got != trustpolicy.Enforce {
		t.Errorf("at the end: %s", got)
	}
	if p.Expired(p.Expires.Add(-time.Second)) || !p.Expired(p.Expires) {
		t.Error("expiry is not at the second it names")
	}
}

func TestSupersedes(t *testing.T) {
	root := testkit.NewSigner(t, "ed25519")
	version := func(v, comment string) *trustpolicy.Policy {
		return testkit.Policy(t, strings.Replace(testkit.PolicyDocument(root), "version: 3\n", "version: "+v+comment+"\n", 1), root)
	}
	current := version("3", "")
	tests := map[string]struct {
		current, next *trustpolicy.Policy
		want          decision.Reason
	}{
		"the first":                     {nil, version("3000", ""), decision.Verified},
		"the next":                      {current, version("4", ""), decision.Verified},
		"the same bytes":                {current, version("3", ""), decision.Verified},
		"the same version, other bytes": {current, version("3", " # x"), decision.PolicyEquivocation},
		"an older":                      {current, version("2", ""), decision.PolicyRollback},
		"1000 above":                    {current, version("1003", ""), decision.Verified},
		"1001 above":                    {current, version("1004", ""), decision.SerialJump},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { wantReason(t, tt.next.Supersedes(tt.current), tt.want) })
	}
}

func TestSignerScope(t *testing.T) {
	tests := map[string]struct {
		signer  trustpolicy.Signer
		profile string
		phase   script.Phase
		want    bool
	}{
		"everything":        {trustpolicy.Signer{}, "tls", "join", true},
		"a name":            {trustpolicy.Signer{Profiles: []string{"web", "tls"}}, "tls", "join", true},
		"another name":      {trustpolicy.Signer{Profiles: []string{"tls"}}, "tls-2", "join", false},
		"a prefix":          {trustpolicy.Signer{Profiles: []string{"tls-*"}}, "tls-2", "join", true},
		"the prefix itself": {trustpolicy.Signer{Profiles: []string{"tls-*"}}, "tls-", "join", true},
		"not the prefix":    {trustpolicy.Signer{Profiles: []string{"tls-*"}}, "tls", "join", false},
		"all":               {trustpolicy.Signer{Profiles: []string{"*"}}, "x", "join", true},
		"a phase":           {trustpolicy.Signer{Phases: []script.Phase{"join"}}, "x", "join", true},
		"another phase":     {trustpolicy.Signer{Phases: []script.Phase{"join"}}, "x", "leave", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.signer.Covers(tt.profile, tt.phase); got != tt.want {
				t.Errorf("Covers = %v", got)
			}
		})
	}
}

func TestFillSignersLeavesOutWhoseTermHasEnded(t *testing.T) {
	root, a, b := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	until := testkit.Now().Add(time.Hour)
	ends := func(s testkit.Signer) string {
		return s.Line + "\", validBefore: \"" + until.UTC().Format(time.RFC3339) + "\""
	}
	document := testkit.PolicyDocument(a, b, b)
	document = strings.Replace(document, a.Line+"\"", ends(a), 1)
	document = strings.Replace(document, b.Line+"\"", ends(b), 1) // b has another entry, without a term
	p := testkit.Policy(t, document, root)
	for when, want := range map[time.Time][]string{until.Add(-time.Second): {a.Line, b.Line}, until: {b.Line}} {
		if diff := cmp.Diff(want, p.FillSigners(when)); diff != "" {
			t.Errorf("at %s:\n%s", when, diff)
		}
	}
	if diff := cmp.Diff([]string{a.Line, b.Line}, p.TrustedSigners()); diff != "" {
		t.Errorf("a list that is there already:\n%s", diff)
	}
}

func TestTrustedSignersLeavesRevokedOut(t *testing.T) {
	root, a, b := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(a, b, a), "joinProfiles:", "revoked: {signers: [\""+b.Fingerprint+"\"]}\njoinProfiles:", 1)
	p := testkit.Policy(t, document, root)
	if diff := cmp.Diff([]string{a.Line}, p.TrustedSigners()); diff != "" {
		t.Errorf("trusted signers:\n%s", diff)
	}
	if !p.Revoked(b.PublicKey()) || p.Revoked(a.PublicKey()) {
		t.Error("Revoked is wrong")
	}
	if n := len(p.SignersOf(a.PublicKey())); n != 2 {
		t.Errorf("%d entries of a, want 2", n)
	}
}

func TestParseRoots(t *testing.T) {
	a, b := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	tests := map[string]struct {
		text string
		keys int
		want decision.Reason
	}{
		"one":                       {a.Line, 1, decision.Verified},
		"two and comments":          {"# roots\n" + a.Line + " alice\n\n" + b.Line + "\r\n", 2, decision.Verified},
		"one key listed twice":      {a.Line + " alice\n" + a.Line + " bob\n", 1, decision.Verified},
		"none":                      {"# nothing\n", 0, decision.PolicyMalformed},
		"a line that is no key":     {a.Line + "\nhello\n", 0, decision.PolicyMalformed},
		"a weak key":                {testkit.NewSigner(t, "rsa2048").Line, 0, decision.PolicyMalformed},
		"allowed_signers":           {"root " + a.Line, 0, decision.PolicyMalformed},
		"a roots statement, unread": {"hostwarrant-statement: v1 roots\n", 0, decision.PolicyMalformed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			roots, err := trustpolicy.ParseRoots([]byte(tt.text))
			wantReason(t, err, tt.want)
			if err == nil && (len(roots.Keys) != tt.keys || roots.Threshold != tt.keys || roots.Version != 1) {
				t.Errorf("roots %+v", roots)
			}
		})
	}
	var many []string
	for range 17 {
		many = append(many, testkit.NewSigner(t, "ed25519").Line)
	}
	_, err := trustpolicy.ParseRoots([]byte(strings.Join(many, "\n")))
	wantReason(t, err, decision.PolicyMalformed)
}
