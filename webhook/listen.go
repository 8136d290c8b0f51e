package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// headerLimit bounds how long a client may take for the TLS handshake, and again for a request's
	// header.
	headerLimit = 4 * time.Second
	// idleLimit is how long a connection may wait for the next request; API servers keep theirs.
	idleLimit = 90 * time.Second
	// maxHeader bounds a request's header.
	maxHeader = 64 << 10
	// maxConnections bounds open connections, at about 40 KiB each. API servers hold a few dozen. See
	// connections.go for what happens beyond it.
	maxConnections = 1000
	// finishLimit is how long running reviews may take once the server stops.
	finishLimit = 10 * time.Second
)

// reviewServer answers admission reviews over TLS.
type reviewServer struct {
	address string
	tls     *tls.Config
	handler http.Handler
	log     *slog.Logger

	listening atomic.Bool
}

// NeedLeaderElection says that every replica answers.
func (s *reviewServer) NeedLeaderElection() bool { return false }

// Start serves until ctx ends, and then finishes what is running.
func (s *reviewServer) Start(ctx context.Context) error {
	plain, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listening for admission reviews: %v", err)
	}
	return s.serve(ctx, plain)
}

func (s *reviewServer) serve(ctx context.Context, plain net.Listener) error {
	limited := newLimitedListener(plain, maxConnections, s.log)
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHeader,
		// The handler sets deadlines of its own for body and answer.
		ConnState: limited.connState,
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
		defer cancel()
		done <- server.Shutdown(bounded)
	}()
	s.listening.Store(true)
	defer s.listening.Store(false)
	if err := server.Serve(tls.NewListener(limited, s.tls)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}
