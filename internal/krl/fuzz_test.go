package krl_test

import (
	"bytes"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// FuzzParse: nothing makes the reader panic, and a KRL that it reads says the same to ssh-keygen.
func FuzzParse(f *testing.F) {
	ca, user := testkit.NewSigner(f, "ed25519"), testkit.NewSigner(f, "ed25519")
	c := testkit.Certify(f, ca, user.PublicKey(), []string{"kpssh"}, nil)
	rendered, err := krl.Render([]string{user.Fingerprint}, 1, testkit.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rendered)
	f.Add(header())
	f.Add([]byte(user.Line + "\n"))
	of := wire(string(ca.PublicKey().Marshal()))
	for _, part := range [][]byte{
		section(0x20, number(7)), section(0x21, number(1), number(9)), section(0x22, number(4), wire("\x08")), section(0x23, wire("test")),
	} {
		f.Add(join(header(), section(1, of, wire(""), part)))
		f.Add(join(header(), section(1, wire(""), wire(""), part)))
	}
	f.Add(join(header(), section(2, wire(string(user.PublicKey().Marshal()))), section(3, wire("01234567890123456789"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := krl.Parse(data)
		if err != nil {
			return
		}
		keys := []ssh.PublicKey{user.PublicKey(), ca.PublicKey(), c}
		if !bytes.HasPrefix(data, []byte("SSHKRL\n\x00")) {
			l.Revoked(keys[0]) // -Q reads no plain lists
			return
		}
		compare(t, data, keys...)
	})
}
