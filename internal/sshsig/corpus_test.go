package sshsig_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const (
	opensshData    = "sshsig/openssh/regress/unittests/sshsig/testdata/"
	opensshKeys    = "sshsig/openssh/regress/unittests/sshkey/testdata"
	rustcryptoData = "sshsig/rustcrypto/tests/examples/"
)

// vector is a published signature with the verdict a strict verifier gives.
type vector struct {
	signature, key string
	namespace      string
	message        []byte
	want           decision.Reason
	keygenDiffers  bool // ssh-keygen accepts what we refuse
}

func vectors(t *testing.T) map[string]vector {
	data := testkit.Corpus(t, opensshData+"signed-data")
	all := map[string]vector{}
	add := func(name, dir, signature, key, ns string, msg []byte, want decision.Reason, differs bool) {
		all[name] = vector{string(testkit.Corpus(t, dir+signature)), string(testkit.Corpus(t, dir+key)), ns, msg, want, differs}
	}
	for _, name := range []string{"rsa", "ecdsa", "ed25519", "ecdsa_sk", "ed25519_sk"} {
		add("openssh/"+name, opensshData, name+".sig", name+".pub", "unittest", data, decision.Verified, false)
	}
	add("openssh/ecdsa_sk_webauthn", opensshData, "ecdsa_sk_webauthn.sig", "ecdsa_sk_webauthn.pub", "unittest", data, decision.KeyTypeRefused, true)
	add("openssh/mldsa44-ed25519", opensshData, "mldsa44-ed25519.sig", "mldsa44-ed25519.pub", "unittest", data, decision.KeyTypeRefused, false)
	for name, key := range map[string]string{"ed25519": "id_ed25519", "sk_ed25519": "id_sk_ed25519_2", "rsa_3072": "id_rsa_3072", "ecdsa_p256": "id_ecdsa_p256", "ecdsa_p384": "id_ecdsa_p384"} {
		add("rustcrypto/"+name, rustcryptoData, "sshsig_"+name, key+".pub", "example", []byte("testing"), decision.Verified, false)
	}
	add("rustcrypto/dsa_1024", rustcryptoData, "sshsig_dsa_1024", "id_dsa_1024.pub", "example", []byte("testing"), decision.KeyTypeRefused, true)
	return all
}

func TestPublishedVectors(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			want(t, verdict(v.signature, v.namespace, v.message), v.want)
			keygen := testkit.KeygenAccepts(t, strings.TrimSpace(v.key), v.namespace, v.message, []byte(v.signature))
			if ours := v.want == decision.Verified; keygen != ours && !v.keygenDiffers {
				t.Errorf("ssh-keygen accepts: %v, we accept: %v, and docs/divergences.md has no such case", keygen, ours)
			}
			if v.want != decision.Verified {
				return
			}
			s, err := sshsig.Parse([]byte(v.signature))
			if err != nil {
				t.Fatal(err)
			}
			key, _, err := sshsig.ParsePublicKey(strings.TrimSpace(v.key))
			if err != nil || sshsig.Fingerprint(key) != sshsig.Fingerprint(s.PublicKey()) {
				t.Errorf("the signature's key is not that of the .pub file: %v", err)
			}
			changed := append([]byte("x"), v.message[1:]...)
			want(t, verdict(v.signature, v.namespace, changed), decision.SignatureInvalid)
			want(t, verdict(v.signature, "other", v.message), decision.WrongNamespace)
		})
	}
}

func TestPublishedSignaturesSwapped(t *testing.T) {
	all := vectors(t)
	a, b := all["openssh/ed25519"], all["rustcrypto/ed25519"]
	want(t, verdict(a.signature, b.namespace, b.message), decision.WrongNamespace)
	want(t, verdict(a.signature, a.namespace, b.message), decision.SignatureInvalid)
	want(t, verdict(b.signature, b.namespace, a.message), decision.SignatureInvalid)
}

