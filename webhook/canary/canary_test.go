package canary

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/internal/drift"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

const namespace = "hostwarrant-system"

func denial(webhook, rest string) string {
	return fmt.Sprintf("admission webhook %q denied the request: %s", webhook, rest)
}

// TestOnlyOurRefusalCounts: a refusal by somebody else, or of another canary, shows nothing.
func TestOnlyOurRefusalCounts(t *testing.T) {
	const name, nonce = "hostwarrant-canary-00112233445566aa", "00112233445566aa"
	host := Kinds()[1]
	status := func(message string) []byte {
		text, err := json.Marshal(metav1.Status{Message: message})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := "SSHHost/" + name + ": Canary: admission is in the path, nonce " + nonce
	for what, c := range map[string]struct {
		code int
		body []byte
		want Result
	}{
		"ours":                               {403, status(denial("objects.hostwarrant.dev", good)), Seen},
		"admitted":                           {201, []byte("{}"), NotAsked},
		"another webhook":                    {403, status(denial("evil.example.com", good)), Unexpected},
		"ours, that of policies":             {403, status(denial("policy.hostwarrant.dev", good)), Unexpected},
		"another object":                     {403, status(denial("objects.hostwarrant.dev", strings.Replace(good, "SSHHost/", "SSHNodeClass/", 1))), Unexpected},
		"another reason":                     {403, status(denial("objects.hostwarrant.dev", strings.Replace(good, ": Canary:", ": Unsigned:", 1))), Unexpected},
		"the reason in another place":        {403, status(denial("objects.hostwarrant.dev", "SSHHost/"+name+": Unsigned: Canary: "+nonce)), Unexpected},
		"without the nonce":                  {403, status(denial("objects.hostwarrant.dev", "SSHHost/"+name+": Canary: x")), Unexpected},
		"a webhook that does not answer":     {500, status(`failed calling webhook "objects.hostwarrant.dev": ` + good), Unexpected},
		"a ValidatingAdmissionPolicy":        {422, status("ValidatingAdmissionPolicy 'x' denied request: " + good), Unexpected},
		"what is no answer of an API server": {502, []byte("<html>"), Unexpected},
	} {
		t.Run(what, func(t *testing.T) {
			got, why := read(host, name, nonce, c.code, c.body)
			if got != c.want || (got == Seen) != (why == "") {
				t.Errorf("%s (%s), want %s", got, why, c.want)
			}
		})
	}
}

// server is an httptest API server: it knows what it serves, and answers canaries.
type server struct {
	*httptest.Server
	answer func(kind, name string) (int, string)
	seen   []string // method, path, query and token of each canary
}

var bodyName = regexp.MustCompile(`hostwarrant-canary-[0-9a-f]{16}`)

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	list := func(gv string, resources ...metav1.APIResource) any {
		return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: gv, APIResources: resources}
	}
	version := func(group string, versions ...string) metav1.APIGroup {
		g := metav1.APIGroup{Name: group}
		for _, v := range versions {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v})
		}
		return g
	}
	var answer any
	switch {
	case r.Method == http.MethodPost:
		s.post(w, r)
		return
	case r.URL.Path == "/apis":
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{version("apps", "v1"), version(object.GroupKPSSH, "v1", "v1beta1")}}
	case strings.HasPrefix(r.URL.Path, "/apis/"+object.GroupKPSSH+"/"):
		answer = list(strings.TrimPrefix(r.URL.Path, "/apis/"), metav1.APIResource{Name: "sshhosts/status", Kind: "SSHHost", Namespaced: true},
			metav1.APIResource{Name: "sshhosts", Kind: "SSHHost", Namespaced: true}, metav1.APIResource{Name: "others", Kind: "Other"})
	default:
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
	}
	reply(w, answer)
}

// reply writes JSON; a client that has gone does not read it.
func reply(w io.Writer, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		return
	}
}

func (s *server) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.seen = append(s.seen, fmt.Sprintf("%s?%s %s", r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization")))
	code, message := s.answer("SSHHost", bodyName.FindString(string(body)))
	w.WriteHeader(code)
	reply(w, metav1.Status{Message: message})
}

func (s *server) prober(t *testing.T, stored ...client.Object) *Prober {
	t.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, text, err := net.SplitHostPort(at.Host)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	port := int32(number)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{host}}}, Ports: []discoveryv1.EndpointPort{{Port: &port}},
	}
	config := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca, ServerName: "example.com"}}
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(append(stored, slice)...).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, name string, o, request client.Object, _ ...client.SubResourceCreateOption) error {
			if name != "token" || o.GetName() != Account || o.GetNamespace() != namespace {
				return fmt.Errorf("a %s of %s/%s is asked for", name, o.GetNamespace(), o.GetName())
			}
			token, ok := request.(*authenticationv1.TokenRequest)
			if !ok {
				return errors.New("no TokenRequest")
			}
			token.Status.Token = "canary"
			return nil
		},
	}).Build()
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Prober{Config: config, Client: api, Reader: api, Discovery: asked, Namespace: namespace, Now: time.Now}
}

