//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// denial is an object that is refused, and the Reason that kubectl shows.
type denial struct {
	reason string
	raw    []byte
	args   []string // kubectl's; nil is apply -f -
}

// goldenPolicy names a signer of narrow scope and a revoked one, wants two keys for uninstall, and
// has a floor.
type goldenPolicy struct {
	i               *installation
	scoped, revoked testkit.Signer
}

func newGoldenPolicy(t *testing.T, i *installation) *goldenPolicy {
	t.Helper()
	g := &goldenPolicy{i: i, scoped: testkit.NewSigner(t, "ed25519"), revoked: testkit.NewSigner(t, "ed25519")}
	i.usualPolicy(t)
	i.newPolicy(t, func(document string) string {
		document = replace(t, "thresholds: {}", "thresholds: {uninstall: 2}", g.scoped.Line+`"}`, g.scoped.Line+`", profiles: ["tls-*"]}`)(document)
		return document + fmt.Sprintf("revoked: {signers: [%q]}\nfloors: {p-golden-floor: 40}\n", g.revoked.Fingerprint)
	}, i.signer, g.scoped, g.revoked)
	return g
}

// profiles are refused for what their phases hold.
func (g *goldenPolicy) profiles(t *testing.T) []denial {
	t.Helper()
	const name = "p-golden"
	signed := signatures(t, g.i.signer, scripts())
	by := func(s testkit.Signer) []byte { return profile(t, name, scripts(), signatures(t, s, scripts())) }
	with := func(armor string) []byte {
		changed := maps.Clone(signed)
		changed["join"] = armor
		return profile(t, name, scripts(), changed)
	}
	edited := func(edit func(string) string) []byte { return profile(t, name, join(edit), signed) }
	inWarrant := func(change func(*warrant.Warrant)) []byte { return warranted(t, g.i, name, change) }
	broken := join(func(s string) string { return s + "#warrant: v1\n" })
	half := scripts()
	w, err := warrant.Set([]byte(half["install"]), &warrant.Warrant{Profile: name, Phase: "install", Serial: 1, Targets: []warrant.Target{{Kind: warrant.TargetAny}}, NotAfter: 2000000000})
	must(t, err)
	half["install"] = string(w)
	four := scripts()
	four["uninstall"] = "#!/bin/sh\ntrue\n"
	weak := testkit.NewSigner(t, "rsa2048")
	return []denial{
		{"Unsigned", profile(t, name, scripts(), nil), nil},
		{"SignatureMalformed", with(strings.Replace(signed["join"], "\n-----END", "=\n-----END", 1)), nil},
		{"WrongNamespace", with(testkit.Sign(t, g.i.signer, "git", []byte(scripts()["join"]))), nil},
		{"SignerUnknown", by(testkit.NewSigner(t, "ed25519")), nil},
		{"SignerRevoked", by(g.revoked), nil},
		{"SignerScope", by(g.scoped), nil},
		{"KeyTypeRefused", with(testkit.KeygenSign(t, weak, "kpssh", []byte(scripts()["join"]))), nil},
		{"ThresholdNotMet", profile(t, name, four, signatures(t, g.i.signer, four)), nil},
		{"BytesChanged", edited(func(s string) string { return s + "id\n" }), nil},
		{"NewlineChanged", edited(func(s string) string { return s + "\n" }), nil},
		{"TemplateFound", edited(func(s string) string { return s + "{{ .Vars }}\n" }), nil},
		{"WarrantMissing", profile(t, name, half, signatures(t, g.i.signer, half)), nil},
		{"WarrantMalformed", profile(t, name, broken, signatures(t, g.i.signer, broken)), nil},
		{"WarrantMismatch", inWarrant(func(w *warrant.Warrant) { w.Profile = "other" }), nil},
		{"TargetRefused", inWarrant(func(w *warrant.Warrant) { w.Targets = []warrant.Target{{Kind: "cluster", Value: "prod-1"}} }), nil},
		{"NotYetValid", inWarrant(func(w *warrant.Warrant) { w.HasNotBefore, w.NotBefore = true, w.NotAfter-1 }), nil},
		{"Expired", inWarrant(func(w *warrant.Warrant) { w.NotAfter = 1000000000 }), nil},
		{"ValidityTooLong", inWarrant(func(w *warrant.Warrant) { w.NotAfter *= 2 }), nil},
		{"SerialRollback", warranted(t, g.i, "p-golden-floor", nil), nil},
		{"Malformed", profile(t, name, join(func(s string) string { return s + "\x00\n" }), signed), nil},
	}
}

