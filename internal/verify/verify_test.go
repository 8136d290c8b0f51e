package verify_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func wantDecision(t *testing.T, d decision.Decision, want decision.Reason, where string) {
	t.Helper()
	if d.Reason != want || d.Allowed() != (want == decision.Verified) {
		t.Fatalf("got %v %s, want %s", d.Outcome, d.Message(), want)
	}
	if want != decision.Verified && d.Where != where {
		t.Errorf("got where %q in %q, want %q", d.Where, d.Message(), where)
	}
	if want != decision.Verified && d.Hint == "" {
		t.Errorf("%q has no hint", d.Message())
	}
}

// author signs profiles in these tests.
type author struct {
	testkit.Signer
	t     *testing.T
	quick bool // does not ask ssh-keygen, which other tests do for the same code
}

func (a author) sign(text string) string {
	if a.quick {
		signature, err := sshsig.Sign(rand.Reader, a.Signer.Signer, script.Namespace, []byte(text))
		if err != nil {
			a.t.Fatal(err)
		}
		return string(signature)
	}
	return testkit.Sign(a.t, a.Signer, script.Namespace, []byte(text))
}

func (a author) profile(name string) *object.JoinProfile {
	p := &object.JoinProfile{Meta: object.Meta{Kind: object.KindJoinProfile, Name: name}, Scripts: map[script.Phase]string{}, Signatures: map[script.Phase]string{}}
	for _, phase := range script.Phases() {
		text := "#!/usr/bin/env bash\nset -euo pipefail\necho " + string(phase) + "\n"
		p.Scripts[phase], p.Signatures[phase] = text, a.sign(text)
	}
	return p
}

func TestJoinProfile(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	a, stranger := author{signer, t, false}, author{testkit.NewSigner(t, "ed25519"), t, false}
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(signer), root), Now: testkit.Now()}
	resign := func(p *object.JoinProfile, phase script.Phase, text string) {
		p.Scripts[phase], p.Signatures[phase] = text, a.sign(text)
	}
	tests := map[string]struct {
		change func(*object.JoinProfile)
		want   decision.Reason
		where  string
		says   string
	}{
		"signed":               {func(*object.JoinProfile) {}, decision.Verified, "", "4 phases"},
		"without an uninstall": {func(p *object.JoinProfile) { delete(p.Scripts, "uninstall"); delete(p.Signatures, "uninstall") }, decision.Verified, "", "3 phases"},
		"signed by two, one known": {func(p *object.JoinProfile) {
			p.Signatures["join"] = stranger.sign(p.Scripts["join"]) + p.Signatures["join"]
		}, decision.Verified, "", ""},
		"a good one and one of git": {func(p *object.JoinProfile) {
			p.Signatures["join"] += testkit.Sign(t, stranger.Signer, "git", []byte(p.Scripts["join"]))
		}, decision.WrongNamespace, "join", "git"},
		"a good one and untouched": {func(p *object.JoinProfile) {
			blob := testkit.NewBlob(t, testkit.NewSigner(t, "sk-ed25519"), script.Namespace, []byte(p.Scripts["join"]))
			blob.Signature[len(blob.Signature)-5] = 0 // the flags byte
			p.Signatures["join"] += blob.Armor()
		}, decision.TouchMissing, "join", "not touched"},
		"unsigned":           {func(p *object.JoinProfile) { clear(p.Signatures) }, decision.Unsigned, "install", "hostwarrant sign"},
		"one phase unsigned": {func(p *object.JoinProfile) { delete(p.Signatures, "leave") }, decision.Unsigned, "leave", ""},
		"uninstall unsigned": {func(p *object.JoinProfile) { delete(p.Signatures, "uninstall") }, decision.Unsigned, "uninstall", ""},
		"wrong key":          {func(p *object.JoinProfile) { p.Signatures["join"] = stranger.sign(p.Scripts["join"]) }, decision.SignerUnknown, "join", stranger.Fingerprint},
		"wrong namespace": {func(p *object.JoinProfile) {
			p.Signatures["join"] = testkit.Sign(t, signer, "git", []byte(p.Scripts["join"]))
		}, decision.WrongNamespace, "join", "git"},
		"a byte changed":           {func(p *object.JoinProfile) { p.Scripts["join"] = strings.Replace(p.Scripts["join"], "echo", "Echo", 1) }, decision.BytesChanged, "join", signer.Fingerprint},
		"final newline lost":       {func(p *object.JoinProfile) { p.Scripts["join"] = strings.TrimSuffix(p.Scripts["join"], "\n") }, decision.NewlineChanged, "join", "only by newlines: the final newline was lost"},
		"CRLF":                     {func(p *object.JoinProfile) { p.Scripts["join"] = strings.ReplaceAll(p.Scripts["join"], "\n", "\r\n") }, decision.NewlineChanged, "join", "only by newlines: line ends became CRLF"},
		"signatures swapped":       {func(p *object.JoinProfile) { p.Signatures["join"] = p.Signatures["leave"] }, decision.BytesChanged, "join", "the signature of the leave script"},
		"a template":               {func(p *object.JoinProfile) { resign(p, "leave", "echo {{ .x }}\n") }, decision.TemplateFound, "leave", "line 1, column 6"},
		"NUL":                      {func(p *object.JoinProfile) { resign(p, "leave", "echo \x00\n") }, decision.Malformed, "leave", "NUL"},
		"a broken warrant":         {func(p *object.JoinProfile) { resign(p, "join", "#!/bin/bash\n#warrant: v1\n") }, decision.WarrantMalformed, "join", ""},
		"armor with leading text":  {func(p *object.JoinProfile) { p.Signatures["join"] = "x\n" + p.Signatures["join"] }, decision.SignatureMalformed, "join", ""},
		"armor with trailing text": {func(p *object.JoinProfile) { p.Signatures["join"] += "x" }, decision.SignatureMalformed, "join", ""},
		"truncated":                {func(p *object.JoinProfile) { p.Signatures["join"] = p.Signatures["join"][:100] }, decision.SignatureMalformed, "join", "sign again"},
		"junk":                     {func(p *object.JoinProfile) { p.Signatures["join"] = strings.Repeat("A", 1<<20) }, decision.SignatureMalformed, "join", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := a.profile("tls")
			tt.change(p)
			d := verify.JoinProfile(s, p)
			wantDecision(t, d, tt.want, tt.where)
			if !strings.Contains(d.Message(), tt.says) {
				t.Errorf("%q does not say %q", d.Message(), tt.says)
			}
		})
	}
}

