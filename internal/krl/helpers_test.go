package krl_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func parse(t *testing.T, data []byte) *krl.List {
	t.Helper()
	l, err := krl.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantReason(t *testing.T, err error, want decision.Reason) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", want)
	}
	if got := decision.From(err).Reason; got != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// keygenWrites has ssh-keygen write a KRL from its own specification language. The CA
// is a public key line, or "none" for certificates of any.
func keygenWrites(t *testing.T, ca, spec string) []byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-q", "-k", "-f", filepath.Join(dir, "krl"), "-z", "9"}
	switch ca {
	case "":
	case "none":
		args = append(args, "-s", ca)
	default:
		args = append(args, "-s", testkit.WriteFile(t, dir, "ca.pub", []byte(ca+"\n")))
	}
	args = append(args, testkit.WriteFile(t, dir, "spec", []byte(spec)))
	if out, err := exec.Command(testkit.Tool(t, "ssh-keygen"), args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen -k: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "krl"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// keygenSays asks "ssh-keygen -Q" about keys: whether it reads the list, and which keys it revokes.
func keygenSays(t *testing.T, list []byte, keys ...ssh.PublicKey) (reads bool, revoked []bool) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-Q", "-f", testkit.WriteFile(t, dir, "krl", list)}
	for i, key := range keys {
		args = append(args, testkit.WriteFile(t, dir, fmt.Sprintf("key%02d", i), ssh.MarshalAuthorizedKey(key)))
	}
	out, err := exec.Command(testkit.Tool(t, "ssh-keygen"), args...).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i := range keys {
		switch {
		case len(lines) == len(keys) && strings.HasSuffix(lines[i], ": ok"):
			revoked = append(revoked, false)
		case len(lines) == len(keys) && strings.HasSuffix(lines[i], ": REVOKED"):
			revoked = append(revoked, true)
		default:
			t.Logf("ssh-keygen -Q: %v\n%s", err, out)
			return false, nil
		}
	}
	return true, revoked
}

// compare wants the answer of ssh-keygen for each key.
func compare(t *testing.T, list []byte, keys ...ssh.PublicKey) {
	t.Helper()
	l := parse(t, list)
	reads, revoked := keygenSays(t, list, keys...)
	if !reads {
		t.Fatalf("we read what ssh-keygen does not: %x", list)
	}
	for i, key := range keys {
		if got := l.Revoked(key); got != revoked[i] {
			t.Errorf("key %d: we say revoked %v, ssh-keygen says %v: %x", i, got, revoked[i], list)
		}
	}
}

// header is the beginning of a KRL that says nothing of itself.
func header() []byte {
	b := append([]byte("SSHKRL\n\x00"), 0, 0, 0, 1)
	b = append(b, make([]byte, 3*8)...)
	return append(b, make([]byte, 2*4)...)
}

// section is a section, or a part of a certificate section.
func section(kind byte, parts ...[]byte) []byte {
	var content []byte
	for _, p := range parts {
		content = append(content, p...)
	}
	return append([]byte{kind}, wire(string(content))...)
}

func wire(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}
