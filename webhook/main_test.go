package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cmtls "github.com/cert-manager/cert-manager/pkg/server/tls"

	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestCommandLine(t *testing.T) {
	anchor := t.TempDir()
	testkit.WriteFile(t, anchor, "roots", []byte(testkit.NewSigner(t, "ed25519").Line))
	testkit.WriteFile(t, anchor, "cluster-id", []byte("prod\n"))
	for name, c := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help":                       {[]string{"--help"}, 0, "hostwarrant-webhook serve --anchor", ""},
		"help of serve":              {[]string{"serve", "--help"}, 0, "--policy-file", ""},
		"help of control":            {[]string{"control", "--help"}, 0, "--serving-secret", ""},
		"no anchor":                  {nil, 2, "", "error: --anchor is missing"},
		"no anchor for control":      {[]string{"control"}, 2, "", "error: --anchor is missing"},
		"an unknown flag":            {[]string{"serve", "--yes"}, 2, "", "unknown flag: --yes"},
		"an argument too many":       {[]string{"serve", "now"}, 2, "", `unexpected argument "now"`},
		"an unknown command":         {[]string{"watch"}, 2, "", `unexpected argument "watch"`},
		"an address without a port":  {[]string{"serve", "--anchor", anchor, "--address", "here"}, 2, "", "--address: "},
		"a port that is none":        {[]string{"serve", "--anchor", anchor, "--health-address", ":70000"}, 2, "", `--health-address: "70000" is not a port`},
		"a Secret without namespace": {[]string{"control", "--anchor", anchor, "--serving-secret", "ca"}, 2, "", "not namespace/name"},
		"an anchor that is missing":  {[]string{"serve", "--anchor", anchor + "/x"}, 1, "", "reading the anchor"},
		"no API server to be found":  {[]string{"serve", "--anchor", anchor, "--kubeconfig", anchor + "/x"}, 1, "", "finding the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), c.args, strings.NewReader(""), &stdout, &stderr)
			if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Fatalf("exit %d\nstdout: %s\nstderr: %s", code, &stdout, &stderr)
			}
			if c.code == 0 && stderr.Len() > 0 || c.code != 0 && stdout.Len() > 0 {
				t.Errorf("stdout: %s\nstderr: %s", &stdout, &stderr)
			}
		})
	}
}

func TestReadyzGivesTheReason(t *testing.T) {
	var fault error
	s := newHealthServer("", func(*http.Request) error { return fault })
	for name, c := range map[string]struct {
		fault error
		code  int
		body  string
	}{
		"ready":     {nil, 200, "ok\n"},
		"not ready": {errors.New("PolicyUnavailable: no trust policy was found"), 503, "not ready: PolicyUnavailable: no trust policy was found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fault = c.fault
			w := httptest.NewRecorder()
			s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if w.Code != c.code || w.Body.String() != c.body {
				t.Errorf("%d %q", w.Code, w.Body)
			}
			alive := httptest.NewRecorder()
			s.mux.ServeHTTP(alive, httptest.NewRequest(http.MethodGet, "/healthz", nil))
			if alive.Code != 200 {
				t.Errorf("/healthz answers %d", alive.Code)
			}
		})
	}
}

func TestDrainServesOnAfterTheSignal(t *testing.T) {
	d := &drain{delay: 50 * time.Millisecond}
	signal, term := context.WithCancel(context.Background())
	late, cancel := d.context(signal)
	defer cancel()
	if d.draining.Load() {
		t.Fatal("draining before the signal")
	}
	began := time.Now()
	term()
	<-late.Done()
	if took := time.Since(began); took < d.delay || !d.draining.Load() {
		t.Errorf("stopped %s after the signal, draining %v", took, d.draining.Load())
	}
}

func TestReviewsAreBoundedAndConnectionsLetGoWhileDraining(t *testing.T) {
	d := &drain{}
	var deadline atomic.Bool
	server := httptest.NewServer(d.bound(time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, ok := r.Context().Deadline()
		deadline.Store(ok && time.Until(at) <= time.Minute)
	})))
	defer server.Close()
	for _, draining := range []bool{false, true} {
		d.draining.Store(draining)
		answer, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != 200 || answer.Close != draining || !deadline.Load() {
			t.Errorf("draining %v: %s, close %v, deadline %v", draining, answer.Status, answer.Close, deadline.Load())
		}
	}
}

func TestAReviewWhoseBodyNeverEndsIsCutOff(t *testing.T) {
	read := make(chan error, 1)
	server := httptest.NewServer((&drain{}).bound(50*time.Millisecond, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})))
	defer server.Close()
	body, end := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		answer, err := http.Post(server.URL, "application/json", body)
		if err == nil {
			err = answer.Body.Close()
		}
		sent <- err
	}()
	if err := <-read; err == nil {
		t.Error("the body was read to an end it does not have")
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Logf("the client saw: %v", err) // or the empty answer, if that came first
	}
}

func TestTLSHasNoHTTP2AndNoOldVersions(t *testing.T) {
	c := (&certificate{get: (&cmtls.DynamicSource{}).GetCertificate}).tlsConfig()
	if len(c.NextProtos) != 1 || c.NextProtos[0] != "http/1.1" || c.MinVersion != tls.VersionTLS13 || c.GetCertificate == nil {
		t.Errorf("%v, %x", c.NextProtos, c.MinVersion)
	}
}
