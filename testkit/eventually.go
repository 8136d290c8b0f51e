package testkit

import (
	"testing"
	"time"
)

// Eventually polls until something holds.
func Eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain for %s", limit, what)
		}
	}
}
