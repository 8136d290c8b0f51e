//go:build linux

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// changeLimit bounds a change of certificates: the gate's ten seconds, the kubelet's lateness, the watch.
const changeLimit = 90 * time.Second

// within polls until done says so.
func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s", limit, what)
		}
	}
}

// Our own CA: leaf renewed, CA replaced, Secret deleted and put back, and no call fails meanwhile.
func TestSelfManagedCertificatesChangeWithoutAFailedCall(t *testing.T) {
	w := newCertificateWorld(t)
	w.startWebhook(t, "--serving-leaf-validity=45s")
	var err error
	w.controller, err = w.product.StartController(t.Context())
	must(t, err)
	w.ready(t)

	l := w.startLoad(t)
	first := w.leaf(t)
	within(t, changeLimit, "the leaf to be renewed", func() bool { return !w.leaf(t).Equal(first) })
	l.end(t, "leaf renewed")

	const secret = "hostwarrant-webhook-ca"
	l = w.startLoad(t)
	former := w.secretCA(t, secret)
	w.succeeds(t, nil, "-n", product.Namespace, "patch", "secret", secret, "--type=json", "-p", `[{"op":"remove","path":"/data"}]`)
	w.awaitCA(t, secret, former.Raw)
	l.end(t, "CA replaced")

	l = w.startLoad(t)
	former = w.secretCA(t, secret)
	w.succeeds(t, nil, "-n", product.Namespace, "delete", "secret", secret)
	time.Sleep(3 * time.Second) // replicas serve from memory
	w.succeeds(t, nil, "apply", "--server-side", "-f", filepath.Join(testkit.Root(t), "manifests", "base", "serving-secret.yaml"))
	w.awaitCA(t, secret, former.Raw)
	l.end(t, "Secret deleted and put back")
}

// awaitCA waits until the Secret names another CA and the webhook serves what that signed.
func (w *certificateWorld) awaitCA(t *testing.T, secret string, former []byte) {
	t.Helper()
	within(t, changeLimit, "another CA in Secret "+secret, func() bool {
		ca := w.secretCA(t, secret)
		return ca != nil && string(ca.Raw) != string(former)
	})
	ca := w.secretCA(t, secret)
	within(t, changeLimit, "a leaf of the new CA to be served", func() bool { return w.leaf(t).CheckSignatureFrom(ca) == nil })
}

// A Secret that somebody brought is never written, mounted or under our own name.
func TestABroughtSecretIsNeverWritten(t *testing.T) {
	w := newCertificateWorld(t)
	secrets := w.cp.Client().CoreV1().Secrets(product.Namespace)
	w.succeeds(t, nil, "-n", product.Namespace, "delete", "secret", "hostwarrant-webhook-ca")
	w.succeeds(t, nil, "-n", product.Namespace, "create", "secret", "generic", "hostwarrant-webhook-ca", "--from-literal=ca.crt=mine", "--from-literal=tls.crt=other", "--from-literal=tls.key=key")
	before, err := secrets.Get(t.Context(), "hostwarrant-webhook-ca", metav1.GetOptions{})
	must(t, err)
	w.startWebhook(t)
	eventually(t, "the webhook to have tried", func() bool {
		return strings.Contains(w.webhook.Tail(200), "holds data that the self-managed CA did not write")
	})
	after, err := secrets.Get(t.Context(), "hostwarrant-webhook-ca", metav1.GetOptions{})
	must(t, err)
	if after.ResourceVersion != before.ResourceVersion {
		t.Error("the Secret was written")
	}
	if code, body := get(t, w.webhook.Health+"/readyz"); code == 200 {
		t.Errorf("ready without a certificate: %s", body)
	}
}

// cert-manager's: see manifests/components/cert-manager.
const (
	servingCertificate = "hostwarrant-webhook-serving"
	issuerCertificate  = "hostwarrant-webhook-issuer"
)

// startCertManager starts cert-manager's controllers with its own CRDs.
func (w *certificateWorld) startCertManager(t *testing.T) (stop func()) {
	t.Helper()
	dir := certManager(t)
	w.succeeds(t, nil, "apply", "--server-side", "-f", filepath.Join(dir, "crds"))
	w.succeeds(t, nil, "wait", "--for=condition=Established", "crd", "certificates.cert-manager.io", "--timeout=30s")
	w.kubectl(t, nil, "create", "namespace", "cert-manager")
	p, err := w.lab.StartProgram("certmanager", exec.Command(filepath.Join(dir, "certmanager"), w.cp.Kubeconfig))
	must(t, err)
	return func() { must(t, p.Stop()) }
}