func TestPhaseWantsItsScript(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(signer), root), Now: testkit.Now()}
	p := author{signer, t, false}.profile("tls")
	wantDecision(t, verify.Phase(s, p, script.Join), decision.Verified, "join")
	wantDecision(t, verify.Phase(s, p, "probe"), decision.Malformed, "probe")
	delete(p.Scripts, script.Uninstall)
	wantDecision(t, verify.Phase(s, p, script.Uninstall), decision.Malformed, "uninstall")
}

func TestPolicyMustBeUsable(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	policy := testkit.Policy(t, testkit.PolicyDocument(signer), root)
	warrants := testkit.Policy(t, strings.Replace(testkit.PolicyDocument(signer), "requireWarrant: false", "requireWarrant: true", 1), root)
	p, h := author{signer, t, false}.profile("tls"), goodHost(signer)
	tests := map[string]struct {
		s    verify.Snapshot
		want decision.Reason
		join decision.Reason
	}{
		"usable":            {verify.Snapshot{Policy: policy, Now: testkit.Now()}, decision.Verified, decision.Verified},
		"none":              {verify.Snapshot{Now: testkit.Now()}, decision.PolicyUnavailable, decision.PolicyUnavailable},
		"zero":              {verify.Snapshot{}, decision.PolicyUnavailable, decision.PolicyUnavailable},
		"a second to go":    {verify.Snapshot{Policy: policy, Now: policy.Expires.Add(-time.Second)}, decision.Verified, decision.Verified},
		"expired":           {verify.Snapshot{Policy: policy, Now: policy.Expires}, decision.PolicyExpired, decision.PolicyExpired},
		"wants warrants":    {verify.Snapshot{Policy: warrants, Now: testkit.Now()}, decision.Verified, decision.WarrantMissing},
		"a policy of zeros": {verify.Snapshot{Policy: &trustpolicy.Policy{}, Now: testkit.Now()}, decision.PolicyExpired, decision.PolicyExpired},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			wantDecision(t, verify.JoinProfile(tt.s, p), tt.join, "install")
			wantDecision(t, verify.Host(tt.s, h, nil), tt.want, "")
		})
	}
}