// TestProbeRefusesAForeignCertificate against an httptest API server whose certificate is not for
// kubernetes.default.svc: it must not be spoken to.
func TestProbeRefusesAForeignCertificate(t *testing.T) {
	s := newServer(t)
	s.answer = func(string, string) (int, string) { return 201, "" }
	outcomes, err := s.prober(t).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Result != Unreachable || !strings.Contains(o.What, "certificate is valid for") {
			t.Errorf("%s: %s (%s)", o.Name, o.Result, o.What)
		}
	}
	if len(outcomes) != 2 || len(s.seen) != 0 {
		t.Errorf("%d outcomes; the server saw %v", len(outcomes), s.seen)
	}
}

func TestOneCanary(t *testing.T) {
	served := Served{Kinds()[1], "v1beta1", "sshhosts"}
	for name, c := range map[string]struct {
		answer func(kind, name string) (int, string)
		stored bool
		want   Result
	}{
		"refused by us": {func(kind, name string) (int, string) {
			return 403, denial("objects.hostwarrant.dev", kind+"/"+name+": Canary: nonce "+strings.TrimPrefix(name, Prefix))
		}, false, Seen},
		"admitted":            {func(string, string) (int, string) { return 201, "" }, false, NotAsked},
		"admitted and stored": {func(string, string) (int, string) { return 201, "" }, true, Stored},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			p := s.prober(t)
			s.answer = func(kind, name string) (int, string) {
				if c.stored {
					u := &unstructured.Unstructured{}
					u.SetGroupVersionKind(schema.GroupVersionKind{Group: object.GroupKPSSH, Version: "v1beta1", Kind: "SSHHost"})
					u.SetNamespace(namespace)
					u.SetName(name)
					if err := p.Client.Create(context.Background(), u); err != nil {
						t.Error(err)
					}
				}
				return c.answer(kind, name)
			}
			o := p.one(t.Context(), s.Client(), strings.TrimPrefix(s.URL, "https://"), served)
			if o.Result != c.want {
				t.Fatalf("%s (%s), want %s", o.Result, o.What, c.want)
			}
			if len(s.seen) != 1 || !strings.HasPrefix(s.seen[0], "/apis/"+object.GroupKPSSH+"/v1beta1/namespaces/"+namespace+"/sshhosts?dryRun=All&") {
				t.Errorf("the API server saw %v", s.seen)
			}
			left := &unstructured.UnstructuredList{}
			left.SetGroupVersionKind(schema.GroupVersionKind{Group: object.GroupKPSSH, Version: "v1beta1", Kind: "SSHHostList"})
			if err := p.Client.List(t.Context(), left); err == nil && len(left.Items) > 0 {
				t.Errorf("%d canaries are left", len(left.Items))
			}
		})
	}
}

func TestEveryServedVersionAndEndpointIsAsked(t *testing.T) {
	s := newServer(t)
	p := s.prober(t)
	kinds, err := p.served()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range kinds {
		got = append(got, k.Name+" "+k.Version+" "+k.Resource)
	}
	if diff := cmp.Diff([]string{"SSHHost v1 sshhosts", "SSHHost v1beta1 sshhosts"}, got); diff != "" {
		t.Error(diff)
	}
	token, err := p.account(t.Context())
	if err != nil || token != "canary" {
		t.Errorf("%q, %v", token, err)
	}
	empty := &Prober{Reader: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}
	if _, err := empty.endpoints(t.Context()); err == nil {
		t.Error("no API server is known, and that is no error")
	}
}

// A kind that an aggregated API server has gets no canary, and is not taken for one that does.
func TestAKindThatIsServedElsewhereGetsNoCanary(t *testing.T) {
	registration := func(name string, service map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": "x"}}}
		if service != nil {
			u.Object["spec"] = map[string]any{"service": service}
		}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		u.SetName(name)
		return u
	}
	kind := func(name string) Served {
		for _, k := range Kinds() {
			if k.Name == name {
				return Served{k, map[string]string{object.GroupStorage: "v1beta1", object.GroupKubescape: "v1"}[k.Group], "x"}
			}
		}
		t.Fatalf("no kind %s", name)
		return Served{}
	}
	profile, rules, host := kind(object.KindContainerProfile), kind(object.KindRules), kind(object.KindHost)
	s := newServer(t)
	p := s.prober(t, registration("v1beta1."+object.GroupStorage, map[string]any{"namespace": "kubescape", "name": "storage", "port": int64(443)}), registration("v1."+object.GroupKubescape, nil))
	here, elsewhere, err := p.homes(t.Context(), []Served{host, profile, rules})
	if err != nil || len(here) != 2 || here[0].Name != host.Name || here[1].Name != rules.Name {
		t.Errorf("%+v, %v", here, err)
	}
	if len(elsewhere) != 1 || elsewhere[0].Name != profile.Name || elsewhere[0].Result != Aggregated || elsewhere[0].Endpoint != "kubescape/storage" {
		t.Errorf("%+v", elsewhere)
	}
	if _, _, err := s.prober(t).homes(t.Context(), []Served{profile}); err == nil {
		t.Error("a kind of which nobody says who serves it")
	}
	if _, _, err := s.prober(t, registration("v1."+object.GroupKubescape, map[string]any{})).homes(t.Context(), []Served{host}); err != nil {
		t.Errorf("kinds that are never aggregated are asked for: %v", err)
	}
}