// certManager is the directory that e2e/certmanager/build.sh made.
func certManager(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(testkit.Root(t), "e2e", "certmanager", "build.sh"), "--print").Output()
	if err != nil {
		testkit.Missing(t, "cert-manager is not built: run e2e/certmanager/build.sh")
	}
	return strings.TrimSpace(string(out))
}

// issueAgain asks cert-manager to issue a Certificate now, as `cmctl renew` does.
func (w *certificateWorld) issueAgain(t *testing.T, certificate string) {
	t.Helper()
	w.succeeds(t, nil, "-n", product.Namespace, "patch", "certificate", certificate, "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Issuing","status":"True","reason":"ManuallyTriggered","message":"by hand","lastTransitionTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}]}}`)
}

// cert-manager's certificates: leaf renewed, CA replaced, and no call fails meanwhile, though a
// mounted Secret changes seconds later than the Secret. Afterwards neither needs the other.
func TestCertManagerCertificatesChangeWithoutAFailedCall(t *testing.T) {
	w := newCertificateWorld(t)
	stop := w.startCertManager(t)
	component := filepath.Join(testkit.Root(t), "manifests", "components", "cert-manager")
	eventually(t, "cert-manager's kinds", func() bool {
		return w.kubectl(t, nil, "apply", "--server-side", "-f", filepath.Join(component, "certificates.yaml")).Code == 0
	})
	w.succeeds(t, nil, "apply", "--server-side", "-f", filepath.Join(component, "rbac.yaml"))
	mounted := filepath.Join(w.lab.StateDir(), "serving")
	must(t, os.Mkdir(mounted, 0o755))
	w.keepMounted(t, servingCertificate, mounted, 3*time.Second)
	w.startWebhook(t, "--serving-certificate-dir="+mounted)
	var err error
	w.controller, err = w.product.StartControllerWith(t.Context(), "--serving-secret="+product.Namespace+"/"+servingCertificate)
	must(t, err)
	w.ready(t)

	l := w.startLoad(t)
	first := w.leaf(t)
	w.issueAgain(t, servingCertificate)
	within(t, changeLimit, "the renewed certificate to be served", func() bool { return !w.leaf(t).Equal(first) })
	l.end(t, "certificate renewed")

	l = w.startLoad(t)
	former := w.secretCA(t, servingCertificate)
	w.succeeds(t, nil, "-n", product.Namespace, "delete", "secret", issuerCertificate)
	within(t, changeLimit, "another CA", func() bool {
		ca := w.secretCA(t, issuerCertificate)
		return ca != nil && !ca.Equal(former)
	})
	w.issueAgain(t, servingCertificate)
	w.awaitCA(t, servingCertificate, former.Raw)
	l.end(t, "CA replaced")

	t.Run("the Secret is cert-manager's alone", func(t *testing.T) {
		s, err := w.cp.Client().CoreV1().Secrets(product.Namespace).Get(t.Context(), servingCertificate, metav1.GetOptions{})
		must(t, err)
		for _, m := range s.ManagedFields {
			if strings.Contains(m.Manager, "hostwarrant") {
				t.Errorf("%s wrote the Secret", m.Manager)
			}
		}
	})
	w.showNoLoop(t, mounted, stop)
}

// showNoLoop stops one while the other starts, and the other way round (G18).
func (w *certificateWorld) showNoLoop(t *testing.T, mounted string, stop func()) {
	t.Helper()
	unsigned, signed := profile(t, "loop", scripts(), nil), profile(t, "loop", scripts(), signatures(t, w.signer, scripts()))
	judges := func(t *testing.T) {
		t.Helper()
		eventually(t, "signed profiles to be admitted", func() bool {
			return w.kubectl(t, signed, "create", "-f", "-", "--dry-run=server").Code == 0
		})
		w.refused(t, unsigned, []string{"create", "-f", "-", "--dry-run=server"}, "Unsigned")
	}
	t.Run("cert-manager is stopped, the webhook restarts", func(t *testing.T) {
		stop()
		w.startWebhook(t, "--serving-certificate-dir="+mounted)
		judges(t)
	})
	t.Run("the webhook is stopped, cert-manager is installed again", func(t *testing.T) {
		w.stopWebhook(t)
		stop := w.startCertManager(t)
		defer stop()
		w.succeeds(t, nil, "-n", product.Namespace, "annotate", "certificate", servingCertificate, "e2e=again")
		w.issueAgain(t, servingCertificate)
		eventually(t, "cert-manager to work", func() bool {
			return w.kubectl(t, nil, "-n", product.Namespace, "wait", "certificate", servingCertificate, "--for=condition=Ready", "--timeout=1s").Code == 0
		})
		w.startWebhook(t, "--serving-certificate-dir="+mounted)
		ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
		defer cancel()
		must(t, w.webhook.Wait(ctx, "/readyz"))
		judges(t)
	})
}
