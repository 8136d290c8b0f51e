//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// webhookName is how the API server calls the webhook.
const webhookName = "hostwarrant-webhook." + product.Namespace + ".svc"

// certificateWorld is the product in a lab of its own, with certificates that may be changed.
type certificateWorld struct {
	*installation
	lab        *lab.Lab
	controller *product.Program
	policyFile string
}

func newCertificateWorld(t *testing.T) *certificateWorld {
	t.Helper()
	ctx, l, cp := ownLab(t, lab.ControlPlaneOptions{})
	i := &installation{cp: cp, root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519")}
	i.document = policyDocument(t, 1, i.signer)
	var err error
	i.product, err = product.Install(ctx, product.Options{
		Lab: l, ControlPlane: cp, Roots: []byte(i.root.Line + "\n"), ClusterID: "e2e", HostNamespaces: []string{pool}, UpstreamCRDs: product.UpstreamCRDs(t),
	})
	must(t, err)
	return &certificateWorld{installation: i, lab: l, policyFile: testkit.WriteFile(t, t.TempDir(), "policy.json", i.trustPolicy(t, i.document, i.root))}
}

// address is where the webhook answers.
func (w *certificateWorld) address() string { return net.JoinHostPort(w.lab.Addr().String(), "9443") }

// startWebhook starts the webhook with flags, in place of one that runs.
func (w *certificateWorld) startWebhook(t *testing.T, flags ...string) {
	t.Helper()
	w.stopWebhook(t)
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	var err error
	w.webhook, err = w.product.StartWebhookAt(ctx, "hostwarrant-webhook", w.address(), flags...)
	must(t, err)
}

func (w *certificateWorld) stopWebhook(t *testing.T) {
	t.Helper()
	if w.webhook != nil {
		must(t, w.webhook.Kill())
		w.webhook = nil
	}
}

// ready applies the policy and waits until reviews are answered.
func (w *certificateWorld) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, w.product.ApplyPolicy(ctx, w.policyFile))
	must(t, w.webhook.Wait(ctx, "/readyz"))
}

