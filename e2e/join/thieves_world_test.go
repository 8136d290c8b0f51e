//go:build linux

package join

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/relay/prove"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// claim is a run of a host that nobody reaches, with a token: what becomes of its request is between the token's bearer, whoever
// writes the run's status, and the approver.
type claim struct {
	*world
	run, node string
	value     string // the token
}

// claims makes one for each name, of a host whose key is said to be that one. They wait for their tokens together.
func (w *world) claims(t *testing.T, key ssh.PublicKey, names ...string) map[string]*claim {
	t.Helper()
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	listed := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hostwarrant-host-keys, namespace: hostwarrant-system}\ndata:\n"
	for _, name := range names {
		listed += "  " + pool + ".host-" + name + ": " + line + "\n"
	}
	w.Apply(t, listed)
	all := map[string]*claim{}
	for i, name := range names {
		host, address := "host-"+name, fmt.Sprintf("192.0.2.%d", 100+i)
		w.Object(t, host, address, address+" "+line)
		all[name] = &claim{world: w, run: name, node: "pool-" + name}
		w.join(t, name, host, all[name].node)
	}
	for name, c := range all {
		run := w.joined(t, name, token.Issued)
		s, err := w.ControlPlane.Client().CoreV1().Secrets(pool).Get(t.Context(), token.HandoverName(run.UID), metav1.GetOptions{})
		must(t, err)
		c.value = string(s.Data[token.ValueKey])
	}
	return all
}

// asking is a request, before it is made.
type asking struct {
	template *x509.CertificateRequest
	key      crypto.Signer
	csr      *certificatesv1.CertificateSigningRequest
	edit     func(text []byte) []byte // of the PEM
}

// asks makes the request of a kubelet with the claim's token, with a change.
func (c *claim) asks(t *testing.T, key crypto.Signer, change func(*asking)) (name string, err error) {
	t.Helper()
	a := &asking{
		template: &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + c.node, Organization: []string{"system:nodes"}}}, key: key,
		csr: &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		},
		edit: func(text []byte) []byte { return text },
	}
	if change != nil {
		change(a)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, a.template, a.key)
	must(t, err)
	a.csr.Spec.Request = a.edit(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return create(t, c.bearer(t, c.value), a.csr)
}

func create(t *testing.T, by kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) (name string, err error) {
	t.Helper()
	made, err := by.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.Name, nil
}

// isDenied wants a request to be denied with those words, and the run to say so with the reason.
func (c *claim) isDenied(t *testing.T, name, reason, says string) {
	t.Helper()
	if said, want := c.decided(t, name), "Denied Hostwarrant"+reason+": "+says; !strings.HasPrefix(said, want) {
		t.Errorf("the request is %q, want %q", said, want)
	}
	if j := courier.ConditionOf(c.joined(t, c.run, reason), v1alpha1.ConditionJoined); j.Status != metav1.ConditionFalse || !strings.Contains(j.Message, name) {
		t.Errorf("Joined is %s: %s", j.Status, j.Message)
	}
}

// asksAndIsAsked makes the request of a kubelet with the claim's token and that key, and waits until only the proof is missing.
func (c *claim) asksAndIsAsked(t *testing.T, key crypto.Signer) (request string, run *v1alpha1.HostRun) {
	t.Helper()
	request, err := c.asks(t, key, nil)
	must(t, err)
	return request, c.isAsked(t)
}

// isAsked waits until the approver wants a proof, and gives the run.
func (c *claim) isAsked(t *testing.T) *v1alpha1.HostRun {
	t.Helper()
	return c.Until(t, c.run, stepLimit, func(r *v1alpha1.HostRun) bool { return r.Status.Proof != nil && r.Status.Proof.Nonce != "" })
}

// signs has a host sign what a relay asks it, by the relay's own key.
func (w *world) signs(t *testing.T, h *lab.Host, nonce, runUID string) (text, signature string) {
	t.Helper()
	question, err := prove.Question(nonce, runUID)
	must(t, err)
	var out bytes.Buffer
	code, err := transport.Run(t.Context(), h.Target(t, w.Login.PEM), lab.RelayLimits(), question, &out, io.Discard, func() error { return nil })
	must(t, err)
	if code != 0 {
		t.Fatalf("the host answers with exit code %d", code)
	}
	facts, armored := proof.Split(out.Bytes())
	return string(facts), string(armored)
}

// brings writes an answer as the relay's account does.
func (c *claim) brings(t *testing.T, text, signature string) {
	t.Helper()
	answer, err := json.Marshal(map[string]any{"status": map[string]any{"proof": map[string]any{"text": text, "signature": signature}}})
	must(t, err)
	must(t, c.patch(t, "hostwarrant-relay", c.run, "status", string(answer)))
}

// patch changes a run with the rights of one of our accounts. kubectl would want to read the sub-resource first, which none of them may.
func (w *world) patch(t *testing.T, account, run, part, text string) error {
	t.Helper()
	kubeconfig, err := w.ControlPlane.ServiceAccountKubeconfig(t.Context(), product.Namespace, account)
	must(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	as, err := client.New(config, client.Options{Scheme: w.Client.Scheme(), Mapper: w.Client.RESTMapper()})
	must(t, err)
	r, change := &v1alpha1.HostRun{ObjectMeta: metav1.ObjectMeta{Namespace: pool, Name: run}}, client.RawPatch(types.MergePatchType, []byte(text))
	if part == "" {
		return as.Patch(t.Context(), r, change)
	}
	return as.SubResource(part).Patch(t.Context(), r, change)
}

// as runs kubectl with the rights of one of our accounts, and no more.
func (w *world) as(t *testing.T, account, stdin string, args ...string) lab.Result {
	t.Helper()
	kubeconfig, err := w.ControlPlane.ServiceAccountKubeconfig(t.Context(), product.Namespace, account)
	must(t, err)
	r, err := w.ControlPlane.KubectlAs(t.Context(), kubeconfig, strings.NewReader(stdin), args...)
	must(t, err)
	return r
}
