package verify_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// version is a profile on its way to being signed.
type version struct {
	warrants map[script.Phase]*warrant.Warrant
	body     string
	bare     script.Phase // gets no warrant
	after    func(*object.JoinProfile)
}

func newVersion() *version {
	v := &version{warrants: map[script.Phase]*warrant.Warrant{}, body: "#!/bin/bash\nset -eu\n", after: func(*object.JoinProfile) {}}
	for _, phase := range script.Phases() {
		w := &warrant.Warrant{
			Profile: "tls", Phase: phase, Serial: 42, HasNotBefore: true, NotBefore: testkit.Now().Unix(),
			Targets: []warrant.Target{{Kind: warrant.TargetClass, Value: "bm"}},
		}
		w.NotAfter = testkit.Now().Add(90 * 24 * time.Hour).Unix()
		if phase == script.Leave || phase == script.Uninstall {
			w.Never, w.NotAfter = true, 0
		}
		v.warrants[phase] = w
	}
	return v
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// signed makes the profile; the digests of what leaves are filled in unless the warrants have some.
func (v *version) signed(a author) *object.JoinProfile {
	a.t.Helper()
	p := &object.JoinProfile{
		Meta: object.Meta{Kind: object.KindJoinProfile, Name: "tls"}, Version: "42",
		Scripts: map[script.Phase]string{}, Signatures: map[script.Phase]string{}, Timeouts: map[script.Phase]time.Duration{},
	}
	for _, phase := range []script.Phase{script.Leave, script.Uninstall, script.Install, script.Join} {
		w := v.warrants[phase]
		if phase == script.Install || phase == script.Join {
			fill(&w.LeaveSHA256, digest(p.Scripts[script.Leave]))
			fill(&w.UninstallSHA256, digest(p.Scripts[script.Uninstall]))
		}
		text := []byte(v.body)
		if phase != v.bare {
			var err error
			if text, err = warrant.Set(text, w); err != nil {
				a.t.Fatal(err)
			}
		}
		p.Scripts[phase], p.Signatures[phase] = string(text), a.sign(string(text))
	}
	v.after(p)
	return p
}

const without = "none"

func fill(digest *string, value string) {
	switch *digest {
	case "":
		*digest = value
	case without:
		*digest = ""
	}
}

func TestWarrants(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	a := author{signer, t, false}
	document := strings.Replace(testkit.PolicyDocument(signer), "requireWarrant: false", "requireWarrant: true", 1) + "floors: {tls: 40}\n"
	s := verify.Snapshot{Policy: testkit.Policy(t, document, root), ClusterID: "prod-1", Now: testkit.Now()}
	every := func(v *version, change func(*warrant.Warrant)) {
		for _, w := range v.warrants {
			change(w)
		}
	}
	tests := map[string]struct {
		change func(*version)
		want   decision.Reason
		where  string
		says   string
	}{
		"in order":                     {func(*version) {}, decision.Verified, "", "4 phases"},
		"none at all":                  {func(v *version) { v.after = func(p *object.JoinProfile) { *p = *a.profile("tls") } }, decision.WarrantMissing, "install", "--serial"},
		"one phase without":            {func(v *version) { v.bare = script.Leave }, decision.WarrantMissing, "leave", "other phases"},
		"for another profile":          {func(v *version) { every(v, func(w *warrant.Warrant) { w.Profile = "other" }) }, decision.WarrantMismatch, "install", `profile "other"`},
		"filed under another phase":    {func(v *version) { v.after = func(p *object.JoinProfile) { swap(p, script.Leave, script.Uninstall) } }, decision.WarrantMismatch, "install", "leave-sha256"},
		"join filed as install":        {func(v *version) { v.after = func(p *object.JoinProfile) { swap(p, script.Install, script.Join) } }, decision.WarrantMismatch, "install", "for phase join"},
		"a phase of another version":   {func(v *version) { v.warrants[script.Uninstall].Serial = 41 }, decision.WarrantMismatch, "uninstall", "serial 41"},
		"spec.version is another":      {func(v *version) { v.after = func(p *object.JoinProfile) { p.Version = "43" } }, decision.WarrantMismatch, "install", `spec.version is "43"`},
		"spec.version in another form": {func(v *version) { v.after = func(p *object.JoinProfile) { p.Version = "042" } }, decision.WarrantMismatch, "install", `spec.version is "042"`},
		"longer than the default":      {func(v *version) { v.warrants[script.Join].Timeout = 301 }, decision.WarrantMismatch, "join", "spec.timeouts.join allows 5m0s"},
		"as long as the default":       {func(v *version) { v.warrants[script.Join].Timeout = 300 }, decision.Verified, "", ""},
		"longer than spec.timeouts": {func(v *version) {
			v.after = func(p *object.JoinProfile) { p.Timeouts[script.Install] = 599 * time.Second }
		}, decision.WarrantMismatch, "install", "asks for 600 s"},
		"spec.timeouts to match": {func(v *version) {
			v.warrants[script.Join].Timeout = 7200
			v.after = func(p *object.JoinProfile) { p.Timeouts[script.Join] = 2 * time.Hour }
		}, decision.Verified, "", ""},
		"uninstall has no bound":     {func(v *version) { v.warrants[script.Uninstall].Timeout = 7200 }, decision.Verified, "", ""},
		"another leave script":       {func(v *version) { v.warrants[script.Join].LeaveSHA256 = digest("x") }, decision.WarrantMismatch, "join", "leave-sha256"},
		"another uninstall script":   {func(v *version) { v.warrants[script.Join].UninstallSHA256 = digest("x") }, decision.WarrantMismatch, "join", "uninstall-sha256"},
		"no digest of what stays":    {func(v *version) { v.warrants[script.Install].LeaveSHA256 = without }, decision.WarrantMismatch, "install", "never expires"},
		"a digest of a script gone":  {func(v *version) { v.after = func(p *object.JoinProfile) { drop(p, script.Uninstall) } }, decision.WarrantMismatch, "install", "uninstall-sha256"},
		"a leave that ends, unnamed": {func(v *version) { ends(v, script.Leave) }, decision.Verified, "", ""},
		"not yet":                    {func(v *version) { v.warrants[script.Join].NotBefore++ }, decision.NotYetValid, "join", "2026-11-30T12:00:01Z"},
		"without a beginning":        {func(v *version) { every(v, func(w *warrant.Warrant) { w.HasNotBefore, w.NotBefore = false, 0 }) }, decision.Verified, "", ""},
		"its last second":            {func(v *version) { v.warrants[script.Join].NotAfter = testkit.Now().Unix() + 1; bare(v) }, decision.Verified, "", ""},
		"a second too late":          {func(v *version) { v.warrants[script.Join].NotAfter = testkit.Now().Unix(); bare(v) }, decision.Expired, "join", "2026-11-30T12:00:00Z"},
		"an expired leave":           {func(v *version) { ends(v, script.Leave); v.warrants[script.Leave].NotAfter = 5; bare(v) }, decision.Expired, "leave", "1970-01-01T00:00:05Z"},
		"valid for too long":         {func(v *version) { v.warrants[script.Install].NotAfter++ }, decision.ValidityTooLong, "install", "90 days"},
		"a leave valid for long":     {func(v *version) { ends(v, script.Leave); v.warrants[script.Leave].NotAfter *= 2 }, decision.Verified, "", ""},
		"below the floor":            {func(v *version) { serial(v, 39) }, decision.SerialRollback, "install", "below 40"},
		"at the floor":               {func(v *version) { serial(v, 40) }, decision.Verified, "", ""},
		"for another cluster":        {func(v *version) { clusters(v, "prod-2") }, decision.TargetRefused, "install", `prod-2, this is "prod-1"`},
		"for this and another":       {func(v *version) { clusters(v, "prod-2", "prod-1") }, decision.Verified, "", ""},
		"a broken block": {func(v *version) {
			v.after = func(p *object.JoinProfile) {
				p.Scripts[script.Join] = strings.Replace(p.Scripts[script.Join], "serial 42", "serial 042", 1)
				p.Signatures[script.Join] = a.sign(p.Scripts[script.Join])
			}
		}, decision.WarrantMalformed, "join", "line 5"},
		"a bad signature comes first": {func(v *version) {
			v.after = func(p *object.JoinProfile) { p.Version = "43"; delete(p.Signatures, script.Install) }
		}, decision.Unsigned, "install", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := newVersion()
			tt.change(v)
			d := verify.JoinProfile(s, v.signed(a))
			wantDecision(t, d, tt.want, tt.where)
			if !strings.Contains(d.Message(), tt.says) {
				t.Errorf("%q does not say %q", d.Message(), tt.says)
			}
		})
	}
}

