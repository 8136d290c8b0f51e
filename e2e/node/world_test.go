//go:build linux

package node

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// signingDuration is the life of the certificates that kubelets get. They ask for the next when 70 to 90 of a hundred
// parts of it are over (jitteryDuration in client-go's util/certificate), so the test waits for two minutes, and a busy
// machine has 15 seconds to answer.
const signingDuration = 150 * time.Second

// limit bounds each step on a busy machine.
const limit = 2 * time.Minute

var shared lab.Shared

func TestMain(m *testing.M) {
	shared.Options.ControllerManagerArgs = []string{"--cluster-signing-duration=" + signingDuration.String()}
	os.Exit(shared.Main(m))
}

type world struct {
	cp      *lab.ControlPlane
	client  kubernetes.Interface
	keys    string
	scripts string
	login   testkit.Signer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cp: shared.ControlPlane(t), keys: filepath.Join(t.TempDir(), "keys"), scripts: t.TempDir(), login: testkit.NewSigner(t, "ed25519")}
	w.client = w.cp.Client()
	w.command(t, "init", w.keys, "--cluster", "lab="+w.cp.RESTConfig().Host)
	must(t, os.CopyFS(w.scripts, os.DirFS(filepath.Join(shared.Lab(t).Root(), "examples", "join"))))
	w.command(t, "sign", w.scripts, "--key", filepath.Join(w.keys, "signer"), "--serial", "1", "--target", "class "+product.HostClass)
	for _, binding := range [][3]string{
		{"hostwarrant-bootstrap", "system:node-bootstrapper", "system:bootstrappers:hostwarrant"},
		{"node-renewal", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"},
	} {
		if r := w.kubectl(t, "create", "clusterrolebinding", binding[0], "--clusterrole="+binding[1], "--group="+binding[2]); r.Code != 0 {
			t.Fatal(r.Stderr)
		}
	}
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(shared.Lab(t).Root(), "bin", "hostwarrant"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("hostwarrant %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *world) host(t *testing.T, name string) *lab.Host {
	t.Helper()
	o, err := product.HostTrust{
		Lab: shared.Lab(t), ControlPlane: w.cp, ClusterID: "lab",
		Policy: filepath.Join(w.keys, "trust-policy.yaml"), Roots: filepath.Join(w.keys, "root.pub"),
	}.HostOptions(t.Context())
	must(t, err)
	o.Name, o.RelayKey, o.Node = name, w.login.PublicKey(), true
	o.ShimConf += "kubelet-key=/var/lib/kubelet/pki/kubelet-client.key.tmp\n"
	return shared.Host(t, o)
}

func (w *world) token(t *testing.T, id string) string {
	t.Helper()
	const secret = "0123456789abcdef"
	_, err := w.client.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"auth-extra-groups": "system:bootstrappers:hostwarrant", "expiration": time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339),
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return id + "." + secret
}

// order is a phase for a host to run.
func (w *world) order(t *testing.T, h *lab.Host, phase envelope.Phase, params map[string]string) delivery.Order {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(w.scripts, string(phase)+".sh"))
	must(t, err)
	sig, err := os.ReadFile(filepath.Join(w.scripts, string(phase)+".sh.sig"))
	must(t, err)
	encoded, err := envelope.EncodeParams(params)
	must(t, err)
	id, err := envelope.NewRunID(rand.Reader)
	must(t, err)
	limits := transport.DefaultLimits()
	limits.Run = 5 * time.Minute
	return delivery.Order{
		Target: h.Target(t, w.login.PEM), Limits: limits,
		Envelope: envelope.Envelope{Phase: phase, Params: encoded, Sig: sig, Script: script, RunID: id},
	}
}

// run has the host run a phase.
func (w *world) run(t *testing.T, h *lab.Host, phase envelope.Phase, params map[string]string) delivery.Report {
	t.Helper()
	r, err := delivery.Deliver(t.Context(), w.order(t, h, phase, params), func() error { return nil })
	must(t, err)
	return r
}

func (w *world) joinParams(t *testing.T, h *lab.Host, node, token string) map[string]string {
	t.Helper()
	ca, err := w.cp.CA()
	must(t, err)
	return map[string]string{
		"KPSSH_CLUSTER_ENDPOINT": w.cp.RESTConfig().Host, "KPSSH_CLUSTER_CA_B64": base64.StdEncoding.EncodeToString(ca),
		"KPSSH_BOOTSTRAP_TOKEN": token, "KPSSH_NODE_NAME": node, "KPSSH_PROVIDER_ID": "kpssh://pool/" + h.Name,
		"KPSSH_HOST_ADDRESS": h.Addr.String(), "KPSSH_NODE_ADDRESS": h.Addr.String(), "KPSSH_VAR_nodeLabels": "pool=a",
	}
}

// pending waits for the request of a token's holder.
func (w *world) pending(t *testing.T, tokenID string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var found *certificatesv1.CertificateSigningRequest
	testkit.Eventually(t, limit, "a certificate request by "+tokenID, func() bool {
		for _, c := range w.requests(t) {
			if c.Spec.Username == "system:bootstrap:"+tokenID && len(c.Status.Conditions) == 0 {
				found = &c
			}
		}
		return found != nil
	})
	return found
}

// approve stands in for the approver.
func (w *world) approve(t *testing.T, h *lab.Host, tokenID string) {
	t.Helper()
	c := w.pending(t, tokenID)
	w.proves(t, h, c)
	c.Status.Conditions = append(c.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", LastUpdateTime: metav1.Now(),
	})
	_, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), c.Name, c, metav1.UpdateOptions{})
	must(t, err)
}

// proves wants the host's proof to name the key of the request.
func (w *world) proves(t *testing.T, h *lab.Host, c *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	params, err := envelope.EncodeParams(map[string]string{"KPSSH_NONCE": strings.Repeat("0a", 32), "KPSSH_RUN_UID": "3f1f5b0e-6d1c-4c53-9d5e-0b8f6a1c2d3e"})
	must(t, err)
	text, err := envelope.Envelope{Phase: envelope.PhaseProve, Params: params}.Encode()
	must(t, err)
	var out, errs strings.Builder
	code, err := transport.Run(t.Context(), h.Target(t, w.login.PEM), lab.RelayLimits(), text, &out, &errs, func() error { return nil })
	must(t, err)
	if want := "\nkubelet-key " + requestKey(t, c) + "\n"; code != 0 || !strings.Contains(out.String(), want) {
		t.Fatalf("the host proves (exit %d) %s%s, want%s", code, out.String(), errs.String(), want)
	}
}

// requestKey is the fingerprint of the key in a request.
func requestKey(t *testing.T, c *certificatesv1.CertificateSigningRequest) string {
	t.Helper()
	block, _ := pem.Decode(c.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	must(t, err)
	key, err := ssh.NewPublicKey(request.PublicKey)
	must(t, err)
	return ssh.FingerprintSHA256(key)
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

// node is the object of that name, nil where there is none.
func (w *world) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node, err := w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(t, err)
	return node
}

// kubectl runs it as the administrator, or as whom the arguments name.
func (w *world) kubectl(t *testing.T, args ...string) lab.Result {
	t.Helper()
	r, err := w.cp.Kubectl(t.Context(), nil, args...)
	must(t, err)
	return r
}

// want compares how a run ended and what it said.
func want(t *testing.T, r delivery.Report, exit envelope.ExitCode, said string) {
	t.Helper()
	if r.ShimExit != int(exit) || !strings.Contains(r.Transcript, said) {
		t.Fatalf("the run ended with %d, want %d and %q: %s", r.ShimExit, exit, said, r.Transcript)
	}
}
