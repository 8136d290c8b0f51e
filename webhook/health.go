package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthServer answers /healthz, /readyz and what is added to it. It is a server of its own because
// controller-runtime's withholds the reason, which is what a person needs.
type healthServer struct {
	address string
	mux     *http.ServeMux
}

// newHealthServer makes a server that is ready while ready returns nil.
func newHealthServer(address string, ready func(*http.Request) error) *healthServer {
	s := &healthServer{address: address, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return s
}

// Start serves until ctx ends.
func (s *healthServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("health server: %v", err)
	}
	server := &http.Server{Handler: s.mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		done <- server.Shutdown(bounded)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

// NeedLeaderElection says that every replica serves.
func (s *healthServer) NeedLeaderElection() bool { return false }
