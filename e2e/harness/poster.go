//go:build linux

package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// Poster reaches one replica the way the API server does, but without it: what it posts went
// through no schema and no decoder.
type Poster struct {
	address string
	config  *tls.Config
	client  *http.Client
}

// NewPoster makes one for the replica at the address. The PEM is the caBundle of the webhook
// configuration, the name that of the Service.
func NewPoster(address, name string, caBundle []byte) (*Poster, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(caBundle) {
		return nil, errors.New("posting to a replica: the caBundle holds no certificate")
	}
	config := &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS13}
	transport := &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 8}
	return &Poster{address: address, config: config, client: &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// Close lets go of its connections.
func (p *Poster) Close() { p.client.CloseIdleConnections() }

// Post sends a body and returns status and answer, whatever they are.
func (p *Poster) Post(ctx context.Context, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.address+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("posting to %s: %w", p.address, err)
	}
	said, err := io.ReadAll(answer.Body)
	return answer.StatusCode, said, errors.Join(err, answer.Body.Close())
}

// Review sends a body and reads the answer as an AdmissionReview.
func (p *Poster) Review(ctx context.Context, path string, body []byte) (*admissionv1.AdmissionResponse, error) {
	code, said, err := p.Post(ctx, path, body)
	if err != nil {
		return nil, err
	}
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(said, &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("HTTP %d with no review: %.200q (%v)", code, said, err)
	}
	return review.Response, nil
}

// Dial opens a TLS connection.
func (p *Poster) Dial(ctx context.Context) (net.Conn, error) {
	return (&tls.Dialer{Config: p.config}).DialContext(ctx, "tcp", p.address)
}
