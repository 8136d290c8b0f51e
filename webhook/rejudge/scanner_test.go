package rejudge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// cluster is a small stand-in for everything that a Scanner talks to.
type cluster struct {
	*Scanner
	t            *testing.T
	root, signer testkit.Signer
	policy       *trustpolicy.Policy
	now          time.Time
	objects      map[Key]json.RawMessage
	marks        map[string]ledger.Mark
	lost         bool
	said         []string
	conditions   map[string]string
	reports      int
	lists        int
	registry     *prometheus.Registry
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		t: t, root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519"), now: testkit.Now(),
		objects: map[Key]json.RawMessage{}, marks: map[string]ledger.Mark{}, conditions: map[string]string{},
		registry: prometheus.NewRegistry(),
	}
	counters, err := NewMetrics(c.registry)
	if err != nil {
		t.Fatal(err)
	}
	c.signedBy(c.signer)
	c.Scanner = (&Scanner{
		Source: c, Trust: c, Ledger: c, Events: c, Conditions: c, Report: c, Hosts: c, Metrics: counters,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: func() time.Time { return c.now }, Interval: time.Hour,
	}).Init()
	return c
}

// signedBy puts a policy in force that names these signers.
func (c *cluster) signedBy(signers ...testkit.Signer) {
	c.t.Helper()
	version := 3
	if c.policy != nil {
		version = c.policy.Version + 1
	}
	document := strings.Replace(testkit.PolicyDocument(signers...), "version: 3", fmt.Sprint("version: ", version), 1)
	c.policy = testkit.Policy(c.t, document, c.root)
}

// pageOf is how many objects a test's page holds.
const pageOf = 3