// others are refused for what a host, a node class, a run or a policy says.
func (g *goldenPolicy) others(t *testing.T) []denial {
	t.Helper()
	const name = "h-golden"
	of := func(changes object) []byte { return host(t, name, changes) }
	policy := func(edit func(string) string, by testkit.Signer) denial {
		document := policyDocument(t, g.i.version+1, g.i.signer)
		if edit != nil {
			document = edit(document)
		}
		return denial{"", g.i.trustPolicy(t, document, by), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}}
	}
	named := func(reason string, d denial) denial {
		d.reason = reason
		return d
	}
	return []denial{
		{"RawRefused", of(object{"execMode": "Raw"}), nil},
		{"ShimCommandRefused", of(object{"shimCommand": "bash -s"}), nil},
		{"UserRefused", of(object{"user": "root"}), nil},
		{"PortRefused", of(object{"port": 2222}), nil},
		{"SignersNotInPolicy", of(object{"trustedSigners": []string{testkit.NewSigner(t, "ed25519").Line}}), nil},
		{"HostClassRefused", withMeta(t, of(nil), object{"labels": object{classLabel: "gpu"}}), nil},
		{"ClusterRefused", nodeClass(t, "nc-golden", object{"cluster": object{"endpoint": foreignEndpoint}}), nil},
		{"NodeNameRefused", hostRun(t, "run-golden", object{"nodeName": "control-plane-0"}), nil},
		{"NodeNameTaken", hostRun(t, "run-golden", object{"nodeName": "pool-golden"}), nil},
		{"NamespaceRefused", withMeta(t, of(object{"trustedSigners": []string{g.i.signer.Line}}), object{"namespace": "kube-public"}), nil},
		named("PolicyUnsigned", policy(nil, g.i.signer)),
		named("PolicyWrongCluster", policy(replace(t, "e2e: ", "prod: "), g.i.root)),
		named("PolicyMalformed", policy(replace(t, "thresholds: {}", "thresholds: {join: 0}"), g.i.root)),
		named("PolicyRollback", policy(replace(t, fmt.Sprintf("version: %d\n", g.i.version+1), "version: 1\n"), g.i.root)),
		named("PolicyEquivocation", policy(replace(t, fmt.Sprintf("version: %d\n", g.i.version+1), fmt.Sprintf("version: %d\n", g.i.version)), g.i.root)),
		named("SerialJump", policy(replace(t, fmt.Sprintf("version: %d\n", g.i.version+1), "version: 999999\n"), g.i.root)),
		{"ModeDowngrade", nil, []string{"patch", "-n", "pool", "sshhost", "h-golden-stored", "--type=merge", "-p", `{"spec":{"execMode":"Raw"}}`}},
	}
}

// placeholders stand for what differs from run to run.
func placeholders(text string) string {
	for _, p := range []struct{ pattern, stands string }{
		{`SHA256:[A-Za-z0-9+/]{43}`, "SHA256:FINGERPRINT"},
		{`sha256:[0-9a-f]{12,64}`, "sha256:DIGEST"},
		{`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z`, "TIME"},
		{`\b(version|below|above) [0-9]+`, "$1 N"},
	} {
		text = regexp.MustCompile(p.pattern).ReplaceAllString(text, p.stands)
	}
	return text
}

// TestGoldenDenials: kubectl prints one readable line for each Reason; the lines are in
// testdata/golden. UPDATE_GOLDEN=1 writes them anew.
func TestGoldenDenials(t *testing.T) {
	i := install(t)
	g := newGoldenPolicy(t, i)
	i.succeeds(t, host(t, "h-golden-stored", object{"trustedSigners": []string{i.signer.Line}}), "create", "-f", "-")
	i.remove(t, "-n", "pool", "sshhost", "h-golden-stored")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "pool-golden"}, Spec: corev1.NodeSpec{ProviderID: "kpssh://pool/another"}}
	_, err := i.cp.Client().CoreV1().Nodes().Create(soon(t), node, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, i.cp.Client().CoreV1().Nodes().Delete(soon(t), node.Name, metav1.DeleteOptions{})) })
	time.Sleep(time.Second) // for the node to be known
	dir := filepath.Join(testkit.Root(t), "e2e", "testdata", "golden")
	all := slices.Concat(g.profiles(t), g.others(t))
	for _, d := range all {
		t.Run(d.reason, func(t *testing.T) { i.golden(t, dir, d) })
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != len(all) {
		t.Errorf("testdata/golden holds %d files for %d denials", len(entries), len(all))
	}
}

func (i *installation) golden(t *testing.T, dir string, d denial) {
	t.Helper()
	args := d.args
	if args == nil {
		args = []string{"apply", "-f", "-"}
	}
	r := i.kubectl(t, d.raw, args...)
	if r.Code == 0 {
		t.Fatalf("it was admitted: %s", r.Stdout)
	}
	lines := strings.Split(strings.TrimSuffix(r.Stderr, "\n"), "\n")
	line := lines[len(lines)-1]
	_, message, ok := strings.Cut(line, "denied the request: ")
	if len(lines) != 1 || !ok {
		t.Fatalf("want one line with a denial, got:\n%s", r.Stderr)
	}
	if len(message) >= 512 || !strings.Contains(message, ": "+d.reason+": ") {
		t.Errorf("%d bytes; want less than 512 with %s: %s", len(message), d.reason, message)
	}
	if !strings.Contains(message, "; hint: ") {
		t.Errorf("no hint: %s", message)
	}
	file := filepath.Join(dir, d.reason+".txt")
	got := placeholders(line) + "\n"
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != string(want) {
		t.Errorf("kubectl prints\n%s\nwant\n%s", got, want)
	}
}
