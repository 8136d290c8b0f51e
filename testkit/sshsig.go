package testkit

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Sign signs with our own code and puts the result to ssh-keygen, so that no
// test accepts a signature on which the two disagree.
func Sign(t testing.TB, s Signer, namespace string, message []byte) string {
	t.Helper()
	armored, err := sshsig.Sign(rand.Reader, s.Signer, namespace, message)
	if err != nil {
		t.Fatalf("signing: %v", err)
	}
	if !KeygenAccepts(t, s.Line, namespace, message, armored) {
		t.Fatalf("ssh-keygen refuses what we signed with %s", s.PublicKey().Type())
	}
	return string(armored)
}

// KeygenAccepts puts a signature to "ssh-keygen -Y verify".
func KeygenAccepts(t testing.TB, keyLine, namespace string, message, armored []byte) bool {
	t.Helper()
	keygen := Tool(t, "ssh-keygen")
	dir := t.TempDir()
	allowed := WriteFile(t, dir, "allowed_signers", []byte("someone "+keyLine+"\n"))
	signature := WriteFile(t, dir, "signature", armored)
	cmd := exec.Command(keygen, "-Y", "verify", "-f", allowed, "-I", "someone", "-n", namespace, "-s", signature)
	cmd.Stdin = bytes.NewReader(message)
	return cmd.Run() == nil
}

// KeygenSign signs with "ssh-keygen -Y sign".
func KeygenSign(t testing.TB, s Signer, namespace string, message []byte) string {
	t.Helper()
	keygen := Tool(t, "ssh-keygen")
	key := WriteFile(t, t.TempDir(), "key", s.PEM)
	cmd := exec.Command(keygen, "-Y", "sign", "-f", key, "-n", namespace)
	cmd.Stdin = bytes.NewReader(message)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ssh-keygen -Y sign: %v", err)
	}
	return string(out)
}

// Blob is an SSHSIG blob with every field free, to build what must be refused.
type Blob struct {
	Magic     string
	Version   uint32
	Key       []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
	Trailing  string
}

// NewBlob signs and takes the result apart.
func NewBlob(t testing.TB, s Signer, namespace string, message []byte) Blob {
	t.Helper()
	return ParseBlob(t, Sign(t, s, namespace, message))
}

// ParseBlob takes an armored signature apart.
func ParseBlob(t testing.TB, armored string) Blob {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(armored), "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.Join(lines[1:len(lines)-1], ""))
	if err != nil {
		t.Fatal(err)
	}
	var wire struct {
		Version                         uint32
		Key                             []byte
		Namespace, Reserved, HashString string
		Signature                       []byte
	}
	if err := ssh.Unmarshal(raw[6:], &wire); err != nil {
		t.Fatal(err)
	}
	return Blob{Magic: string(raw[:6]), Version: wire.Version, Key: wire.Key, Namespace: wire.Namespace, Reserved: wire.Reserved, Hash: wire.HashString, Signature: wire.Signature}
}

// Bytes is the binary form.
func (b Blob) Bytes() []byte {
	raw := binary.BigEndian.AppendUint32([]byte(b.Magic), b.Version)
	raw = append(raw, wireStrings(string(b.Key), b.Namespace, b.Reserved, b.Hash, string(b.Signature))...)
	return append(raw, b.Trailing...)
}

// Armor is the canonical armored form.
func (b Blob) Armor() string { return Armor(b.Bytes()) }

// Armor writes any bytes as a canonical block.
func Armor(raw []byte) string {
	text := base64.StdEncoding.EncodeToString(raw)
	var lines []string
	for ; len(text) > 70; text = text[70:] {
		lines = append(lines, text[:70])
	}
	lines = append(lines, text)
	return "-----BEGIN SSH SIGNATURE-----\n" + strings.Join(lines, "\n") + "\n-----END SSH SIGNATURE-----\n"
}
