package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/webhook/admit"
)

// trustOf is a policy beside an empty cluster.
type trustOf struct{ policy *trustpolicy.Policy }

func (t trustOf) Snapshot(string, time.Time) (verify.Snapshot, error) {
	return verify.Snapshot{Policy: t.policy, ClusterID: "any", Now: testkit.Now(), Stored: empty{}, Ledger: empty{}}, nil
}

func (t trustOf) Judge(*object.TrustPolicy, time.Time) decision.Decision { return decision.Decision{} }

// empty is a cluster that holds nothing.
type empty struct{}

func (empty) Mark(string) (ledger.Mark, bool)           { return ledger.Mark{}, false }
func (empty) Slot(ledger.Slot) (ledger.SlotMark, bool)  { return ledger.SlotMark{}, false }
func (empty) Bundle(string, string) bool                { return false }
func (empty) ResetUsed(string) bool                     { return false }
func (empty) Profile(string) *verify.ProfileFacts       { return nil }
func (empty) Host(string, string) *object.Host          { return nil }
func (empty) Hosts() []*object.Host                     { return nil }
func (empty) NodeClasses() []*object.NodeClass          { return nil }
func (empty) HostRuns() []*object.HostRun               { return nil }
func (empty) HostRunsFor(string) []*object.HostRun      { return nil }
func (empty) HostStatements() []*object.HostStatement   { return nil }
func (empty) NodeProviderID(string) (id string, _ bool) { return "", false }

// uncounted counts nothing.
type uncounted struct{}

func (uncounted) Decided(string, string, decision.Reason, time.Duration, bool) {}
func (uncounted) Canary(string)                                                {}
func (uncounted) Unread(decision.Reason)                                       {}

// served is a running review server.
type served struct {
	address string
	client  *http.Client
	root    testkit.Signer
	signer  testkit.Signer
}

func startServer(t *testing.T, limit time.Duration) *served {
	t.Helper()
	s := &served{root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519")}
	silent := slog.New(slog.DiscardHandler)
	validator := &admit.Validator{
		Trust: trustOf{testkit.Policy(t, testkit.PolicyDocument(s.signer), s.root)}, Recorder: uncounted{}, Log: silent, Now: time.Now,
	}
	endpoint := &admit.Endpoint{Reviewer: validator, Limits: admit.NewLimits(), Recorder: uncounted{}, Log: silent}
	issued := httptest.NewUnstartedServer(nil)
	issued.StartTLS() // for its certificate
	issued.Close()
	c := &certificate{get: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &issued.TLS.Certificates[0], nil }}
	server := &reviewServer{tls: c.tlsConfig(), handler: (&drain{}).bound(limit, endpoint), log: silent}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(issued.Certificate())
	s.address = listener.Addr().String()
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// post asks for a review.
func (s *served) post(t *testing.T, body io.Reader) (int, *admissionv1.AdmissionResponse) {
	t.Helper()
	answer, err := s.client.Post("https://"+s.address+"/validate", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	var review admissionv1.AdmissionReview
	if answer.StatusCode != http.StatusOK {
		return answer.StatusCode, nil
	}
	if err := json.Unmarshal(text, &review); err != nil || review.Response == nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer.StatusCode, review.Response
}

// profileJSON is a profile whose scripts are these, signed by the signer.
func (s *served) profileJSON(t *testing.T, text string) json.RawMessage {
	t.Helper()
	scripts, signatures := map[string]string{}, map[string]string{}
	signature := testkit.Sign(t, s.signer, "kpssh", []byte(text))
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		scripts[phase], signatures[phase] = text, signature
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": object.GroupKPSSH + "/v1beta1", "kind": object.KindJoinProfile, "metadata": map[string]any{"name": "tls"},
		"spec": map[string]any{"version": "1", "scripts": scripts, "signatures": signatures},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func reviewOf(t *testing.T, operation string, o, old json.RawMessage) []byte {
	t.Helper()
	request := map[string]any{
		"uid": "u-1", "kind": map[string]any{"group": object.GroupKPSSH, "version": "v1beta1", "kind": object.KindJoinProfile},
		"name": "tls", "operation": operation, "object": o, "oldObject": old,
	}
	text, err := json.Marshal(map[string]any{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
	if err != nil {
		t.Fatal(err)
	}
	// API servers write the uid first.
	return bytes.Replace(text, []byte(`"request":{`), []byte(`"request":{"uid":"u-1",`), 1)
}

// The largest legal update: four scripts of 262,144 characters that JSON writes in six bytes each.
func TestAnUpdateOfTwelveMiBIsJudged(t *testing.T) {
	s := startServer(t, time.Minute) // whatever else the machine does
	const head = "#!/usr/bin/env bash\n: '"
	text := head + strings.Repeat("<", 262144-len(head)-2) + "'\n"
	good := s.profileJSON(t, text)
	changed := s.profileJSON(t, strings.Replace(text, "<", ">", 1))
	for name, c := range map[string]struct {
		o    json.RawMessage
		want decision.Reason
	}{
		"signed":   {good, decision.Verified},
		"unsigned": {json.RawMessage(bytes.Replace(good, []byte(`"signatures":`), []byte(`"other":`), 1)), decision.Unsigned},
	} {
		t.Run(name, func(t *testing.T) {
			body := bytes.Replace(reviewOf(t, "UPDATE", c.o, changed), []byte(`"uid":"u-1",`), nil, 1)
			if len(body) < 12<<20 {
				t.Fatalf("the review has %d bytes", len(body))
			}
			began := time.Now()
			code, r := s.post(t, bytes.NewReader(body))
			if r == nil || r.UID != "u-1" || decision.Reason(r.AuditAnnotations["reason"]) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Fatalf("%d %+v; want %s", code, r, c.want)
			}
			t.Logf("%d bytes judged in %s", len(body), time.Since(began))
		})
	}
}

func TestFiftyMiBPostedStraightToUsAreRefused(t *testing.T) {
	s := startServer(t, time.Minute) // whatever else the machine does
	head := string(reviewOf(t, "CREATE", json.RawMessage(`{}`), nil))
	head = head[:strings.Index(head, `"u-1",`)+len(`"u-1",`)] + `"object":"`
	for name, announced := range map[string]bool{"announced": true, "unannounced": false} {
		t.Run(name, func(t *testing.T) {
			body := io.Reader(strings.NewReader(head + strings.Repeat("x", 50<<20)))
			if !announced {
				body = io.MultiReader(body)
			}
			code, r := s.post(t, body)
			if r == nil || r.Allowed || r.UID != "u-1" || r.AuditAnnotations["reason"] != string(decision.TooLarge) {
				t.Fatalf("%d %+v", code, r)
			}
		})
	}
	if code, r := s.post(t, bytes.NewReader(reviewOf(t, "CREATE", s.profileJSON(t, "#!/bin/bash\n"), nil))); r == nil {
		t.Fatalf("after that: %d", code)
	}
}

// closeLater closes a connection, which the server may have closed before.
func closeLater(t *testing.T, c net.Conn) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Logf("closing: %v", err)
		}
	})
}

