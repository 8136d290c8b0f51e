package snapshot

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// streaming is an API server that answers watches as WatchList has it: every stored object as an
// event, made when it is sent, and then the bookmark that ends them.
func streaming(t *testing.T, profiles int, filler string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			http.Error(w, "only watches are answered", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		send := func(kind string, o any) {
			if err := out.Encode(map[string]any{"type": kind, "object": o}); err != nil {
				t.Logf("sending: %v", err)
			}
		}
		kind, apiVersion := "SSHHost", "karpenter.dklesev.github.io/v1beta1"
		for suffix, of := range map[string][2]string{
			"/sshjoinprofiles": {"SSHJoinProfile", apiVersion}, "/sshnodeclasses": {"SSHNodeClass", apiVersion}, "/nodes": {"Node", "v1"},
			"/hostruns": {"HostRun", "hostwarrant.dev/v1alpha1"}, "/ledgers": {"Ledger", "hostwarrant.dev/v1alpha1"},
			"/hoststatements": {"HostStatement", "hostwarrant.dev/v1alpha1"},
		} {
			if strings.HasSuffix(r.URL.Path, suffix) {
				kind, apiVersion = of[0], of[1]
			}
		}
		if kind == "SSHJoinProfile" {
			for i := range profiles {
				p := profileOf(fmt.Sprintf("p-%04d", i), filler)
				p.SetResourceVersion(strconv.Itoa(i + 1))
				send("ADDED", p.Object)
			}
		}
		send("BOOKMARK", map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(profiles + 1), "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
		}})
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flushing the watch: %v", err)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s
}

// servedKinds is a mapper for the kinds of the snapshot.
func servedKinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range New(nil, nil, nil, nil).kinds {
		scope := meta.RESTScopeRoot
		if k.Kind == "SSHHost" || k.Kind == "HostRun" {
			scope = meta.RESTScopeNamespace
		}
		m.Add(k.WithVersion(k.prefer), scope)
	}
	return m
}

// The bound of the whole program is 96 MiB resident at 1,000 profiles of four scripts of 16 KiB, the
// reading of them included.
func TestReadingManyProfilesStaysSmall(t *testing.T) {
	const profiles, bound = 1000, 96 << 20
	server := streaming(t, profiles, strings.Repeat("x", 16<<10))
	mapper := servedKinds()
	c, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper, DefaultTransform: Slim})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := c.Start(t.Context()); err != nil {
			t.Logf("cache: %v", err)
		}
	}()
	s := New(c, mapper, func(ledger.Policy) {}, slog.New(slog.DiscardHandler))
	began := time.Now()
	go func() {
		if err := s.Start(t.Context()); err != nil {
			t.Logf("store: %v", err)
		}
	}()
	for s.Ready() != nil {
		if time.Since(began) > time.Minute {
			t.Fatalf("not ready: %v", s.Ready())
		}
		time.Sleep(time.Millisecond)
	}
	if n := s.Kinds()["SSHJoinProfile"].Objects; n != profiles || s.Profile("p-0999") == nil {
		t.Errorf("%d profiles are known", n)
	}
	peak := peakResident(t)
	t.Logf("%d profiles read in %s, at most %d MiB resident, the API server of the test included", profiles, time.Since(began).Round(time.Millisecond), peak>>20)
	if peak > bound {
		t.Errorf("%d bytes resident; want no more than %d", peak, bound)
	}
}

// peakResident is the most memory that this process ever had, as the kernel says.
func peakResident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		testkit.Missing(t, "needs /proc: %v", err)
	}
	found := regexp.MustCompile(`VmHWM:\s+([0-9]+) kB`).FindSubmatch(text)
	if found == nil {
		testkit.Missing(t, "needs VmHWM in /proc/self/status (Linux)")
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
