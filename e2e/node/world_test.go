//go:build linux

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// signingDuration is how long the certificates that kubelets get are good for. They begin five minutes earlier, and kubelet
// asks for the next when 70 to 90 of a hundred parts of all that are over (jitteryDuration in client-go's util/certificate):
// 15 to 105 seconds after it got one, which leaves a busy machine 45.
const signingDuration = 150 * time.Second

const (
	// limit bounds each step on a busy machine, runLimit a run: the join script's own is 240 s.
	limit    = 2 * time.Minute
	runLimit = 6 * time.Minute

	profile = "join-example" // of examples/join
)

var shared lab.Shared

func TestMain(m *testing.M) {
	shared.Options.ControllerManagerArgs = []string{"--cluster-signing-duration=" + signingDuration.String()}
	os.Exit(shared.Main(m))
}

// world is the product with a minter and the profile of examples/join, in a cluster as docs/operations/nodes.md wants it.
type world struct {
	*courier.World
	client kubernetes.Interface
	hostCA testkit.Signer // of the namespace, in the policy
}

var (
	installOnce sync.Once
	installed   *world
)

// newWorld returns the one installation of the package.
func newWorld(t *testing.T) *world {
	t.Helper()
	cp := shared.ControlPlane(t)
	installOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		w := &world{World: courier.New(ctx, t, shared.Lab(t), cp), client: cp.Client(), hostCA: testkit.NewSigner(t, "ed25519")}
		w.RewritePolicy(ctx, t, map[string]string{"    version: 1\n": "    version: 2\n", `nodeNames: ["*"]`: `nodeNames: ["pool-*"], hostCA: "` + w.hostCA.Line + `"`})
		w.BindBootstrappers(t)
		must(t, w.Product.BindRenewals(ctx))
		w.StartMinter(t)
		w.example(t)
		installed = w
	})
	if installed == nil {
		t.Fatal("the product is not installed; see the first test that failed")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the minter's log:\n%s\nthe relay's log:\n%s", installed.Programs.Minter.Tail(30), installed.Programs.Relay.Tail(30))
		}
	})
	return installed
}