// TestTheConditionNamesTheWorstCause over stand-ins for canaries and drift.
func TestTheConditionNamesTheWorstCause(t *testing.T) {
	host := Served{Kinds()[1], "v1beta1", "sshhosts"}
	outcome := func(r Result) Outcome { return Outcome{host, "10.0.0.1:6443", r, "what"} }
	missing := drift.Difference{Kind: "ValidatingWebhookConfiguration", Name: "hostwarrant", What: "is missing"}
	changed := drift.Difference{Kind: "ValidatingWebhookConfiguration", Name: "hostwarrant", What: "webhooks[0].failurePolicy differs from what is shipped"}
	for name, c := range map[string]struct {
		outcomes []Outcome
		drift    []drift.Difference
		err      error
		want     string
		says     string
	}{
		"all is well":                         {[]Outcome{outcome(Seen)}, nil, nil, "True CanariesRefused", "1 canaries"},
		"admitted":                            {[]Outcome{outcome(Seen), outcome(NotAsked)}, []drift.Difference{missing}, nil, "False NotAsked", "SSHHost v1beta1 at 10.0.0.1:6443"},
		"stored":                              {[]Outcome{outcome(NotAsked), outcome(Stored)}, nil, nil, "False CanaryStored", "what"},
		"one endpoint is silent":              {[]Outcome{outcome(Seen), outcome(Unreachable)}, nil, nil, "False Unreachable", "10.0.0.1"},
		"a field differs":                     {[]Outcome{outcome(Seen)}, []drift.Difference{changed}, nil, "False ConfigurationDrift", "webhooks[0].failurePolicy"},
		"missing":                             {[]Outcome{outcome(Unexpected)}, []drift.Difference{changed, missing}, nil, "False ConfigurationMissing", "is missing"},
		"a kind lives elsewhere":              {[]Outcome{outcome(Seen), outcome(Aggregated)}, nil, nil, "True CanariesRefusedOthersAggregated", "1 canaries were refused by the webhook, and nothing differs from what is shipped; served by aggregated API servers, which ask no webhook: SSHHost v1beta1 (by 10.0.0.1:6443)"},
		"elsewhere, and another is not asked": {[]Outcome{outcome(NotAsked), outcome(Aggregated)}, nil, nil, "False NotAsked", "what"},
		"nothing is known":                    {nil, nil, errors.New("no token"), "False Unknown", "no token"},
	} {
		t.Run(name, func(t *testing.T) {
			counters, err := NewMetrics(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			var got metav1.Condition
			var events []string
			event := func(_ context.Context, _ corev1.ObjectReference, reason, _ string) bool {
				events = append(events, reason)
				return true
			}
			m := &Monitor{
				Probe: func(context.Context) ([]Outcome, error) { return c.outcomes, c.err },
				Drift: func(context.Context) ([]drift.Difference, error) { return c.drift, nil },
				Set: func(_ context.Context, condition metav1.Condition) (bool, bool, error) {
					first := got.Type == ""
					got = condition
					return first, first, nil
				},
				Warning: event, Normal: event, Metrics: counters, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Interval: time.Minute,
			}
			in := m.Round(t.Context())
			m.Round(t.Context())
			if state := string(got.Status) + " " + got.Reason; state != c.want || !strings.Contains(got.Message, c.says) || in != strings.HasPrefix(c.want, "True") {
				t.Errorf("%s: %s; in the path %v", state, got.Message, in)
			}
			if len(events) != 1 || events[0] != got.Reason {
				t.Errorf("events %v, want one on the transition", events)
			}
		})
	}
}

func TestACanaryDoesNothingIfStored(t *testing.T) {
	for _, k := range Kinds() {
		text, err := json.Marshal(k.body("v1", namespace, Prefix+newNonce()))
		if err != nil {
			t.Fatal(err)
		}
		if !bodyName.Match(text) {
			t.Errorf("%s: the name is not a canary's", k.Name)
		}
		if k.Name == object.KindHost {
			h, err := object.ParseHost(text)
			if err != nil || h.ExecMode != object.ExecVerified || h.TrustedSigners[0] != nobodysKey() {
				t.Errorf("%v, %+v", err, h)
			}
		}
	}
}
