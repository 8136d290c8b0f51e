//go:build linux

package lab_test

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

func TestControlPlaneIsRealAndClosed(t *testing.T) {
	begin := time.Now()
	cp := shared.ControlPlane(t)
	t.Logf("ready after %v", time.Since(begin))
	ctx := t.Context()
	r, err := cp.Kubectl(ctx, strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"b"}}`), "apply", "-f", "-")
	if err != nil || r.Code != 0 || r.Stdout != "configmap/x created\n" {
		t.Fatalf("kubectl apply: %+v, %v", r, err)
	}
	if r, err = cp.Kubectl(ctx, nil, "get", "configmap", "nothing"); err != nil || r.Code != 1 || !strings.Contains(r.Stderr, "NotFound") {
		t.Errorf("kubectl get of nothing: %+v, %v", r, err)
	}
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := insecure.Get(cp.RESTConfig().Host + "/api")
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("anonymous GET /api: %s, want 401", answer.Status)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	insecure.CloseIdleConnections()
}

func TestServiceAccountHasItsOwnRightsOnly(t *testing.T) {
	cp := shared.ControlPlane(t)
	ctx := t.Context()
	path, err := cp.ServiceAccountKubeconfig(ctx, "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	r, err := cp.KubectlAs(ctx, path, nil, "get", "secrets", "-A")
	if err != nil {
		t.Fatal(err)
	}
	want := `User "system:serviceaccount:default:default" cannot list resource "secrets"`
	if r.Code != 1 || !strings.Contains(r.Stderr, want) {
		t.Errorf("kubectl get secrets: %+v, want %q", r, want)
	}
	if _, err := cp.ServiceAccountKubeconfig(ctx, "default", "nobody"); err == nil {
		t.Error("ServiceAccountKubeconfig of nobody: got no error")
	}
}

func TestAPIServerStopsAndComesBackWithItsData(t *testing.T) {
	cp := shared.ControlPlane(t)
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := cp.Client().CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := cp.Client().CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{}); err == nil {
		t.Error("the stopped API server answers")
	}
	if err := cp.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := cp.Client().CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestExposeWebhookTellsWhatIsWrong(t *testing.T) {
	cp := shared.ControlPlane(t)
	ctx := t.Context()
	addr, err := cp.ReachableAddr()
	if err != nil {
		t.Fatal(err)
	}
	for name, selector := range map[string]map[string]string{"open": nil, "pods": {"a": "b"}} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 443}}}}
		if _, err := cp.Client().CoreV1().Services("default").Create(ctx, svc, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	good := netip.AddrPortFrom(addr, 9443)
	for name, c := range map[string]struct {
		service string
		port    int32
		target  netip.AddrPort
		want    string
	}{
		"a Service with pods":  {"pods", 443, good, "the Service has a selector"},
		"another port":         {"open", 444, good, "the Service has no port 444"},
		"no such Service":      {"none", 443, good, "not found"},
		"a loopback address":   {"open", 443, netip.MustParseAddrPort("127.0.0.1:9443"), "no address that an EndpointSlice may hold"},
		"a good one":           {"open", 443, good, ""},
		"a good one, moved on": {"open", 443, netip.AddrPortFrom(addr, 9444), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := cp.ExposeWebhook(ctx, "default", c.service, c.port, c.target)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("ExposeWebhook: got %v, want %q", err, c.want)
			}
		})
	}
}

func TestUsersOwnClusterIsTakenAndLeftAlone(t *testing.T) {
	cp := shared.ControlPlane(t)
	t.Setenv("KUBECONFIG", cp.Kubeconfig)
	l := newLab(t, "")
	own, err := l.StartControlPlane(t.Context(), lab.ControlPlaneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !own.External || own.Kubeconfig != cp.Kubeconfig || len(procs(t, l.ID())) != 0 {
		t.Errorf("got %+v and processes %q", own, procs(t, l.ID()))
	}
	if err := own.StopAPIServer(); err == nil {
		t.Error("StopAPIServer of the user's cluster: got no error")
	}
	if addr, err := own.ReachableAddr(); err != nil || addr != shared.Lab(t).Addr() {
		t.Errorf("ReachableAddr: got %v, %v", addr, err)
	}
}

func TestFailedStartTellsWhyAndLeavesNothing(t *testing.T) {
	before := etc(t)
	l := newLab(t, "")
	begin := time.Now()
	_, err := l.StartControlPlane(t.Context(), lab.ControlPlaneOptions{APIServerArgs: []string{"--nonsense"}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --nonsense") {
		t.Errorf("StartControlPlane: got %v, want the end of the log", err)
	}
	t.Logf("known after %v", time.Since(begin))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(machine{Etc: before}, look(t, l.ID(), l.StateDir())); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}

func TestUnbuiltControlPlaneNamesTheCommand(t *testing.T) {
	l := shared.Lab(t)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("HOSTWARRANT_CACHE", t.TempDir())
	if _, err := l.StartControlPlane(t.Context(), lab.ControlPlaneOptions{}); err == nil || !strings.Contains(err.Error(), "make control-plane") {
		t.Errorf("StartControlPlane: got %v", err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	if _, err := l.StartControlPlane(t.Context(), lab.ControlPlaneOptions{}); err == nil || !strings.Contains(err.Error(), "no etcd in") {
		t.Errorf("StartControlPlane: got %v", err)
	}
}
