package sshsig_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const namespace = "kpssh"

var message = []byte("#!/usr/bin/env bash\necho hello\n")

// verdict parses and verifies, and returns the Reason.
func verdict(armored string, ns string, msg []byte) decision.Reason {
	s, err := sshsig.Parse([]byte(armored))
	if err != nil {
		return decision.From(err).Reason
	}
	if err := s.Verify(ns, msg); err != nil {
		return decision.From(err).Reason
	}
	return decision.Verified
}

func want(t *testing.T, got, want decision.Reason) {
	t.Helper()
	if got != want {
		t.Errorf("verdict is %s, want %s", got, want)
	}
}

func TestWeSignAndKeygenVerifies(t *testing.T) {
	for _, kind := range testkit.KeyTypes() {
		t.Run(kind, func(t *testing.T) {
			signer := testkit.NewSigner(t, kind)
			armored := testkit.Sign(t, signer, namespace, message) // asks ssh-keygen too
			want(t, verdict(armored, namespace, message), decision.Verified)
			want(t, verdict(armored, "git", message), decision.WrongNamespace)
			want(t, verdict(armored, namespace, append(message, '\n')), decision.SignatureInvalid)
			s, err := sshsig.Parse([]byte(armored))
			if err != nil || sshsig.Fingerprint(s.PublicKey()) != signer.Fingerprint || s.Namespace() != namespace || s.HashAlgorithm() != "sha512" {
				t.Errorf("parsed %+v, %v", s, err)
			}
		})
	}
}

func TestKeygenSignsAndWeVerify(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa256", "ecdsa384", "ecdsa521", "rsa3072"} {
		t.Run(kind, func(t *testing.T) {
			armored := testkit.KeygenSign(t, testkit.NewSigner(t, kind), namespace, message)
			want(t, verdict(armored, namespace, message), decision.Verified)
			want(t, verdict(armored, namespace, message[1:]), decision.SignatureInvalid)
		})
	}
}

func TestSignRefuses(t *testing.T) {
	tests := map[string]struct {
		signer ssh.Signer
		ns     string
		want   decision.Reason
	}{
		"RSA of 2048 bits":      {testkit.NewSigner(t, "rsa2048"), namespace, decision.KeyTypeRefused},
		"an empty namespace":    {testkit.NewSigner(t, "ed25519"), "", decision.WrongNamespace},
		"a token not touched":   {testkit.NewSigner(t, "sk-ed25519-untouched"), namespace, decision.TouchMissing},
		"an RSA key of SHA-1":   {onlySHA1{testkit.NewSigner(t, "rsa3072")}, namespace, decision.KeyTypeRefused},
		"an agent that lies":    {liar{testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")}, namespace, decision.SignatureInvalid},
		"an agent that is gone": {gone{testkit.NewSigner(t, "ed25519")}, namespace, decision.Internal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			armored, err := sshsig.Sign(rand.Reader, tt.signer, tt.ns, message)
			if err == nil {
				t.Fatalf("signed: %s", armored)
			}
			want(t, decision.From(err).Reason, tt.want)
		})
	}
}

func TestSecurityKey(t *testing.T) {
	touched, untouched := testkit.NewSigner(t, "sk-ed25519"), testkit.NewSigner(t, "sk-ed25519-untouched")
	blob := testkit.NewBlob(t, touched, namespace, message)
	want(t, verdict(blob.Armor(), namespace, message), decision.Verified)

	// The same container, signed without a touch: ssh-keygen takes it, we do not.
	signed := ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{namespace, "", "sha512", sha512sum(message)})
	raw, err := untouched.Sign(rand.Reader, append([]byte("SSHSIG"), signed...))
	if err != nil {
		t.Fatal(err)
	}
	blob.Key = untouched.PublicKey().Marshal()
	blob.Signature = append(ssh.Marshal(struct {
		Format string
		Blob   []byte
	}{raw.Format, raw.Blob}), raw.Rest...)
	if !testkit.KeygenAccepts(t, untouched.Line, namespace, message, []byte(blob.Armor())) {
		t.Fatal("ssh-keygen refuses the signature without a touch; the test is not what it says")
	}
	want(t, verdict(blob.Armor(), namespace, message), decision.TouchMissing)
}

