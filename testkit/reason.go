package testkit

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// WantReason fails the test unless an error has the Reason; no error is Verified.
func WantReason(t testing.TB, err error, want decision.Reason) {
	t.Helper()
	got := decision.Verified
	if err != nil {
		got = decision.From(err).Reason
	}
	if got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}
