package main

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

func parsed(t *testing.T, text string) *object.JoinProfile {
	t.Helper()
	p, err := object.ParseJoinProfile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantReason(t *testing.T, err error, reason decision.Reason) {
	t.Helper()
	if err == nil || decision.From(err).Reason != reason {
		t.Errorf("want %s, got %v", reason, err)
	}
}
