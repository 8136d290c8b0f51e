package servingsecret_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/hostwarrant/hostwarrant/webhook/servingsecret"
)

const (
	namespace = "hostwarrant-system"
	name      = "hostwarrant-webhook-ca"
)

func secret(labels, annotations map[string]string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1", Labels: labels, Annotations: annotations},
		Data:       data,
	}
}

// issued is what cert-manager's Certificate, or a person, would bring: a leaf and another CA.
func issued() map[string][]byte {
	return map[string][]byte{"ca.crt": []byte("their CA"), "tls.crt": []byte("their leaf"), "tls.key": []byte("their key")}
}

func TestCheckTellsWhoseTheSecretIs(t *testing.T) {
	mine := map[string]string{servingsecret.Label: servingsecret.LabelValue}
	for name, c := range map[string]struct {
		secret *corev1.Secret
		fits   bool
	}{
		"empty":                        {secret(nil, nil, nil), true},
		"empty values":                 {secret(nil, nil, map[string][]byte{"tls.crt": {}}), true},
		"with our label":               {secret(mine, nil, issued()), true},
		"made by the authority":        {secret(nil, map[string]string{"cert-manager.io/allow-direct-injection": "true"}, issued()), true},
		"somebody's":                   {secret(nil, nil, issued()), false},
		"somebody's, one value":        {secret(nil, nil, map[string][]byte{"note": []byte("x")}), false},
		"our label with another value": {secret(map[string]string{servingsecret.Label: "external"}, nil, issued()), false},
		"an annotation that says no":   {secret(nil, map[string]string{"cert-manager.io/allow-direct-injection": "false"}, issued()), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := servingsecret.Check(c.secret)
			if (err == nil) != c.fits {
				t.Fatal(err)
			}
			if err != nil && !strings.Contains(err.Error(), "--serving-secret") {
				t.Errorf("%v does not say what to do", err)
			}
		})
	}
}

// api is an httptest API server that holds one Secret.
type api struct {
	mu     sync.Mutex
	secret *corev1.Secret
	writes int
	server *httptest.Server
}

func newAPI(t *testing.T, s *corev1.Secret) *api {
	t.Helper()
	a := &api{secret: s}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var answer any = a.secret
	switch {
	case r.Method == http.MethodPut:
		var s corev1.Secret
		if json.NewDecoder(r.Body).Decode(&s) != nil || s.ResourceVersion != a.secret.ResourceVersion {
			w.WriteHeader(http.StatusConflict)
			return
		}
		a.writes++
		s.ResourceVersion += "1"
		a.secret = &s
		answer = a.secret
	case r.URL.Query().Get("sendInitialEvents") != "": // not known here: the client falls back to a list
		w.WriteHeader(http.StatusUnprocessableEntity)
		answer = &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity}
	case r.URL.Query().Get("watch") != "":
		a.mu.Unlock()
		defer a.mu.Lock()
		<-r.Context().Done()
		return
	case !strings.HasSuffix(r.URL.Path, "/"+name):
		answer = &corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}, Items: []corev1.Secret{*a.secret}}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		return // the client has gone
	}
}

func (a *api) state() (corev1.Secret, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.secret, a.writes
}

// run lets cert-manager's authority look at the Secret once, and returns after it had time to act.
func (a *api) run(t *testing.T, config *rest.Config) {
	t.Helper()
	klog.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	d := &authority.DynamicAuthority{SecretNamespace: namespace, SecretName: name, RESTConfig: config}
	if err := d.Run(ctx); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}

// TestTheAuthorityAloneWritesOverAForeignSecret is why there is a guard.
func TestTheAuthorityAloneWritesOverAForeignSecret(t *testing.T) {
	a := newAPI(t, secret(nil, nil, issued()))
	a.run(t, &rest.Config{Host: a.server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if s, writes := a.state(); writes == 0 || string(s.Data["tls.crt"]) == "their leaf" {
		t.Fatal("cert-manager's authority has learned to leave a foreign Secret alone: the guard may go")
	}
}

func TestGuardLeavesAForeignSecretAlone(t *testing.T) {
	for what, c := range map[string]struct {
		secret *corev1.Secret
		filled bool
	}{
		"somebody's":     {secret(nil, nil, issued()), false},
		"empty":          {secret(nil, nil, nil), true},
		"with our label": {secret(map[string]string{servingsecret.Label: servingsecret.LabelValue}, nil, issued()), true},
	} {
		t.Run(what, func(t *testing.T) {
			a := newAPI(t, c.secret)
			a.run(t, servingsecret.Guard(&rest.Config{Host: a.server.URL}, types.NamespacedName{Namespace: namespace, Name: name}))
			s, writes := a.state()
			if filled := strings.HasPrefix(string(s.Data["tls.crt"]), "-----BEGIN CERTIFICATE"); filled != c.filled || filled != (writes > 0) {
				t.Fatalf("filled %v after %d writes; want %v", filled, writes, c.filled)
			}
			if c.filled && servingsecret.Check(&s) != nil {
				t.Error("what was filled is not known as ours at the next start")
			}
		})
	}
}

func TestServingDoesNotStartFromAForeignSecret(t *testing.T) {
	at := types.NamespacedName{Namespace: namespace, Name: name}
	for what, c := range map[string]struct {
		secret *corev1.Secret
		starts bool
	}{
		"somebody's":     {secret(nil, nil, issued()), false},
		"empty":          {secret(nil, nil, nil), true},
		"with our label": {secret(map[string]string{servingsecret.Label: servingsecret.LabelValue}, nil, issued()), true},
	} {
		t.Run(what, func(t *testing.T) {
			a, started := newAPI(t, c.secret), false
			config := &rest.Config{Host: a.server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			var said strings.Builder
			err := servingsecret.Start(ctx, config, at, slog.New(slog.NewTextHandler(&said, nil)), func(context.Context) error {
				started = true
				return nil
			})
			if err != nil || started != c.starts || strings.Contains(said.String(), "did not write") == c.starts {
				t.Errorf("started %v: %v, %s", started, err, said.String())
			}
		})
	}
}