// bundles are the caBundles of every webhook as stored now.
func (w *certificateWorld) bundles(ctx context.Context) (all [][]byte, err error) {
	api := w.cp.Client().AdmissionregistrationV1()
	v, err := api.ValidatingWebhookConfigurations().Get(ctx, "hostwarrant", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	m, err := api.MutatingWebhookConfigurations().Get(ctx, "hostwarrant", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	each := func(c admissionregistrationv1.WebhookClientConfig) { all = append(all, c.CABundle) }
	for _, h := range v.Webhooks {
		each(h.ClientConfig)
	}
	for _, h := range m.Webhooks {
		each(h.ClientConfig)
	}
	return all, nil
}

// served shakes hands with the webhook and returns its leaf; with a bundle it is checked by that.
func (w *certificateWorld) served(bundle []byte) (*x509.Certificate, error) {
	c := &tls.Config{ServerName: webhookName, MinVersion: tls.VersionTLS13, InsecureSkipVerify: bundle == nil, RootCAs: x509.NewCertPool()}
	if bundle != nil {
		c.RootCAs.AppendCertsFromPEM(bundle)
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", w.address(), c)
	if err != nil {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], conn.Close()
}

// leaf is what the webhook serves now.
func (w *certificateWorld) leaf(t *testing.T) *x509.Certificate {
	t.Helper()
	l, err := w.served(nil)
	must(t, err)
	return l
}

// secretCA is the one CA that a Secret names in ca.crt.
func (w *certificateWorld) secretCA(t *testing.T, secret string) *x509.Certificate {
	t.Helper()
	s, err := w.cp.Client().CoreV1().Secrets(product.Namespace).Get(t.Context(), secret, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	block, _ := pem.Decode(s.Data["ca.crt"])
	if block == nil {
		return nil
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return ca
}

// load calls the webhook without pause, in two ways: creates through the API server, which keeps its
// connections, and handshakes as an API server without one would make them, checked by every caBundle
// that is stored at that moment.
type load struct {
	creates, handshakes atomic.Int64
	began               time.Time
	stop                context.CancelFunc
	done                sync.WaitGroup

	mu     sync.Mutex
	failed []string
	times  int
}

const creators = 8

func (w *certificateWorld) startLoad(t *testing.T) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{began: time.Now(), stop: stop}
	t.Cleanup(stop)
	config := w.cp.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	must(t, err)
	body := profile(t, "under-load", scripts(), signatures(t, w.signer, scripts()))
	for range creators {
		l.done.Go(func() {
			for ctx.Err() == nil {
				err := client.RESTClient().Post().AbsPath("/apis/karpenter.dklesev.github.io/v1beta1/sshjoinprofiles").
					Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
				l.note(ctx, &l.creates, err)
			}
		})
	}
	l.done.Go(func() {
		for ctx.Err() == nil {
			bundles, err := w.bundles(ctx)
			for _, b := range bundles {
				if err == nil {
					_, err = w.served(b)
				}
			}
			l.note(ctx, &l.handshakes, err)
		}
	})
	return l
}

// note counts one call; what the end of the load cut off is none.
func (l *load) note(ctx context.Context, calls *atomic.Int64, err error) {
	if ctx.Err() != nil {
		return
	}
	calls.Add(1)
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times++
	if len(l.failed) < 5 {
		l.failed = append(l.failed, fmt.Sprintf("after %s: %v", time.Since(l.began).Round(time.Millisecond), err))
	}
}

// end stops the load and wants no call to have failed.
func (l *load) end(t *testing.T, what string) {
	t.Helper()
	took := time.Since(l.began)
	l.stop()
	l.done.Wait()
	t.Logf("%s: %d dry-run creates in %s (%.0f/s), %d rounds of handshakes, %d calls failed",
		what, l.creates.Load(), took.Round(100*time.Millisecond), float64(l.creates.Load())/took.Seconds(), l.handshakes.Load(), l.times)
	if l.creates.Load() < 50 || l.handshakes.Load() < 5 {
		t.Errorf("%s: that was no load", what)
	}
	if l.times > 0 {
		t.Errorf("%s: %d calls failed, at first:\n%s", what, l.times, strings.Join(l.failed, "\n"))
	}
}

// mount writes the data of a Secret into a directory as the kubelet does: into a new one, to which a
// link is turned.
func mount(dir string, data map[string][]byte) error {
	fresh, err := os.MkdirTemp(dir, "..data_")
	if err != nil {
		return err
	}
	var errs []error
	for name, content := range data {
		errs = append(errs, os.WriteFile(filepath.Join(fresh, name), content, 0o600))
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			errs = append(errs, err)
		}
	}
	link := filepath.Join(dir, "..data_tmp")
	errs = append(errs, os.Symlink(filepath.Base(fresh), link), os.Rename(link, filepath.Join(dir, "..data")))
	return errors.Join(errs...)
}

// keepMounted writes a Secret into a directory whenever it changes, late as the kubelet is, until the
// test ends, and returns when it has done so once.
func (w *certificateWorld) keepMounted(t *testing.T, secret, dir string, late time.Duration) {
	t.Helper()
	var last []byte
	sync := func() bool {
		s, err := w.cp.Client().CoreV1().Secrets(product.Namespace).Get(t.Context(), secret, metav1.GetOptions{})
		if err != nil || len(s.Data["tls.crt"]) == 0 || bytes.Equal(s.Data["tls.crt"], last) {
			return false
		}
		if last != nil {
			time.Sleep(late)
		}
		last = s.Data["tls.crt"]
		if err := mount(dir, s.Data); err != nil {
			t.Error(err)
		}
		return true
	}
	eventually(t, "Secret "+secret, sync)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			sync()
			time.Sleep(100 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}
