package servingsecret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// maxSecret is the most that the API server stores in a Secret (MaxSecretSize), as base64 in JSON, with room for metadata.
const maxSecret = 2 << 20

// Guard returns a copy of config for the self-managed CA. Over it a write of the named Secret is sent
// only if Check lets it: a Secret that is empty is marked with the label as it is filled, and one that
// was swapped for somebody else's while we run is left alone. All other requests pass as they are.
func Guard(config *rest.Config, secret types.NamespacedName) *rest.Config {
	guarded := rest.CopyConfig(config)
	guarded.ContentType = "application/json" // so that a write can be read here
	guarded.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &guard{next: next, path: path.Join("/api/v1/namespaces", secret.Namespace, "secrets", secret.Name)}
	})
	return guarded
}

type guard struct {
	next http.RoundTripper
	path string
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut || r.URL.Path != g.path || r.Body == nil {
		return g.next.RoundTrip(r)
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxSecret))
	if err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	var s corev1.Secret
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("reading what is to be written to the Secret: %v", err)
	}
	if !ours(&s) {
		if text, err = g.adopt(r, &s); err != nil {
			return nil, err
		}
	}
	out := r.Clone(r.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return g.next.RoundTrip(out)
}

// adopt marks a Secret that is empty in the cluster, in the version that the write is for.
func (g *guard) adopt(r *http.Request, s *corev1.Secret) ([]byte, error) {
	get, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.URL.Scheme+"://"+r.URL.Host+g.path, nil)
	if err != nil {
		return nil, err
	}
	get.Header = r.Header.Clone()
	get.Header.Del("Content-Type")
	get.Header.Set("Accept", "application/json")
	answer, err := g.next.RoundTrip(get)
	if err != nil {
		return nil, err
	}
	var live corev1.Secret
	err = errors.Join(json.NewDecoder(io.LimitReader(answer.Body, maxSecret)).Decode(&live), answer.Body.Close())
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading the Secret before it is filled: HTTP %d, %v", answer.StatusCode, err)
	}
	if err := Check(&live); err != nil {
		return nil, err
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[Label] = LabelValue
	s.ResourceVersion = live.ResourceVersion // what was looked at is what is replaced
	return json.Marshal(s)
}
