//go:build linux

package join

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// weir stands between a minter and the API server. It counts the minter's writes, and at one of them it stops: that one and all that
// would come after it never arrive.
type weir struct {
	*httptest.Server
	mu      sync.Mutex
	left    int      // writes that may pass; negative: all
	passed  []string // those that did
	stopped chan struct{}
}

func (w *world) startWeir(t *testing.T) *weir {
	t.Helper()
	api, err := url.Parse(w.ControlPlane.RESTConfig().Host)
	must(t, err)
	ca, err := w.ControlPlane.CA()
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	proxy := httputil.NewSingleHostReverseProxy(api)
	proxy.FlushInterval = -1 // watches
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	b := &weir{left: -1}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if b.stops(r) {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// counts says of a request whether it writes what a token is about.
func counts(r *http.Request) bool {
	return r.Method != http.MethodGet && (strings.Contains(r.URL.Path, "/hostruns/") || strings.Contains(r.URL.Path, "/secrets"))
}

func (b *weir) stops(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 && b.stopped == nil {
		return r.Method != http.MethodGet
	}
	if !counts(r) || b.left < 0 {
		return false
	}
	if b.left == 0 {
		close(b.stopped)
		b.stopped = nil
		return true
	}
	b.left--
	b.passed = append(b.passed, r.Method+" "+r.URL.Path)
	return false
}

// stopAfter lets n more writes pass. The channel is closed when the next one is stopped.
func (b *weir) stopAfter(n int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left, b.passed, b.stopped = n, nil, make(chan struct{})
	return b.stopped
}

// open lets everything pass.
func (b *weir) open() (passed []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = -1
	return b.passed
}

// kubeconfig leads through the weir.
func (w *world) kubeconfig(t *testing.T, b *weir) string {
	t.Helper()
	file, err := w.ControlPlane.ServiceAccountKubeconfig(t.Context(), product.Namespace, "hostwarrant-minter")
	must(t, err)
	config, err := clientcmd.LoadFromFile(file)
	must(t, err)
	for _, c := range config.Clusters {
		c.Server, c.TLSServerName = b.URL, ""
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw})
	}
	path := t.TempDir() + "/kubeconfig"
	must(t, clientcmd.WriteToFile(*config, path))
	return path
}

// A minter is killed by force before each of its writes in turn, from the finalizer to the last deletion. The next one goes on: the run
// has one token or none, and in the end nothing is left.
func TestAMinterKilledBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--leader-elect=false")
	must(t, w.minter.Kill())
	b := w.startWeir(t)
	w.flags = append(w.flags, "--kubeconfig="+w.kubeconfig(t, b))
	w.away(t, "host-k", "192.0.2.50")
	for giving, least := range map[bool]int{true: 5, false: 4} { // finalizer, record, two Secrets, issued; two Secrets, status, finalizer
		n := 0
		for done := false; !done; n++ {
			t.Run(fmt.Sprintf("giving %t, before write %d", giving, n), func(t *testing.T) { done = w.killedBefore(t, b, giving, n) })
			if t.Failed() {
				return
			}
		}
		if n-1 < least {
			t.Errorf("giving %t takes %d writes, want at least %d", giving, n-1, least)
		}
	}
}

// killedBefore kills the minter before its n-th write of giving a token, or of taking one back. It says whether there was none.
func (w *world) killedBefore(t *testing.T, b *weir, giving bool, n int) (done bool) {
	run := fmt.Sprintf("killed-%t-%d", giving, n)
	b.open()
	w.startMinter(t)
	var stopped <-chan struct{}
	if giving {
		stopped = b.stopAfter(n)
	}
	w.join(t, run, "host-k", "pool-k")
	if !giving {
		w.joined(t, run, token.Issued)
		stopped = b.stopAfter(n)
		w.kubectl(t, "-n", pool, "delete", "hostrun", run, "--wait=false")
	}
	done = w.untilStopped(t, run, giving, stopped)
	must(t, w.minter.Kill())
	t.Logf("written before: %v", b.open())
	w.startMinter(t)
	if giving {
		r := w.joined(t, run, token.Issued)
		if all := w.tokens(t); len(all) != 2 || all[0] != "kube-system/"+token.BootstrapName(r.Status.TokenID) {
			t.Errorf("tokens %v, want those of %s", all, r.Status.TokenID)
		}
		w.kubectl(t, "-n", pool, "delete", "hostrun", run, "--wait=false")
	}
	w.nothingLeft(t)
	must(t, w.minter.Kill())
	return done
}

// untilStopped waits until the weir has stopped a write; true is that the minter was done before.
func (w *world) untilStopped(t *testing.T, run string, giving bool, stopped <-chan struct{}) (done bool) {
	t.Helper()
	limit := time.After(stepLimit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			return false
		case <-tick.C:
			if giving && courier.ConditionOf(w.Read(t, run), v1alpha1.ConditionJoined).Reason == token.Issued || !giving && w.isGone(t, run) {
				return true
			}
		case <-limit:
			t.Fatalf("the minter writes nothing; its log:\n%s", w.minter.Tail(20))
		}
	}
}

func (w *world) isGone(t *testing.T, run string) bool {
	t.Helper()
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: pool, Name: run}, &v1alpha1.HostRun{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}