// dial opens a TLS connection that speaks HTTP by hand.
func (s *served) dial(t *testing.T) *tls.Conn {
	t.Helper()
	transport, ok := s.client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	c, err := (&tls.Dialer{Config: &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}}).
		DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, c)
	conn, ok := c.(*tls.Conn)
	if !ok {
		t.Fatalf("a %T", c)
	}
	return conn
}

// ended waits until the server closes a connection, and gives what it said.
func ended(t *testing.T, c net.Conn, within time.Duration) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is still open after %s", within)
	}
	return string(text)
}

func TestSlowClientsAreCutOffAndKeepNobodyWaiting(t *testing.T) {
	const limit = 2 * time.Second
	s := startServer(t, limit)
	header := "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n"
	plain, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, plain)
	inHeader, inBody := s.dial(t), []*tls.Conn{}
	fmt.Fprint(inHeader, header)
	for range 200 { // more than there is room for bodies
		c := s.dial(t)
		fmt.Fprint(c, header+"\r\n{\"kind\":")
		inBody = append(inBody, c)
	}
	began := time.Now()
	if code, r := s.post(t, bytes.NewReader(reviewOf(t, "CREATE", s.profileJSON(t, "#!/bin/bash\n"), nil))); r == nil {
		t.Errorf("beside them: %d", code)
	}
	t.Logf("beside 200 slow bodies a review took %s", time.Since(began))
	for _, c := range inBody {
		if said := ended(t, c, 30*time.Second); said != "" && !strings.HasPrefix(said, "HTTP/1.1 400 ") {
			t.Fatalf("a body that does not come is answered %q", said)
		}
	}
	if said := ended(t, inHeader, 30*time.Second); strings.Contains(said, " 200 ") {
		t.Errorf("a header that does not end is answered %q", said)
	}
	ended(t, plain, 30*time.Second)
}

func TestConnectionsAreBounded(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimitedListener(inner, 2, slog.New(slog.DiscardHandler))
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	var here []net.Conn
	for range 3 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		closeLater(t, c)
	}
	for range 2 {
		here = append(here, <-accepted)
	}
	select {
	case <-accepted:
		t.Fatal("a third was accepted")
	case <-time.After(50 * time.Millisecond):
	}
	for range 2 { // closing twice makes room for one
		if err := here[0].Close(); err != nil && !strings.Contains(err.Error(), "use of closed") {
			t.Fatal(err)
		}
	}
	if err := errors.Join((<-accepted).Close(), here[1].Close(), inner.Close()); err != nil {
		t.Fatal(err)
	}
	if _, open := <-accepted; open {
		t.Error("accepts after it was closed")
	}
}

// writePair writes a serving certificate as a mounted Secret has it.
func writePair(t *testing.T, dir string, c tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, dir, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	testkit.WriteFile(t, dir, certificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
}

func TestACertificateFromADirectoryNeedsNoSecret(t *testing.T) {
	dir := t.TempDir()
	secret := types.NamespacedName{Namespace: "hostwarrant-system", Name: "hostwarrant-webhook-ca"}
	if _, err := certificateFrom(dir, time.Hour, nil, secret, nil); err == nil || !strings.Contains(err.Error(), "reading the serving certificate") {
		t.Fatalf("an empty directory: %v", err)
	}
	issued := httptest.NewUnstartedServer(nil)
	issued.StartTLS()
	issued.Close()
	writePair(t, dir, issued.TLS.Certificates[0])
	c, err := certificateFrom(dir, time.Hour, nil, secret, nil) // no API server to reach
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.get(nil)
	if err != nil || !slices.EqualFunc(got.Certificate, issued.TLS.Certificates[0].Certificate, bytes.Equal) {
		t.Fatalf("%v", err)
	}
}
