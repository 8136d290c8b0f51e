package sshsig_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestKeyByWhichAnybodySigns shows the attack first: no private key made this signature.
func TestKeyByWhichAnybodySigns(t *testing.T) {
	identity := append([]byte{1}, make([]byte, 31)...)
	blob := testkit.NewBlob(t, testkit.NewSigner(t, "ed25519"), namespace, message)
	blob.Key = append(wire(ssh.KeyAlgoED25519), wire(string(identity))...)
	blob.Signature = rawSignature(ssh.KeyAlgoED25519, append(identity, make([]byte, 32)...))
	key, err := ssh.ParsePublicKey(blob.Key)
	if err != nil {
		t.Fatal(err)
	}
	if key.Verify([]byte("anything"), &ssh.Signature{Format: key.Type(), Blob: append(identity, make([]byte, 32)...)}) != nil {
		t.Fatal("the library refuses it by itself; the test is not what it says")
	}
	want(t, verdict(blob.Armor(), namespace, message), decision.KeyTypeRefused)
}

func TestPoints(t *testing.T) {
	ff := func(first, last byte) []byte {
		return append(append([]byte{first}, bytes.Repeat([]byte{0xff}, 30)...), last)
	}
	zeros := func(first, last byte) []byte { return append(append([]byte{first}, make([]byte, 30)...), last) }
	order8, err := base64.StdEncoding.DecodeString("JuiVj8KyJ7BFw/SJ8u+Y8NXfrAXTxjM5sTgCiG1T/AU=")
	if err != nil {
		t.Fatal(err)
	}
	minus8 := bytes.Clone(order8) // -y is p - y
	borrow := 0
	for i, p := range ff(0xed, 0x7f) {
		d := int(p) - int(minus8[i]) - borrow
		minus8[i], borrow = byte(d), 0
		if d < 0 {
			borrow = 1
		}
	}
	signed := bytes.Clone(order8)
	signed[31] |= 0x80
	for name, point := range map[string][]byte{
		"order 1":                   zeros(1, 0),
		"order 1 with a sign":       zeros(1, 0x80),
		"order 4":                   zeros(0, 0),
		"order 4 with a sign":       zeros(0, 0x80),
		"order 2":                   ff(0xec, 0x7f),
		"order 2 with a sign":       ff(0xec, 0xff),
		"order 8":                   order8,
		"order 8 with a sign":       signed,
		"order 8 on the other side": minus8,
		"p for 0":                   ff(0xed, 0x7f),
		"p + 1 for 1":               ff(0xee, 0xff),
		"the largest number":        ff(0xff, 0xff),
		"p + 3 for 3":               ff(0xf0, 0x7f),
	} {
		for _, kind := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519} {
			blob := append(wire(kind), wire(string(point))...)
			if kind == ssh.KeyAlgoSKED25519 {
				blob = append(blob, wire("ssh:")...)
			}
			_, _, err := sshsig.ParsePublicKey(kind + " " + base64.StdEncoding.EncodeToString(blob))
			if err == nil || decision.From(err).Reason != decision.KeyTypeRefused {
				t.Errorf("%s, %s: %v, want KeyTypeRefused", name, kind, err)
			}
		}
	}
}

// shortKey is a key that did not come through the library.
type shortKey struct{ ssh.PublicKey }

func (shortKey) Marshal() []byte { return append(wire(ssh.KeyAlgoED25519), wire("short")...) }

func TestKeyThatIsNoPoint(t *testing.T) {
	err := sshsig.CheckKey(shortKey{testkit.NewSigner(t, "ed25519").PublicKey()})
	if decision.From(err).Reason != decision.KeyTypeRefused {
		t.Errorf("got %v", err)
	}
}
