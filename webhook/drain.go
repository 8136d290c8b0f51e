package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// drain ends a server in the order that loses no request: first not ready, so that endpoints are
// withdrawn; still serving while that spreads, but asking clients to connect anew; only then stopping.
type drain struct {
	delay    time.Duration
	draining atomic.Bool
}

// context returns one that ends delay after ctx does.
func (d *drain) context(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-ctx.Done():
		case <-late.Done():
			return
		}
		d.draining.Store(true)
		timer := time.NewTimer(d.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-late.Done():
		}
		cancel()
	}()
	return late, cancel
}

// bound limits how long one review may take, reading included, to less than the API server waits
// (timeoutSeconds: 5), and lets go of connections while draining.
func (d *drain) bound(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)); err != nil {
			http.Error(w, "setting a deadline failed", http.StatusInternalServerError)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