// example signs and applies examples/join.
func (w *world) example(t *testing.T) {
	t.Helper()
	scripts := t.TempDir()
	must(t, os.CopyFS(scripts, os.DirFS(filepath.Join(w.Lab.Root(), "examples", "join"))))
	w.AppliesInTime(t, w.Command(t, "sign", scripts, "--key", filepath.Join(w.Keys, "signer"), "--serial", "1", "--target", "class "+product.HostClass))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listed is a host that can become a node, whose key the administrator has listed.
func (w *world) listed(t *testing.T, name string) *lab.Host {
	t.Helper()
	h := w.HostWith(t, name, product.AsNode)
	w.ListHostKey(t, name, h.HostKey)
	return h
}

// certified is one that the namespace's CA knows, and no list: its sshd shows the certificate, and its Secret pins the CA.
func (w *world) certified(t *testing.T, name string) *lab.Host {
	t.Helper()
	h := w.HostWith(t, name, product.AsNode)
	c := testkit.Certify(t, w.hostCA, h.HostKey, []string{h.Addr.String()}, func(c *ssh.Certificate) {
		c.CertType, c.Permissions = ssh.HostCert, ssh.Permissions{}
		c.ValidAfter, c.ValidBefore = uint64(time.Now().Add(-time.Hour).Unix()), uint64(time.Now().Add(time.Hour).Unix())
	})
	must(t, h.WriteFile("/etc/ssh/ssh_host_ed25519_key-cert.pub", ssh.MarshalAuthorizedKey(c), 0o644))
	must(t, h.WriteFile("/etc/ssh/sshd_config.d/certificate.conf", []byte("HostCertificate /etc/ssh/ssh_host_ed25519_key-cert.pub\n"), 0o644))
	h.ReloadSSHD(t)
	w.Secret(t, name, w.Login, "@cert-authority * "+w.hostCA.Line)
	return h
}

// ask makes the HostRun of a phase.
func (w *world) ask(t *testing.T, name string, h *lab.Host, phase v1alpha1.HostRunPhase, node string) {
	t.Helper()
	w.Run(t, name, h.Name, profile, func(r *v1alpha1.HostRun) {
		r.Spec.Phase, r.Spec.NodeName = phase, node
		if node != "" {
			r.Spec.Vars = map[string]v1alpha1.HostRunVar{"nodeLabels": "pool=a"}
		}
	})
}

// ended waits for the end of a run, and wants its reason, its script's exit code, and what it said.
func (w *world) ended(t *testing.T, name, reason string, exit int32, said string) *v1alpha1.HostRun {
	t.Helper()
	r := w.Until(t, name, runLimit, courier.IsOver)
	c := courier.ConditionOf(r, v1alpha1.ConditionSucceeded)
	if c.Reason != reason || courier.Value(r.Status.ScriptExitCode) != exit || !strings.Contains(r.Status.TranscriptTail, said) {
		t.Fatalf("the run %s ended %s (%s), script %d; want %s, %d and %q: %s", name, c.Reason, c.Message, courier.Value(r.Status.ScriptExitCode), reason, exit, said, r.Status.TranscriptTail)
	}
	return r
}

// handedOver waits until a run has its token, and reads it as an administrator could, or whoever has broken in at one.
func (w *world) handedOver(t *testing.T, name string) string {
	t.Helper()
	secret := token.HandoverName(w.Read(t, name).UID)
	var value string
	testkit.Eventually(t, limit, "the token of "+name, func() bool {
		s, err := w.client.CoreV1().Secrets(courier.Namespace).Get(t.Context(), secret, metav1.GetOptions{})
		if err == nil {
			value = string(s.Data["token"])
		}
		return err == nil
	})
	return value
}

// joined has a host join by a run of that name, and wants all that is to be seen of it.
func (w *world) joined(t *testing.T, name string, h *lab.Host, node string) *corev1.Node {
	t.Helper()
	w.ask(t, name, h, v1alpha1.HostRunJoin, node)
	value := w.handedOver(t, name)
	r := w.ended(t, name, "Succeeded", 0, h.Name+" is the node "+node+"\n")
	if c := courier.ConditionOf(r, v1alpha1.ConditionJoined); c.Status != metav1.ConditionTrue || c.Reason != "Approved" {
		t.Errorf("the run %s has Joined=%s %s: %s", name, c.Status, c.Reason, c.Message)
	}
	w.approvedByProof(t, r)
	n := w.ready(t, node)
	w.Worthless(t, value)
	w.NoTokens(t)
	id, secret, _ := strings.Cut(value, ".")
	if left := h.Must(t, "grep -ls '"+id[:5]+"["+id[5:]+"]' /proc/[0-9]*/environ /proc/[0-9]*/cmdline || :"); left != "" {
		t.Errorf("the token is still in %s", left)
	}
	if left := h.Must(t, findSecret(secret)); left != "" {
		t.Errorf("the token is still in %s", left)
	}
	return n
}

// findSecret names the files of a host that hold a token.
func findSecret(secret string) string {
	return "grep -rlsF --devices=skip " + secret + " /etc /root /run /tmp /var/lib/kubelet /var/lib/containerd /var/lib/hostwarrant /var/log || :"
}

// approvedByProof wants the request of a run's token approved by the approver, for the key that the host proved.
func (w *world) approvedByProof(t *testing.T, r *v1alpha1.HostRun) {
	t.Helper()
	own := w.requestsBy(t, token.UserPrefix+r.Status.TokenID)
	if len(own) != 1 || len(own[0].Status.Conditions) != 1 {
		t.Fatalf("the token of %s asked for %d certificates: %+v", r.Name, len(own), own)
	}
	c := own[0].Status.Conditions[0]
	_, key, _ := strings.Cut(c.Message, "proved that ")
	key, _, _ = strings.Cut(key, " ")
	if c.Type != certificatesv1.CertificateApproved || c.Reason != "HostwarrantApproved" || r.Status.Proof == nil || !strings.Contains(r.Status.Proof.Text, "\nkubelet-key "+key+"\n") {
		t.Errorf("the request %s is %s %s: %s; the proof is %+v", own[0].Name, c.Type, c.Reason, c.Message, r.Status.Proof)
	}
}

// requestsBy are the certificate requests of a user.
func (w *world) requestsBy(t *testing.T, user string) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	all, err := w.client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var own []certificatesv1.CertificateSigningRequest
	for _, c := range all.Items {
		if c.Spec.Username == user {
			own = append(own, c)
		}
	}
	return own
}

func (w *world) ready(t *testing.T, name string) *corev1.Node {
	t.Helper()
	var node *corev1.Node
	testkit.Eventually(t, limit, "node "+name+" to be ready", func() bool {
		var err error
		if node, err = w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return false
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	return node
}