func swap(p *object.JoinProfile, x, y script.Phase) {
	p.Scripts[x], p.Scripts[y] = p.Scripts[y], p.Scripts[x]
	p.Signatures[x], p.Signatures[y] = p.Signatures[y], p.Signatures[x]
}

func drop(p *object.JoinProfile, phase script.Phase) {
	delete(p.Scripts, phase)
	delete(p.Signatures, phase)
}

// ends gives a phase that leaves an end, and lets install and join not name it.
func ends(v *version, phase script.Phase) {
	w := v.warrants[phase]
	w.Never, w.NotAfter = false, testkit.Now().Add(time.Hour).Unix()
	v.warrants[script.Install].LeaveSHA256, v.warrants[script.Join].LeaveSHA256 = without, without
}

// bare lets the warrants begin long ago.
func bare(v *version) {
	for _, w := range v.warrants {
		w.NotBefore = 1
	}
}

func serial(v *version, n int64) {
	for _, w := range v.warrants {
		w.Serial = n
	}
	v.after = func(p *object.JoinProfile) { p.Version = map[int64]string{39: "39", 40: "40"}[n] }
}

func clusters(v *version, ids ...string) {
	for _, w := range v.warrants {
		for _, id := range ids {
			w.Targets = append(w.Targets, warrant.Target{Kind: warrant.TargetCluster, Value: id})
		}
	}
}

func TestAFloorStopsScriptsFromBeforeThereWereSerials(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(signer)+"floors: {tls: 1}\n", root), Now: testkit.Now()}
	wantDecision(t, verify.JoinProfile(s, author{signer, t, false}.profile("tls")), decision.SerialRollback, "install")
	wantDecision(t, verify.JoinProfile(s, author{signer, t, false}.profile("other")), decision.Verified, "")
}

func TestPhaseReadsTheWarrantsOfAll(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(signer), root), ClusterID: "prod-1", Now: testkit.Now()}
	v := newVersion()
	wantDecision(t, verify.Phase(s, v.signed(author{signer, t, false}), script.Join), decision.Verified, "join")
	v = newVersion()
	v.bare = script.Leave
	wantDecision(t, verify.Phase(s, v.signed(author{signer, t, false}), script.Join), decision.WarrantMissing, "leave")
}
