package sshsig_test

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"golang.org/x/crypto/ssh"
)

// wire is one SSH string (RFC 4251 section 5).
func wire(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

func rawSignature(algorithm string, value []byte) []byte {
	return append(wire(algorithm), wire(string(value))...)
}

func sha512sum(b []byte) []byte {
	sum := sha512.Sum512(b)
	return sum[:]
}

// onlySHA1 hides that an RSA key can do better.
type onlySHA1 struct{ signer ssh.Signer }

func (s onlySHA1) PublicKey() ssh.PublicKey { return s.signer.PublicKey() }

func (s onlySHA1) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.signer.Sign(rand, data)
}

// liar shows one key and signs with another.
type liar struct{ shown, used ssh.Signer }

func (l liar) PublicKey() ssh.PublicKey { return l.shown.PublicKey() }

func (l liar) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return l.used.Sign(rand, data)
}

// gone is a token that was pulled out.
type gone struct{ signer ssh.Signer }

func (g gone) PublicKey() ssh.PublicKey { return g.signer.PublicKey() }

func (g gone) Sign(io.Reader, []byte) (*ssh.Signature, error) {
	return nil, errors.New("agent refused operation")
}

func unbase64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