func TestSigners(t *testing.T) {
	root, signer, second := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	a, b := author{signer, t, false}, author{second, t, false}
	scoped := func(scope string) string {
		return strings.Replace(testkit.PolicyDocument(signer, second), "{name: signer-0, ", "{name: signer-0, "+scope+", ", 1)
	}
	threshold := strings.Replace(testkit.PolicyDocument(signer, second), "thresholds: {}", "thresholds: {join: 2}", 1)
	tests := map[string]struct {
		document string
		join     func(text string) string
		want     decision.Reason
		says     string
	}{
		"in scope":                    {scoped("profiles: [\"tls*\"], phases: [install, join, leave, uninstall]"), a.sign, decision.Verified, ""},
		"another profile":             {scoped("profiles: [web]"), a.sign, decision.SignerScope, "may not vouch for join of this profile; hint: sign with a key whose profiles and phases cover it"},
		"another phase":               {scoped("phases: [install, leave, uninstall]"), a.sign, decision.SignerScope, "may not vouch for join of this profile"},
		"in its term":                 {scoped(`validBefore: "2026-11-30T12:00:01Z"`), a.sign, decision.Verified, ""},
		"after its term":              {scoped(`validBefore: "2026-11-30T12:00:00Z"`), a.sign, decision.Expired, "was valid before 2026-11-30T12:00:00Z"},
		"revoked":                     {strings.Replace(scoped("phases: [join]"), "joinProfiles:", "revoked: {signers: [\""+signer.Fingerprint+"\"]}\njoinProfiles:", 1), a.sign, decision.SignerRevoked, ""},
		"threshold met":               {threshold, func(s string) string { return a.sign(s) + b.sign(s) }, decision.Verified, ""},
		"one of two":                  {threshold, a.sign, decision.ThresholdNotMet, "1 of 2"},
		"one key twice":               {threshold, func(s string) string { return a.sign(s) + a.sign(s) }, decision.ThresholdNotMet, ""},
		"the second over other bytes": {threshold, func(s string) string { return a.sign(s) + b.sign(s+"x") }, decision.ThresholdNotMet, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := verify.Snapshot{Policy: testkit.Policy(t, tt.document, root), Now: testkit.Now()}
			p := b.profile("tls")
			p.Signatures["join"] = tt.join(p.Scripts["join"])
			d := verify.JoinProfile(s, p)
			wantDecision(t, d, tt.want, "join")
			if !strings.Contains(d.Message(), tt.says) {
				t.Errorf("%q does not say %q", d.Message(), tt.says)
			}
		})
	}
}

func TestUntouchedAndWeakSigners(t *testing.T) {
	root, signer, sk := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "sk-ed25519")
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(signer, sk), root), Now: testkit.Now()}
	p := author{signer, t, false}.profile("tls")

	p.Signatures["join"] = testkit.Sign(t, sk, script.Namespace, []byte(p.Scripts["join"]))
	d := verify.JoinProfile(s, p)
	wantDecision(t, d, decision.Verified, "")
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "karpenter-provider-ssh cannot verify") {
		t.Errorf("warnings %q", d.Warnings)
	}
	p.Signatures["join"] = p.Signatures["install"] // any non-sk first block
	if d := verify.Phase(s, p, script.Install); len(d.Warnings) != 0 {
		t.Errorf("warnings %q", d.Warnings)
	}

	blob := testkit.NewBlob(t, sk, script.Namespace, []byte(p.Scripts["join"]))
	blob.Signature[len(blob.Signature)-5] = 0 // the flags byte
	p.Signatures["join"] = blob.Armor()
	wantDecision(t, verify.JoinProfile(s, p), decision.TouchMissing, "join")

	p.Signatures["join"] = testkit.KeygenSign(t, testkit.NewSigner(t, "rsa2048"), script.Namespace, []byte(p.Scripts["join"]))
	wantDecision(t, verify.JoinProfile(s, p), decision.KeyTypeRefused, "join")
}

func goodHost(signers ...testkit.Signer) *object.Host {
	h := &object.Host{
		Meta:    object.Meta{Kind: object.KindHost, Name: "host-a", Namespace: "pool"},
		Address: "10.0.0.1", Port: 22, User: "kpssh", ExecMode: object.ExecVerified, ShimCommand: "/opt/kpssh/kpssh-shim", SecretName: "key",
	}
	for _, s := range signers {
		h.TrustedSigners = append(h.TrustedSigners, s.Line)
	}
	return h
}

