package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// header is that of a request with a body of so many bytes.
func header(length int) string {
	return fmt.Sprintf("POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", length)
}

// creation is a review of a new profile that is admitted.
func (s *served) creation(t *testing.T) []byte {
	t.Helper()
	return bytes.Replace(reviewOf(t, "CREATE", s.profileJSON(t, "#!/bin/bash\n"), nil), []byte(`"uid":"u-1",`), nil, 1)
}

// statusOf reads an answer and gives its status.
func statusOf(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return 0
	}
	var all bytes.Buffer
	if _, err := all.ReadFrom(answer.Body); err != nil {
		t.Error(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	return answer.StatusCode
}

// crowd opens connections, asks once on each, and leaves them idle.
func (s *served) crowd(t *testing.T, n int, body []byte) {
	t.Helper()
	dialing := make(chan struct{}, 20)
	var all sync.WaitGroup
	for range n {
		dialing <- struct{}{}
		all.Go(func() {
			defer func() { <-dialing }()
			c := s.dial(t)
			fmt.Fprintf(c, "%s%s", header(len(body)), body)
			if status := statusOf(t, bufio.NewReader(c)); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
		})
	}
	all.Wait()
}

func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	s := startServer(t, time.Minute)
	body := s.creation(t)
	active := s.dial(t) // older than all others, and half asked
	fmt.Fprintf(active, "%s%s", header(len(body)), body[:10])
	time.Sleep(100 * time.Millisecond)
	s.crowd(t, maxConnections, body)
	began := time.Now()
	if code, r := s.post(t, bytes.NewReader(body)); r == nil || !r.Allowed {
		t.Errorf("a new client: %d %+v", code, r)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a new client waited for %s", took)
	}
	fmt.Fprintf(active, "%s", body[10:])
	if status := statusOf(t, bufio.NewReader(active)); status != http.StatusOK {
		t.Errorf("what was running: status %d", status)
	}
}

func TestNoConnectionIsKeptForOtherPathsAndMethods(t *testing.T) {
	handler := reviews(&drain{}, trusted{}, nil, false, slog.New(slog.DiscardHandler))
	for request, want := range map[string]int{"GET /": http.StatusNotFound, "POST /validate/x": http.StatusNotFound, "POST /metrics": http.StatusNotFound} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want || w.Header().Get("Connection") != "close" {
			t.Errorf("%s: %d %v", request, w.Code, w.Header())
		}
	}
}

func TestRoomIsMadeOnceAConnectionIsIdle(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimitedListener(inner, 1, slog.New(slog.DiscardHandler))
	var clients []net.Conn
	for range 4 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		closeLater(t, c)
		clients = append(clients, c)
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	secured := tls.Server(first, &tls.Config{MinVersion: tls.VersionTLS13})
	l.connState(secured, http.StateNew)
	l.connState(secured, http.StateActive)
	var latest net.Conn
	next := make(chan error, 1)
	accept := func() {
		c, err := l.Accept()
		latest = c
		next <- err
	}
	go accept()
	select {
	case err := <-next:
		t.Fatalf("a second beside one that has a request: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	l.connState(secured, http.StateIdle)
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	ended(t, clients[0], 10*time.Second)
	l.connState(secured, http.StateClosed) // as the server says of one that it finds closed
	if err := first.Close(); err == nil {
		t.Error("the idle one was open")
	}
	l.connState(tls.Server(latest, &tls.Config{MinVersion: tls.VersionTLS13}), http.StateNew) // asks for nothing either
	accept()
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	ended(t, clients[1], 10*time.Second)
	go accept() // the third is not known to be idle
	time.Sleep(50 * time.Millisecond)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-next; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the listener was closed: %v", err)
	}
}