// TestPublishedKeys reads every public key file: what may sign has the published
// fingerprint, and no certificate may.
func TestPublishedKeys(t *testing.T) {
	dir := testkit.CorpusDir(t, opensshKeys)
	files, err := filepath.Glob(dir + "/*.pub")
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d key files, %v", len(files), err)
	}
	accepted := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".param.pub") {
			continue // a bare curve point
		}
		line, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := sshsig.ParsePublicKey(strings.TrimSpace(string(line)))
		if strings.Contains(file, "-cert") || strings.Contains(file, "mldsa") {
			if decision.From(err).Reason != decision.KeyTypeRefused {
				t.Errorf("%s: %v, want KeyTypeRefused", filepath.Base(file), err)
			}
			continue
		}
		if err != nil { // the RSA test keys have 1024 bits
			if !strings.HasPrefix(filepath.Base(file), "rsa_") {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
			want(t, decision.From(err).Reason, decision.KeyTypeRefused)
			continue
		}
		accepted++
		fp, err := os.ReadFile(strings.TrimSuffix(file, ".pub") + ".fp")
		if err != nil {
			continue // not every key has one
		}
		if got := sshsig.Fingerprint(key); got != strings.TrimSpace(string(fp)) {
			t.Errorf("%s: fingerprint %s, want %s", filepath.Base(file), got, fp)
		}
	}
	if accepted < 6 {
		t.Errorf("only %d keys were accepted", accepted)
	}
}

type wycheproof struct {
	TestGroups []struct {
		PublicKey struct{ PK, Uncompressed, Modulus, PublicExponent string }
		Tests     []struct {
			TCID                      int
			Comment, Msg, Sig, Result string
		}
	}
}

// TestWycheproof puts the published edge cases to the verification code that
// Signature.Verify stands on.
func TestWycheproof(t *testing.T) {
	for name, curve := range map[string]elliptic.Curve{
		"ed25519_test": nil, "rsa_signature_2048_sha512_test": nil, "rsa_signature_3072_sha512_test": nil,
		"ecdsa_secp256r1_sha256_test": elliptic.P256(), "ecdsa_secp384r1_sha384_test": elliptic.P384(), "ecdsa_secp521r1_sha512_test": elliptic.P521(),
	} {
		t.Run(name, func(t *testing.T) {
			var file wycheproof
			if err := json.Unmarshal(testkit.Corpus(t, "sshsig/wycheproof/"+name+".json"), &file); err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, g := range file.TestGroups {
				key := wycheproofKey(t, curve, g.PublicKey.PK, g.PublicKey.Uncompressed, g.PublicKey.Modulus, g.PublicKey.PublicExponent)
				for _, tt := range g.Tests {
					signature, ok := wycheproofSignature(key, unhex(t, tt.Sig))
					if !ok {
						continue // a fault of DER, which SSH does not have
					}
					count++
					got := key.Verify(unhex(t, tt.Msg), signature) == nil
					if want := tt.Result == "valid"; got != want { // "acceptable" is not required of anyone
						t.Errorf("case %d (%s): accepted %v, labelled %s", tt.TCID, tt.Comment, got, tt.Result)
					}
				}
			}
			if count < 100 {
				t.Errorf("only %d cases ran", count)
			}
		})
	}
}

func wycheproofKey(t *testing.T, curve elliptic.Curve, pk, point, modulus, exponent string) ssh.PublicKey {
	t.Helper()
	var raw any
	switch {
	case pk != "":
		raw = ed25519.PublicKey(unhex(t, pk))
	case curve != nil:
		public, err := ecdsa.ParseUncompressedPublicKey(curve, unhex(t, point))
		if err != nil {
			t.Fatal(err)
		}
		raw = public
	default:
		raw = &rsa.PublicKey{N: new(big.Int).SetBytes(unhex(t, modulus)), E: int(new(big.Int).SetBytes(unhex(t, exponent)).Int64())}
	}
	key, err := ssh.NewPublicKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// wycheproofSignature rewrites DER as SSH's two mpints, where that can be done.
func wycheproofSignature(key ssh.PublicKey, sig []byte) (*ssh.Signature, bool) {
	switch key.Type() {
	case ssh.KeyAlgoED25519:
		return &ssh.Signature{Format: key.Type(), Blob: sig}, true
	case ssh.KeyAlgoRSA:
		return &ssh.Signature{Format: ssh.KeyAlgoRSASHA512, Blob: sig}, true
	}
	var rs struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(sig, &rs)
	if again, e := asn1.Marshal(rs); err != nil || e != nil || len(rest) != 0 || string(again) != string(sig) {
		return nil, false
	}
	return &ssh.Signature{Format: key.Type(), Blob: ssh.Marshal(rs)}, true
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