func TestHost(t *testing.T) {
	root, a, b, stranger := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "rsa3072"), testkit.NewSigner(t, "ed25519")
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(a, b), root), Now: testkit.Now()}
	raw := goodHost(a)
	raw.ExecMode = "Raw"
	tests := map[string]struct {
		change func(*object.Host)
		old    *object.Host
		want   decision.Reason
		where  string
	}{
		"good":                      {func(*object.Host) {}, nil, decision.Verified, ""},
		"both signers":              {func(h *object.Host) { h.TrustedSigners = []string{b.Line, a.Line + " a comment"} }, nil, decision.Verified, ""},
		"no shimCommand":            {func(h *object.Host) { h.ShimCommand = "" }, nil, decision.Verified, ""},
		"was Raw":                   {func(*object.Host) {}, raw, decision.Verified, ""},
		"Raw":                       {func(h *object.Host) { h.ExecMode = "Raw" }, nil, decision.RawRefused, "spec.execMode"},
		"no execMode":               {func(h *object.Host) { h.ExecMode = "" }, nil, decision.RawRefused, "spec.execMode"},
		"verified in other case":    {func(h *object.Host) { h.ExecMode = "verified" }, nil, decision.RawRefused, "spec.execMode"},
		"Verified to Raw":           {func(h *object.Host) { h.ExecMode = "Raw" }, goodHost(a), decision.ModeDowngrade, "spec.execMode"},
		"Raw to Raw":                {func(h *object.Host) { h.ExecMode = "Raw" }, raw, decision.RawRefused, "spec.execMode"},
		"user root":                 {func(h *object.Host) { h.User = "root" }, nil, decision.UserRefused, "spec.user"},
		"no user":                   {func(h *object.Host) { h.User = "" }, nil, decision.UserRefused, "spec.user"},
		"another port":              {func(h *object.Host) { h.Port = 2222 }, nil, decision.PortRefused, "spec.port"},
		"foreign shimCommand":       {func(h *object.Host) { h.ShimCommand = "/bin/bash" }, nil, decision.ShimCommandRefused, "spec.shimCommand"},
		"shimCommand with argument": {func(h *object.Host) { h.ShimCommand += " x" }, nil, decision.ShimCommandRefused, "spec.shimCommand"},
		"foreign signer":            {func(h *object.Host) { h.TrustedSigners = append(h.TrustedSigners, stranger.Line) }, nil, decision.SignersNotInPolicy, "spec.trustedSigners[1]"},
		"no signers":                {func(h *object.Host) { h.TrustedSigners = nil }, nil, decision.SignersNotInPolicy, "spec.trustedSigners"},
		"a malformed key":           {func(h *object.Host) { h.TrustedSigners[0] = "ssh-ed25519 AAAA!" }, nil, decision.Malformed, "spec.trustedSigners[0]"},
		"a key with options":        {func(h *object.Host) { h.TrustedSigners[0] = "cert-authority " + a.Line }, nil, decision.Malformed, "spec.trustedSigners[0]"},
		"two keys in one":           {func(h *object.Host) { h.TrustedSigners[0] = a.Line + "\n" + stranger.Line }, nil, decision.Malformed, "spec.trustedSigners[0]"},
		"a weak key":                {func(h *object.Host) { h.TrustedSigners[0] = testkit.NewSigner(t, "rsa2048").Line }, nil, decision.KeyTypeRefused, "spec.trustedSigners[0]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := goodHost(a)
			tt.change(h)
			wantDecision(t, verify.Host(s, h, tt.old), tt.want, tt.where)
		})
	}
}