func TestParseRefusesOtherSpellings(t *testing.T) {
	signer := testkit.NewSigner(t, "ed25519")
	good := testkit.Sign(t, signer, namespace, message)
	rewrap := func(width int) string {
		lines := strings.Split(strings.TrimSpace(good), "\n")
		text := strings.Join(lines[1:len(lines)-1], "")
		var b strings.Builder
		for ; len(text) > width; text = text[width:] {
			b.WriteString(text[:width] + "\n")
		}
		return lines[0] + "\n" + b.String() + text + "\n" + lines[len(lines)-1] + "\n"
	}
	want(t, verdict(good, namespace, message), decision.Verified)
	want(t, verdict(strings.TrimSuffix(good, "\n"), namespace, message), decision.Verified) // YAML "|-"

	for name, text := range map[string]string{
		"empty":                       "",
		"leading text":                "hello\n" + good,
		"leading blank line":          "\n" + good,
		"leading BOM":                 "\ufeff" + good,
		"trailing text":               good + "hello\n",
		"trailing blank line":         good + "\n",
		"text on the END line":        strings.TrimSuffix(good, "\n") + "x\n",
		"CRLF":                        strings.ReplaceAll(good, "\n", "\r\n"),
		"every line indented":         "  " + strings.ReplaceAll(good, "\n", "\n  "),
		"spaces in the base64":        strings.Replace(good, "U1NIU0lH", "U1NI U0lH", 1),
		"76 columns":                  rewrap(76),
		"one long line":               rewrap(100000),
		"blank line before END":       strings.Replace(good, "\n-----END", "\n\n-----END", 1),
		"no END line":                 strings.Split(good, "-----END")[0],
		"truncated base64":            good[:120] + good[160:],
		"padding removed":             strings.Replace(good, "=\n-----END", "\n-----END", 1),
		"1 MiB of junk":               strings.Repeat("A", 1<<20),
		"1 MiB of junk in the armor":  strings.Replace(good, "\n-----END", strings.Repeat("\nAAAA", 1<<18)+"\n-----END", 1),
		"two blocks where one counts": good + good,
		"another armor":               strings.ReplaceAll(good, "SSH SIGNATURE", "PGP SIGNATURE"),
	} {
		t.Run(name, func(t *testing.T) { want(t, verdict(text, namespace, message), decision.SignatureMalformed) })
	}
}

func TestParseRefusesOtherBlobs(t *testing.T) {
	signer, other := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	tests := map[string]struct {
		change func(*testkit.Blob)
		want   decision.Reason
	}{
		"as made":                   {func(*testkit.Blob) {}, decision.Verified},
		"another magic":             {func(b *testkit.Blob) { b.Magic = "SSHSIX" }, decision.SignatureMalformed},
		"version 0":                 {func(b *testkit.Blob) { b.Version = 0 }, decision.SignatureMalformed},
		"version 2":                 {func(b *testkit.Blob) { b.Version = 2 }, decision.SignatureMalformed},
		"reserved filled":           {func(b *testkit.Blob) { b.Reserved = "x" }, decision.SignatureMalformed},
		"hash sha1":                 {func(b *testkit.Blob) { b.Hash = "sha1" }, decision.SignatureMalformed},
		"hash sha384":               {func(b *testkit.Blob) { b.Hash = "sha384" }, decision.SignatureMalformed},
		"hash SHA512":               {func(b *testkit.Blob) { b.Hash = "SHA512" }, decision.SignatureMalformed},
		"hash claims sha256":        {func(b *testkit.Blob) { b.Hash = "sha256" }, decision.SignatureInvalid},
		"trailing byte":             {func(b *testkit.Blob) { b.Trailing = "x" }, decision.SignatureMalformed},
		"trailing in the signature": {func(b *testkit.Blob) { b.Signature = append(b.Signature, 0) }, decision.SignatureMalformed},
		"signature cut":             {func(b *testkit.Blob) { b.Signature = b.Signature[:10] }, decision.SignatureMalformed},
		"signature value short":     {func(b *testkit.Blob) { b.Signature = rawSignature("ssh-ed25519", make([]byte, 63)) }, decision.SignatureMalformed},
		"zeros for a signature":     {func(b *testkit.Blob) { b.Signature = rawSignature("ssh-ed25519", make([]byte, 64)) }, decision.SignatureInvalid},
		"algorithm of another type": {func(b *testkit.Blob) { b.Signature = rawSignature("ecdsa-sha2-nistp256", make([]byte, 64)) }, decision.KeyTypeRefused},
		"another key":               {func(b *testkit.Blob) { b.Key = testkit.NewSigner(t, "ed25519").PublicKey().Marshal() }, decision.SignatureInvalid},
		"key of another type":       {func(b *testkit.Blob) { b.Key = other.PublicKey().Marshal() }, decision.KeyTypeRefused},
		"key cut":                   {func(b *testkit.Blob) { b.Key = b.Key[:20] }, decision.SignatureMalformed},
		"key empty":                 {func(b *testkit.Blob) { b.Key = nil }, decision.SignatureMalformed},
		"key with bytes after it":   {func(b *testkit.Blob) { b.Key = append(b.Key, 0) }, decision.SignatureMalformed},
		"namespace with NUL":        {func(b *testkit.Blob) { b.Namespace = "kpssh\x00x" }, decision.WrongNamespace},
		"empty namespace":           {func(b *testkit.Blob) { b.Namespace = "" }, decision.WrongNamespace},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			blob := testkit.NewBlob(t, signer, namespace, message)
			tt.change(&blob)
			want(t, verdict(blob.Armor(), namespace, message), tt.want)
		})
	}
}

