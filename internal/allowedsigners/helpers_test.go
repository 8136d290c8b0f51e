package allowedsigners_test

import (
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const namespace = "kpssh"

var message = []byte("#!/usr/bin/env bash\necho hello\n")

// question is one verification, put to our code and to ssh-keygen.
type question struct {
	list, signature     string
	identity, namespace string
	message             []byte
	revoked             []byte // nil: no list is given
	now                 time.Time
}

func ask(list, signature, identity string) question {
	return question{list: list, signature: signature, identity: identity, namespace: namespace, message: message, now: testkit.Now()}
}

// ours is our answer: nil, or why not.
func (q question) ours() *decision.Error {
	_, err := q.stage()
	return err
}

func want(t *testing.T, q question, reason decision.Reason) {
	t.Helper()
	got := decision.Verified
	err := q.ours()
	if err != nil {
		got = err.Reason
	}
	if got != reason {
		t.Errorf("verdict is %s (%v), want %s", got, err, reason)
	}
}

func parse(t *testing.T, text string) *allowedsigners.List {
	t.Helper()
	l, err := allowedsigners.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func parseSignature(t *testing.T, armored string) *sshsig.Signature {
	t.Helper()
	all, err := sshsig.ParseAllWithCertificates([]byte(armored))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// revocation revokes one key, or everything where it is nil.
type revocation struct{ key ssh.PublicKey }

func (r revocation) Revoked(key ssh.PublicKey) bool {
	return r.key == nil || string(r.key.Marshal()) == string(key.Marshal())
}