func TestTrustPolicyObject(t *testing.T) {
	root, signer, stranger := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	anchor := verify.Anchor{Roots: testkit.Roots(t, root), ClusterID: "any"}
	object3 := func(by testkit.Signer, document string) *object.TrustPolicy {
		return &object.TrustPolicy{Meta: object.Meta{Kind: object.KindTrustPolicy, Name: "cluster"}, Document: document, Signatures: []string{testkit.Sign(t, by, trustpolicy.Namespace, []byte(document))}}
	}
	good := testkit.PolicyDocument(signer)
	older := strings.Replace(good, "version: 3\n", "version: 2\n", 1)
	elsewhere := strings.Replace(good, "{any: {}}", "{prod-2: {}}", 1)
	current := testkit.Policy(t, good, root)
	named := object3(root, good)
	named.Name = "other"
	unsigned := object3(root, good)
	unsigned.Signatures = nil
	tests := map[string]struct {
		anchor  verify.Anchor
		current *trustpolicy.Policy
		object  *object.TrustPolicy
		want    decision.Reason
		where   string
	}{
		"the first":         {anchor, nil, object3(root, good), decision.Verified, ""},
		"the same again":    {anchor, current, object3(root, good), decision.Verified, ""},
		"unsigned":          {anchor, nil, unsigned, decision.PolicyUnsigned, ""},
		"signed by another": {anchor, nil, object3(stranger, good), decision.PolicyUnsigned, ""},
		"lower version":     {anchor, current, object3(root, older), decision.PolicyRollback, ""},
		"equal version":     {anchor, current, object3(root, good+"# x\n"), decision.PolicyEquivocation, ""},
		"another name":      {anchor, nil, named, decision.PolicyMalformed, "metadata.name"},
		"for any cluster":   {verify.Anchor{Roots: anchor.Roots, ClusterID: "prod-1"}, nil, object3(root, good), decision.PolicyWrongCluster, "clusters"},
		"another cluster":   {verify.Anchor{Roots: anchor.Roots, ClusterID: "prod-1"}, nil, object3(root, elsewhere), decision.PolicyWrongCluster, ""},
		"no anchor":         {verify.Anchor{}, nil, object3(root, good), decision.PolicyUnavailable, ""},
		"malformed":         {anchor, nil, object3(root, good+"x: y\n"), decision.PolicyMalformed, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, d := verify.TrustPolicy(tt.anchor, tt.current, tt.object, testkit.Now())
			if d.Reason != tt.want || d.Allowed() != (tt.want == decision.Verified) || d.Where != tt.where {
				t.Errorf("got %s, want %s at %q", d.Message(), tt.want, tt.where)
			}
			if (p != nil) != d.Allowed() {
				t.Errorf("policy %v with %s", p, d.Message())
			}
		})
	}
}

func TestAPolicyThatNamesTheClustersUIDIsForThatClusterAlone(t *testing.T) {
	const ours, theirs = "5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b", "5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5c"
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	for name, tt := range map[string]struct {
		clusters, id, uid string
		want              decision.Reason
	}{
		"ours":             {"{prod-1: {uid: " + ours + "}}", "prod-1", ours, decision.Verified},
		"another's":        {"{prod-1: {uid: " + ours + "}}", "prod-1", theirs, decision.PolicyWrongCluster},
		"not known here":   {"{prod-1: {uid: " + ours + "}}", "prod-1", "", decision.Verified},
		"none given":       {"{prod-1: {}}", "prod-1", theirs, decision.Verified},
		"any, another's":   {"{any: {uid: " + ours + "}}", "any", theirs, decision.PolicyWrongCluster},
		"beside another's": {"{prod-2: {uid: " + theirs + "}, prod-1: {}}", "prod-1", ours, decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			document := strings.Replace(testkit.PolicyDocument(signer), "{any: {}}", tt.clusters, 1)
			o := &object.TrustPolicy{Meta: object.Meta{Kind: object.KindTrustPolicy, Name: "cluster"}, Document: document, Signatures: []string{testkit.Sign(t, root, trustpolicy.Namespace, []byte(document))}}
			_, d := verify.TrustPolicy(verify.Anchor{Roots: testkit.Roots(t, root), ClusterID: tt.id, ClusterUID: tt.uid}, nil, o, testkit.Now())
			if d.Reason != tt.want || d.Allowed() != (tt.want == decision.Verified) {
				t.Errorf("got %s, want %s", d.Message(), tt.want)
			}
		})
	}
}

func TestFloor(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	anchor := verify.Anchor{Roots: testkit.Roots(t, root), ClusterID: "any"}
	document := testkit.PolicyDocument(signer)
	stored := &object.TrustPolicy{Meta: object.Meta{Kind: object.KindTrustPolicy, Name: "cluster"}, Document: document, Signatures: []string{testkit.Sign(t, root, trustpolicy.Namespace, []byte(document))}}
	late := testkit.Now().AddDate(1, 0, 0)

	_, expired := verify.TrustPolicy(anchor, nil, stored, late)
	floor := verify.Floor(anchor, stored, expired)
	if floor == nil || floor.Version != 3 {
		t.Fatalf("floor of an expired policy: %+v", floor)
	}
	wantDecision(t, verify.Host(verify.Snapshot{Policy: floor, Now: late}, goodHost(signer), nil), decision.PolicyExpired, "")

	_, elsewhere := verify.TrustPolicy(verify.Anchor{Roots: anchor.Roots, ClusterID: "prod-1"}, nil, stored, late)
	if p := verify.Floor(anchor, stored, elsewhere); p != nil {
		t.Errorf("a policy refused as %s is a floor: %+v", elsewhere.Reason, p)
	}
	if p := verify.Floor(anchor, &object.TrustPolicy{Document: document}, expired); p != nil {
		t.Errorf("an unsigned policy is a floor: %+v", p)
	}
}