func (c *cluster) List(_ context.Context, k Kind, next string) (Page, error) {
	var keys []Key
	for key := range c.objects {
		if key.Kind == k.Kind {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return Page{}, ErrNotServed
	}
	c.lists++
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	start := len(next) // the tests' tokens are as long as where they continue
	end := min(start+pageOf, len(keys))
	p := Page{}
	for _, key := range keys[start:end] {
		p.Items = append(p.Items, c.objects[key])
	}
	if end < len(keys) {
		p.Next = strings.Repeat("x", end)
	}
	return p, nil
}

func (c *cluster) Get(_ context.Context, k Kind, namespace, name string) (json.RawMessage, error) {
	return c.objects[Key{k.Kind, namespace, name}], nil
}

func (c *cluster) Snapshot(now time.Time) (verify.Snapshot, error) {
	return verify.Snapshot{Policy: c.policy, ClusterID: "any", Now: now, Stored: c}, nil
}
func (c *cluster) Chain(context.Context) ([]statement.Signed, error) { return nil, nil }

func (c *cluster) Mark(profile string) (ledger.Mark, bool) {
	m, ok := c.marks[profile]
	return m, ok
}
func (c *cluster) Slot(ledger.Slot) (ledger.SlotMark, bool) { return ledger.SlotMark{}, false }
func (c *cluster) Bundle(string, string) bool               { return false }
func (c *cluster) ResetUsed(string) bool                    { return false }
func (c *cluster) Load(context.Context) (int, int, error)   { return 0, 0, nil }
func (c *cluster) Lost() bool                               { return c.lost }
func (c *cluster) Writes() int                              { return 0 }
func (c *cluster) Ran(_ context.Context, p string, n int64) error {
	c.say("ran %s %d", p, n)
	return nil
}

func (c *cluster) RecordPolicy(context.Context, *trustpolicy.Policy, []statement.Signed, time.Time) error {
	return nil
}

func (c *cluster) Record(_ context.Context, s verify.Snapshot, p *object.JoinProfile) error {
	if m, ok := verify.Recordable(s, p); ok {
		c.marks[p.Name] = m
	}
	return nil
}

func (c *cluster) say(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func (c *cluster) Normal(_ context.Context, about corev1.ObjectReference, reason, _ string) bool {
	c.say("Normal %s %s/%s", reason, about.Kind, about.Name)
	return true
}

func (c *cluster) Warning(_ context.Context, about corev1.ObjectReference, reason, _ string) bool {
	c.say("Warning %s %s/%s", reason, about.Kind, about.Name)
	return true
}

func (c *cluster) Set(_ context.Context, condition metav1.Condition) (changed, wrote bool, err error) {
	state := string(condition.Status) + " " + condition.Reason
	changed = c.conditions[condition.Type] != state
	c.conditions[condition.Type] = state
	return changed, changed, nil
}

func (c *cluster) Write(context.Context, []Verdict, time.Time) (bool, error) {
	c.reports++
	return false, nil
}

func (c *cluster) Refresh(context.Context, verify.Snapshot, json.RawMessage, *object.Host) (bool, error) {
	return false, nil
}

// What is stored beside the object that is judged.
func (c *cluster) Profile(name string) *verify.ProfileFacts {
	if p, err := object.ParseJoinProfile(c.objects[Key{Kind: object.KindJoinProfile, Name: name}]); err == nil {
		return verify.FactsOf(p)
	}
	return nil
}

func (c *cluster) Host(namespace, name string) *object.Host {
	h, err := object.ParseHost(c.objects[Key{object.KindHost, namespace, name}])
	if err != nil {
		return nil
	}
	return h
}

func (c *cluster) Hosts() []*object.Host {
	var all []*object.Host
	for key, raw := range c.objects {
		if key.Kind == object.KindHost {
			if h, err := object.ParseHost(raw); err == nil {
				all = append(all, h)
			}
		}
	}
	return all
}
func (c *cluster) HostStatements() []*object.HostStatement { return nil }
func (c *cluster) NodeProviderID(string) (string, bool)    { return "", false }
func (c *cluster) HostRuns() []*object.HostRun             { return nil }
func (c *cluster) HostRunsFor(string) []*object.HostRun    { return nil }
func (c *cluster) NodeClasses() []*object.NodeClass {
	var all []*object.NodeClass
	for key, raw := range c.objects {
		if key.Kind == object.KindNodeClass {
			if class, err := object.ParseNodeClass(raw); err == nil {
				all = append(all, class)
			}
		}
	}
	return all
}

func (c *cluster) put(kind, namespace, name, uid string, generation int, labels map[string]string, spec any) {
	c.t.Helper()
	group := object.GroupKPSSH + "/v1beta1"
	if kind == object.KindHostRun {
		group = object.GroupHostwarrant + "/v1alpha1"
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": group, "kind": kind, "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": namespace, "uid": uid, "generation": generation, "labels": labels},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.objects[Key{kind, namespace, name}] = raw
}

// profile stores a signed profile whose warrants end at notAfter.
func (c *cluster) profile(name, uid string, serial int, notAfter time.Time, s testkit.Signer) {
	c.t.Helper()
	scripts, signatures := map[string]string{}, map[string]string{}
	for _, phase := range []string{"install", "join", "leave"} {
		scripts[phase] = fmt.Sprintf("#!/bin/sh\n#warrant: v1\n#warrant: profile %s\n#warrant: phase %s\n#warrant: serial %d\n#warrant: not-after %d\n#warrant: target any\n#warrant: end\necho\n", name, phase, serial, notAfter.Unix())
		signatures[phase] = testkit.Sign(c.t, s, "kpssh", []byte(scripts[phase]))
	}
	c.put(object.KindJoinProfile, "", name, uid, 1, nil, map[string]any{"version": fmt.Sprint(serial), "scripts": scripts, "signatures": signatures})
}

func (c *cluster) host(name, uid, mode string, generation int, labels map[string]string) {
	c.put(object.KindHost, "pool", name, uid, generation, labels, map[string]any{
		"address": "192.0.2.1", "user": "kpssh", "execMode": mode, "sshKeySecretRef": map[string]any{"name": "key"}, "trustedSigners": []string{c.signer.Line},
	})
}

// scan scans once and returns what was said since, sorted.
func (c *cluster) scan() (Figures, []string) {
	c.t.Helper()
	c.said = nil
	f, _, err := c.Scan(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	slices.Sort(c.said)
	return f, c.said
}

// reads is what the metric counted.
func (c *cluster) reads() int {
	c.t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "hostwarrant_rejudgement_reads_total" {
			return int(family.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return 0
}

func (c *cluster) want(got []string, want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestARemovedSignerFlipsVerdictsWithoutAWrite(t *testing.T) {
	c := newCluster(t)
	month := c.now.Add(30 * 24 * time.Hour)
	for n := range 5 {
		c.profile(fmt.Sprint("p", n), fmt.Sprint("u", n), 2, month, c.signer)
	}
	c.host("h", "uh", "Verified", 1, nil)
	f, said := c.scan()
	c.want(said)
	if f.Objects != 6 || f.Reads != 6 || c.lists != 3 || len(c.marks) != 5 {
		t.Errorf("figures %+v, %d pages, %d marks", f, c.lists, len(c.marks))
	}
	f, said = c.scan()
	c.want(said)
	if f.Writes != 0 || f.Reads != 6 {
		t.Errorf("a second scan: %+v", f)
	}
	other := testkit.NewSigner(t, "ed25519")
	c.signedBy(c.signer, other)
	f, said = c.scan()
	c.want(said)
	if f.Writes != 0 {
		t.Errorf("no verdict changed: %+v", f)
	}
	c.signedBy(other)
	f, said = c.scan()
	c.want(said, "Warning SignerUnknown SSHJoinProfile/p0", "Warning SignerUnknown SSHJoinProfile/p1", "Warning SignerUnknown SSHJoinProfile/p2",
		"Warning SignerUnknown SSHJoinProfile/p3", "Warning SignerUnknown SSHJoinProfile/p4", "Warning SignersNotInPolicy SSHHost/h")
	if f.Refused != 6 || f.Writes != 7 || c.conditions[ConditionObjectsVerified] != "False ObjectsRefused" {
		t.Errorf("%+v, %v", f, c.conditions)
	}
	c.signedBy(c.signer)
	_, said = c.scan()
	if len(said) != 6 || said[0] != "Normal Verified SSHHost/h" {
		t.Errorf("said %v", said)
	}
}

func TestVerdictsEndWithTime(t *testing.T) {
	c := newCluster(t)
	soon := c.now.Add(time.Hour)
	c.profile("p", "u", 2, soon, c.signer)
	c.scan()
	_, until, err := c.Scan(t.Context())
	if err != nil || !until.Equal(soon) {
		t.Fatalf("%v; the next expiry is %s, not %s", err, until, soon)
	}
	c.now = soon.Add(-time.Second)
	_, said := c.scan()
	c.want(said)
	c.now = soon
	_, said = c.scan()
	c.want(said, "Warning Expired SSHJoinProfile/p")
	c.now = c.policy.Expires
	_, said = c.scan()
	c.want(said, "Warning PolicyExpired SSHJoinProfile/p")
}

func TestDowngradesByDeleteAndCreateAreFound(t *testing.T) {
	c := newCluster(t)
	month := c.now.Add(30 * 24 * time.Hour)
	c.profile("p", "u1", 7, month, c.signer)
	c.host("h", "u1", "Verified", 1, nil)
	c.scan()
	// A lagging replica, or nobody, was asked when both were made again.
	delete(c.objects, Key{Kind: object.KindJoinProfile, Name: "p"})
	delete(c.objects, Key{object.KindHost, "pool", "h"})
	_, said := c.scan()
	c.want(said)
	c.profile("p", "u2", 6, month, c.signer)
	c.host("h", "u2", "Raw", 1, nil)
	_, said = c.scan()
	c.want(said, "Warning ModeDowngrade SSHHost/h", "Warning SerialRollback SSHJoinProfile/p")
	if m := c.marks["p"]; m.Serial != 7 {
		t.Errorf("the ledger was lowered to %d", m.Serial)
	}
	c.host("raw", "u3", "Raw", 1, nil)
	_, said = c.scan()
	c.want(said, "Warning RawRefused SSHHost/raw")
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	c := newCluster(t)
	c.put(object.KindHost, "pool", "h", "u", 1, nil, map[string]any{"port": "ssh"})
	_, said := c.scan()
	c.want(said, "Warning Malformed SSHHost/h")
}

func TestExcusesChangeTheWordsOnly(t *testing.T) {
	c := newCluster(t)
	document := strings.Replace(testkit.PolicyDocument(c.signer), "    users:", "    raw: [{host: \"pool/old\", until: \"2026-12-10T00:00:00Z\"}]\n    users:", 1)
	c.policy = testkit.Policy(t, document, c.root)
	c.host("old", "u1", "Raw", 1, nil)
	f, said := c.scan()
	c.want(said, "Warning RawRefused SSHHost/old")
	if f.Refused != 0 || c.conditions[ConditionObjectsVerified] != "True Verified" {
		t.Errorf("%+v, %v", f, c.conditions)
	}
	c.now = time.Date(2026, 12, 10, 0, 0, 0, 0, time.UTC)
	f, said = c.scan()
	c.want(said, "Warning RawRefused SSHHost/old")
	if f.Refused != 1 || c.conditions[ConditionObjectsVerified] != "False ObjectsRefused" {
		t.Errorf("after its date: %+v, %v", f, c.conditions)
	}
}

func TestALostLedgerIsAlarmedAndFilledFromRuns(t *testing.T) {
	for name, stored := range map[string]bool{"a new cluster": false, "objects are stored": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.lost = true
			if stored {
				c.profile("p", "u", 2, c.now.Add(time.Hour), c.signer)
				c.objects[Key{object.KindHostRun, "pool", "r"}] = json.RawMessage(`{"apiVersion":"hostwarrant.dev/v1alpha1","kind":"HostRun","metadata":{"name":"r","namespace":"pool","uid":"r"},
					"spec":{"hostRef":{"name":"h"},"profileRef":{"name":"p"},"phase":"leave"},"status":{"serial":4,"conditions":[{"type":"Succeeded","status":"True"}]}}`)
			}
			_, said := c.scan()
			if !stored {
				c.want(said)
				return
			}
			c.want(said, "Warning LedgerRebuilt TrustPolicy/cluster", "ran p 4")
			if c.conditions[ConditionLedgerIntact] != "False LedgerRebuilt" {
				t.Errorf("%v", c.conditions)
			}
			_, said = c.scan()
			c.want(said)
		})
	}
}

func TestChangesBetweenScansAreJudged(t *testing.T) {
	c := newCluster(t)
	month := c.now.Add(30 * 24 * time.Hour)
	c.profile("p", "u", 2, month, c.signer)
	c.host("h", "uh", "Verified", 1, map[string]string{object.HostClassLabel: "small"})
	c.scan()
	look := func(key Key, change changeOf) (reads int, said []string) {
		c.said = nil
		before := c.reads()
		c.dirty.add(key, change)
		s, err := c.Snapshot(c.now)
		if err != nil {
			t.Fatal(err)
		}
		c.changes(t.Context(), s)
		return c.reads() - before, c.said
	}
	host := Key{object.KindHost, "pool", "h"}
	if reads, said := look(host, changeOf{uid: "uh", number: 1}); reads != 0 || said != nil {
		t.Errorf("a status was written: %d reads, said %v", reads, said)
	}
	c.host("h", "uh", "Verified", 1, map[string]string{object.HostClassLabel: "huge"})
	reads, said := look(host, changeOf{uid: "uh", number: 1})
	if c.want(said, "Warning HostClassRefused SSHHost/h"); reads != 1 {
		t.Errorf("a label was written: %d reads", reads)
	}
	c.profile("q", "uq", 4, month, testkit.NewSigner(t, "ed25519"))
	_, said = look(Key{Kind: object.KindJoinProfile, Name: "q"}, changeOf{uid: "uq", number: 1})
	c.want(said, "Warning SignerUnknown SSHJoinProfile/q")
	delete(c.objects, Key{Kind: object.KindJoinProfile, Name: "q"})
	look(Key{Kind: object.KindJoinProfile, Name: "q"}, changeOf{uid: "uq", number: 1, gone: true})
	if c.verdicts.get(Key{Kind: object.KindJoinProfile, Name: "q"}) != nil {
		t.Error("a deleted profile is still counted")
	}
}

// Labels that are no class may be written by whoever may label hosts, and are not judged then; what
// they bring a host to is found as soon as they are there.
func TestAHostThatIsLabelledIntoAnotherNodeClassIsFound(t *testing.T) {
	c := newCluster(t)
	document := strings.Replace(testkit.PolicyDocument(c.signer), `small: ["*"]`, `small: ["web-*"]`, 1)
	c.policy = testkit.Policy(t, document, c.root)
	month := c.now.Add(30 * 24 * time.Hour)
	c.profile("tls", "up", 2, month, c.signer)
	small := map[string]string{object.HostClassLabel: "small", "pool": "web"}
	c.host("h", "uh", "Verified", 1, small)
	c.put(object.KindNodeClass, "", "bm", "uc", 1, nil, map[string]any{
		"joinProfileRef": map[string]any{"name": "tls"}, "hostSelector": map[string]any{"matchLabels": map[string]any{"pool": "tls"}},
	})
	if _, said := c.scan(); len(said) > 0 {
		t.Fatalf("said %v", said)
	}
	write := func(pool string) []string {
		c.host("h", "uh", "Verified", 1, map[string]string{object.HostClassLabel: "small", "pool": pool})
		c.said = nil
		c.dirty.add(Key{object.KindHost, "pool", "h"}, changeOf{uid: "uh", number: 1})
		s, err := c.Snapshot(c.now)
		if err != nil {
			t.Fatal(err)
		}
		c.changes(t.Context(), s)
		return c.said
	}
	c.want(write("tls"), "Warning ProfileRefused SSHNodeClass/bm")
	c.want(write("web"), "Normal Verified SSHNodeClass/bm")
}

func TestNothingIsJudgedWithoutATrustedState(t *testing.T) {
	c := newCluster(t)
	c.Trust = broken{c}
	if _, _, err := c.Scan(t.Context()); err == nil {
		t.Fatal("a scan without a snapshot gave verdicts")
	}
}

type broken struct{ *cluster }

func (broken) Snapshot(time.Time) (verify.Snapshot, error) { return verify.Snapshot{}, errors.New("x") }
