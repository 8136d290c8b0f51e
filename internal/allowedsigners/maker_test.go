package allowedsigners_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// oddCase is a generated question, and the classes in which it may diverge.
type oddCase struct {
	question
	odd map[string]bool
}

// maker makes cases. Its keys are made once a run; the cases come from a seed.
type maker struct {
	t        *testing.T
	users    map[string]testkit.Signer
	cas      map[string]testkit.Signer
	stranger testkit.Signer
	signed   map[string]string // by kind, namespace and hash
}

// Identities and namespaces are few, so that they often meet.
func identities() []string {
	return []string{"kpssh", "join@tls-a", "leave@tls-a", "alice@example.org", "alice b", "*", "Kpssh", "é"}
}

func spaces() []string { return []string{"kpssh", "file", "hostwarrant-policy"} }

func kinds() []string { return append(testkit.KeyTypes(), weakKinds()...) }

func weakKinds() []string { return []string{"rsa2048", "sk-ed25519-untouched"} }

func newMaker(t *testing.T) *maker {
	m := &maker{t: t, users: map[string]testkit.Signer{}, cas: map[string]testkit.Signer{}, signed: map[string]string{}, stranger: testkit.NewSigner(t, "ed25519")}
	for _, kind := range kinds() {
		m.users[kind] = testkit.NewSigner(t, kind)
		for _, space := range spaces() {
			for _, hash := range []string{"sha256", "sha512"} {
				m.signed[kind+space+hash] = sign(t, m.users[kind], space, hash, rsaHash(hash))
			}
		}
	}
	for _, kind := range append(kinds(), "rsa3072-sha1") {
		m.cas[kind] = testkit.NewSigner(t, strings.TrimSuffix(kind, "-sha1"))
	}
	m.cas["rsa3072-sha1"] = testkit.Signer{Signer: bySHA1{m.cas["rsa3072-sha1"].Signer}, Line: m.cas["rsa3072-sha1"].Line}
	return m
}

func rsaHash(hash string) string {
	if hash == "sha256" {
		return ssh.KeyAlgoRSASHA256
	}
	return ssh.KeyAlgoRSASHA512
}

// bySHA1 hides that an RSA key can do better.
type bySHA1 struct{ signer ssh.Signer }

func (s bySHA1) PublicKey() ssh.PublicKey { return s.signer.PublicKey() }

func (s bySHA1) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	return s.signer.Sign(random, data)
}

// sign makes a signature by hand: our own code refuses to sign with a weak key.
func sign(t testing.TB, s testkit.Signer, space, hash, rsaAlgorithm string) string {
	t.Helper()
	sum := sha512.Sum512(message)
	digest := sum[:]
	if hash == "sha256" {
		short := sha256.Sum256(message)
		digest = short[:]
	}
	data := append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{space, "", hash, digest})...)
	signature, err := s.Sign(rand.Reader, data)
	if algorithms, ok := s.Signer.(ssh.AlgorithmSigner); ok && s.PublicKey().Type() == ssh.KeyAlgoRSA {
		signature, err = algorithms.SignWithAlgorithm(rand.Reader, data, rsaAlgorithm)
	}
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Blob{
		Magic: "SSHSIG", Version: 1, Key: s.PublicKey().Marshal(), Namespace: space, Hash: hash, Signature: ssh.Marshal(signature),
	}.Armor()
}

// draft is a case in the making.
type draft struct {
	*maker
	*mathrand.Rand
	oddCase
	kind, ca    string
	certificate *ssh.Certificate // nil: a raw key signs
}

func (d *draft) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d *draft, from ...T) T { return from[d.IntN(len(from))] }

