//go:build linux

package provision

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// generation is a roots statement of the world's cluster, signed by those who must.
func generation(t *testing.T, serial int64, next testkit.Signer, by ...testkit.Signer) statement.Signed {
	t.Helper()
	s := statement.Statement{
		Kind: statement.KindRoots, Serial: serial, Issued: time.Now().Unix(), Cluster: "lab-1",
		Roots: &statement.Roots{Threshold: 1, Keys: []ssh.PublicKey{next.PublicKey()}},
	}
	signed := statement.Signed{Text: s.Text()}
	for _, root := range by {
		signed.Signatures = append(signed.Signatures, testkit.Sign(t, root, statement.Namespace, signed.Text))
	}
	return signed
}

// rotated is the world's policy, signed by the second generation of its roots.
func (w *world) rotated(t *testing.T, second testkit.Signer) {
	t.Helper()
	link := generation(t, 2, second, w.root, second)
	document := strings.Replace(w.document(w.signer), "rootVersion: 1", "rootVersion: 2", 1)
	text, err := json.Marshal(map[string]any{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{
			"document": document, "signatures": []string{testkit.Sign(t, second, "hostwarrant-policy", []byte(document))},
			"rootChain": []any{map[string]any{"document": string(link.Text), "signatures": link.Signatures}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, w.dir, "policy.yaml", text)
}

// A host that was set up under the second generation of roots holds scripts to their warrants, and takes the
// third generation and no other; what it then trusts survives another setup.
func TestASetUpHostRequiresWarrantsAndFollowsTheRoots(t *testing.T) {
	w := newWorld(t)
	second, third, fourth := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	w.rotated(t, second)
	h := w.bare(t, nil)
	flags := append(w.flags(t, w.dir), "--max-serial-step", "5")
	for i, flag := range flags {
		if flag == "optional" {
			flags[i] = "required"
		}
	}
	put(t, h, "/root/setup.sh", []byte(w.provision(t, flags...)), 0o700)
	h.Must(t, "/root/setup.sh")
	check := "hostwarrant host check --policy /root/w/policy.yaml --root /root/w/root.pub --cluster lab-1 --class bm --max-serial-step 5 --login-key /root/w/login.pub --from " +
		shared.Lab(t).Addr().String() + " --checksums /root/w/SHA256SUMS --release-key /root/w/release.pub"
	wantGreen(t, on(t, h, check))

	bare := "#!/bin/bash\necho ran\n"
	if r := w.send(t, h, envelope("join", bare, testkit.Sign(t, w.signer, "kpssh", []byte(bare)))); r.code != 14 {
		t.Errorf("a script without a warrant: %+v", r)
	}
	for _, c := range []struct{ serial, code int }{{39, 20}, {46, 20}, {45, 0}, {44, 20}, {50, 0}} { // the floor is 40, the step 5
		script, signature := w.signed(t, c.serial)
		if r := w.send(t, h, envelope("join", script, signature)); r.code != c.code || c.code == 0 && r.out != "ran\n" {
			t.Errorf("serial %d: %+v", c.serial, r)
		}
	}
	wantGreen(t, on(t, h, check))

	send := func(s statement.Signed) result {
		b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
		return w.send(t, h, fmt.Sprintf("kpssh-envelope: 1\nphase: statement\nstatement-b64: %s\nstatement-sig-b64: %s\n", b64(string(s.Text)), b64(strings.Join(s.Signatures, ""))))
	}
	if r := send(generation(t, 4, fourth, second, fourth)); r.code != 20 {
		t.Errorf("a generation that is left out: %+v", r)
	}
	if r := send(generation(t, 3, third, w.root, third)); r.code != 2 {
		t.Errorf("a generation by the first roots: %+v", r)
	}
	if r := send(generation(t, 3, third, second, third)); r.code != 0 {
		t.Fatalf("the third generation: %+v", r)
	}
	r := on(t, h, check)
	wantGreen(t, r)
	if !strings.Contains(r.err, "root_signers is as the accepted roots statement of serial 3 says") {
		t.Errorf("stderr %q", r.err)
	}
	before := h.Must(t, listing)
	if out := h.Must(t, "/root/setup.sh"); !strings.Contains(out, "kept /etc/kpssh/root_signers: ") || h.Must(t, listing) != before {
		t.Errorf("another setup says\n%s", out)
	}
	if got := h.Must(t, "cat /etc/kpssh/root_signers"); !strings.HasSuffix(got, third.Line+"\n") {
		t.Errorf("the roots are %s", got)
	}
}

// signed gives the join script of a version of the profile tls-bootstrap, with its signature.
func (w *world) signed(t *testing.T, serial int) (script, signature string) {
	t.Helper()
	dir := t.TempDir()
	for _, phase := range []string{"install", "join", "leave"} {
		testkit.WriteFile(t, dir, phase+".sh", []byte("#!/bin/bash\necho ran\n"))
	}
	key := testkit.WriteFile(t, w.dir, "signer", w.signer.PEM)
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.hostwarrant(t, "sign", dir, "--key", key, "--profile", "tls-bootstrap", "--serial", fmt.Sprint(serial), "--target", "class bm", "--valid-for", "30d")
	if r.code != 0 {
		t.Fatalf("sign: %+v", r)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return read("join.sh"), read("join.sh.sig")
}