// TestEd25519Malleability adds the group order L to S: OpenSSH before 10.4 takes it.
func TestEd25519Malleability(t *testing.T) {
	signer := testkit.NewSigner(t, "ed25519")
	blob := testkit.NewBlob(t, signer, namespace, message)
	value := blob.Signature[len(blob.Signature)-64:]
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
	carry := 0
	for i, b := range order {
		sum := int(value[32+i]) + int(b) + carry
		value[32+i], carry = byte(sum), sum>>8
	}
	want(t, verdict(blob.Armor(), namespace, message), decision.SignatureInvalid)
}

func TestECDSASpellings(t *testing.T) {
	signer := testkit.NewSigner(t, "ecdsa256")
	const algorithm = "ecdsa-sha2-nistp256"
	for name, value := range map[string][]byte{
		"r padded":      append(wire("\x00\x01"), wire("\x01")...),
		"r zero":        append(wire(""), wire("\x01")...),
		"s negative":    append(wire("\x01"), wire("\x80")...),
		"bytes after s": append(append(wire("\x01"), wire("\x01")...), 0),
		"no s":          wire("\x01"),
	} {
		t.Run(name, func(t *testing.T) {
			blob := testkit.NewBlob(t, signer, namespace, message)
			blob.Signature = rawSignature(algorithm, value)
			want(t, verdict(blob.Armor(), namespace, message), decision.SignatureMalformed)
		})
	}
}

func TestWeakKeys(t *testing.T) {
	rsaKey := testkit.NewSigner(t, "rsa3072")
	blob := testkit.NewBlob(t, rsaKey, namespace, message)
	sha1 := blob
	sha1.Signature = bytes.Replace(blob.Signature, wire("rsa-sha2-512"), wire("ssh-rsa"), 1)
	short := blob
	short.Signature = rawSignature("rsa-sha2-512", make([]byte, 383))

	small := testkit.KeygenSign(t, testkit.NewSigner(t, "rsa2048"), namespace, message)
	want(t, verdict(small, namespace, message), decision.KeyTypeRefused)
	want(t, verdict(sha1.Armor(), namespace, message), decision.KeyTypeRefused)
	want(t, verdict(short.Armor(), namespace, message), decision.SignatureMalformed)
}

func TestParseAll(t *testing.T) {
	a, b := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	one, two := testkit.Sign(t, a, namespace, message), testkit.Sign(t, b, namespace, message)
	tests := map[string]struct {
		text  string
		count int
		want  decision.Reason
	}{
		"two":                     {one + two, 2, ""},
		"two without a last LF":   {strings.TrimSuffix(one+two, "\n"), 2, ""},
		"eight":                   {strings.Repeat(one, 8), 8, ""},
		"nine":                    {strings.Repeat(one, 9), 0, decision.SignatureMalformed},
		"a blank line between":    {one + "\n" + two, 0, decision.SignatureMalformed},
		"text between":            {one + "and\n" + two, 0, decision.SignatureMalformed},
		"no LF between":           {strings.TrimSuffix(one, "\n") + two, 0, decision.SignatureMalformed},
		"none":                    {"", 0, decision.SignatureMalformed},
		"a broken second":         {one + two[:60], 0, decision.SignatureMalformed},
		"longer than the schema":  {strings.Repeat(one, 60), 0, decision.SignatureMalformed},
		"only an END line":        {"-----END SSH SIGNATURE-----", 0, decision.SignatureMalformed},
		"a block that is nothing": {testkit.Armor(nil), 0, decision.SignatureMalformed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all, err := sshsig.ParseAll([]byte(tt.text))
			if tt.want == "" {
				if err != nil || len(all) != tt.count {
					t.Fatalf("got %d, %v", len(all), err)
				}
				return
			}
			if err == nil {
				t.Fatalf("parsed %d", len(all))
			}
			want(t, decision.From(err).Reason, tt.want)
		})
	}
	// What bounds the work must answer before anything is decoded.
	_, err := sshsig.ParseAll([]byte(strings.Repeat("A", sshsig.MaxArmored+1)))
	if e := decision.From(err); e.Reason != decision.SignatureMalformed || !strings.Contains(e.What, "bytes long") {
		t.Errorf("a text that is too long: %v", err)
	}
}