func (m *maker) make(random *mathrand.Rand) oddCase {
	d := &draft{maker: m, Rand: random, oddCase: oddCase{odd: map[string]bool{}}}
	d.message, d.identity, d.namespace = message, pick(d, identities()...), "kpssh"
	d.now = testkit.Now().Add(time.Duration(d.IntN(3)-1) * time.Second)
	d.kind, d.ca = pick(d, testkit.KeyTypes()...), pick(d, "ed25519", "ecdsa256", "rsa3072", "sk-ecdsa256", "sk-ed25519")
	if d.chance(8) {
		d.kind = pick(d, weakKinds()...)
	}
	space := d.namespace
	if d.chance(5) {
		space = pick(d, spaces()...)
	}
	if d.chance(5) {
		d.namespace = pick(d, spaces()...)
	}
	d.signature = m.signed[d.kind+space+pick(d, "sha256", "sha512")]
	switch d.kind {
	case "rsa2048":
		d.odd["rsa-size"] = true
	case "sk-ed25519-untouched":
		d.odd["untouched"] = true
	}
	if d.chance(45) {
		d.certify()
	}
	d.makeList()
	if d.chance(40) {
		d.makeRevoked()
	}
	if d.chance(22) {
		d.changeSignature()
	}
	return d.oddCase
}

// certify puts a certificate in place of the key.
func (d *draft) certify() {
	if d.chance(10) {
		d.ca = pick(d, "rsa2048", "rsa3072-sha1", "sk-ed25519-untouched")
		d.odd["certificate-authority"] = true
	}
	principals := []string{d.identity}
	switch d.IntN(20) {
	case 0:
		principals = []string{pick(d, identities()...)}
	case 1:
		principals = append(identities(), d.identity)
	case 2:
		principals = nil
	case 3:
		principals = []string{"*", "k*"}
	}
	d.certificate = testkit.Certify(d.t, d.cas[d.ca], d.users[d.kind].PublicKey(), principals, d.changeCertificate)
	blob := testkit.ParseBlob(d.t, d.signature)
	blob.Key = d.certificate.Marshal()
	if d.chance(4) {
		d.odd[anything] = true
		blob.Key[d.IntN(len(blob.Key))] ^= 1 << d.IntN(8)
	}
	if d.chance(4) && d.ca == "ed25519" {
		d.odd["certificate-encoding"] = true
		blob.Key = d.spell()
	}
	d.signature = blob.Armor()
}

// spell has the CA sign an extension in a spelling that is not that of PROTOCOL.certkeys.
func (d *draft) spell() []byte {
	c := *d.certificate
	c.Extensions = map[string]string{"zz": ""}
	c.Signature = nil
	data := bytes.Replace(c.Marshal(), wires(wires("zz", "")), wires(wires("zz", pick(d, "x", "\x00\x00\x00\x00"))), 1)
	data = data[:len(data)-4]
	signature, err := d.cas[d.ca].Sign(rand.Reader, data)
	if err != nil {
		d.t.Error(err)
	}
	return append(data, wires(ssh.Marshal(signature))...)
}

func (d *draft) changeCertificate(c *ssh.Certificate) {
	near := func() uint64 { return uint64(d.now.Unix() + int64(d.IntN(3)-1)) }
	switch d.IntN(40) {
	case 0:
		c.CertType = pick[uint32](d, ssh.HostCert, 0, 3)
	case 1:
		c.CriticalOptions = map[string]string{pick(d, "force-command", "source-address", "x@example.org"): pick(d, "", "y")}
		d.odd["certificate-options"] = true
	case 2:
		c.ValidBefore = ssh.CertTimeInfinity
		d.odd["certificate-end"] = true
	case 3, 4, 5:
		c.ValidBefore = near()
	case 6, 7, 8:
		c.ValidAfter = near()
	case 9:
		c.ValidAfter, c.ValidBefore = 0, pick[uint64](d, 0, 1, 1<<63, 1<<63-1)
		d.odd["certificate-end"] = true
	case 10:
		c.KeyId = pick(d, "", "test", "a\x00b")
	case 11:
		c.Extensions = map[string]string{"no-touch-required": "", "x@example.org": "y"}
	case 12:
		c.Serial = pick[uint64](d, 0, 1, 1<<64-1)
	case 13:
		for len(c.ValidPrincipals) < 257-d.IntN(2) {
			c.ValidPrincipals = append(c.ValidPrincipals, d.identity)
		}
	}
}
