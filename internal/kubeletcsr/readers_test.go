package kubeletcsr_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var (
	oidName         = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganisation = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidExtensions   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	oidMicrosofts   = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 1, 14}
	oidPassword     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}
)

// of are values in a SEQUENCE or SET.
func of(tag int, values ...[]byte) []byte {
	return must(asn1.Marshal(asn1.RawValue{Tag: tag, IsCompound: true, Bytes: bytes.Join(values, nil)}))
}

// attribute is an identifier with a value of its own or, as an attribute of a request, a SET.
func attribute(id asn1.ObjectIdentifier, value []byte) []byte {
	return of(asn1.TagSequence, must(asn1.Marshal(id)), value)
}

func text(tag int, s string) []byte {
	return must(asn1.Marshal(asn1.RawValue{Tag: tag, Bytes: []byte(s)}))
}

// byHand is a signed request with what crypto/x509 does not make.
func byHand(key crypto.Signer, version int, subject []byte, attributes ...[]byte) []byte {
	inner := must(asn1.Marshal(struct {
		Version      int
		Subject, Key asn1.RawValue
		Attributes   asn1.RawValue
	}{
		version,
		asn1.RawValue{FullBytes: subject},
		asn1.RawValue{FullBytes: must(x509.MarshalPKIXPublicKey(key.Public()))},
		asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: bytes.Join(attributes, nil)},
	}))
	sum := sha256.Sum256(inner)
	signature := must(key.Sign(rand.Reader, sum[:], crypto.SHA256))
	return block(must(asn1.Marshal(struct {
		Inner     asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		asn1.RawValue{FullBytes: inner},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}},
		asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)},
	})))
}

// TestRequestsThatTwoReadersTakeDifferently: the signer and whoever looks at the request later must find in
// it what we found.
func TestRequestsThatTwoReadersTakeDifferently(t *testing.T) {
	key := p256()
	organisation := attribute(oidOrganisation, text(asn1.TagUTF8String, "system:nodes"))
	named := func(name []byte) []byte {
		return of(asn1.TagSequence, of(asn1.TagSet, organisation), of(asn1.TagSet, attribute(oidName, name)))
	}
	subject := named(text(asn1.TagUTF8String, "system:node:"+node))
	good := string(byHand(key, 0, subject))
	names := must(asn1.Marshal([]pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte{0x30, 3, 0x82, 1, 'a'}}}))
	none := of(asn1.TagSequence)
	asks := func(id asn1.ObjectIdentifier, values ...[]byte) []byte {
		return byHand(key, 0, subject, attribute(id, of(asn1.TagSet, values...)))
	}
	for name, tt := range map[string]struct {
		pem  []byte
		says string // "": near miss
	}{
		"near miss: as a kubelet's":        {[]byte(good), ""},
		"near miss: an empty line behind":  {[]byte(good + "\n"), ""},
		"a negative version":               {byHand(key, -1, subject), "of version -1"},
		"another version":                  {byHand(key, 2, subject), "of version 2"},
		"names":                            {asks(oidExtensions, names), "subject alternative names"},
		"names as the second value":        {asks(oidExtensions, none, names), "attributes"},
		"names in an attribute of another": {asks(oidMicrosofts, names), "attributes"},
		"names in what is no set":          {byHand(key, 0, subject, attribute(oidExtensions, of(asn1.TagSequence, names))), "attributes"},
		"names in the second attribute":    {byHand(key, 0, subject, attribute(oidExtensions, of(asn1.TagSet, none)), attribute(oidExtensions, of(asn1.TagSet, names))), "subject alternative names"},
		"a password":                       {asks(oidPassword, text(asn1.TagUTF8String, "secret")), "attributes"},
		"no name in an attribute":          {asks(oidExtensions, none), "attributes"},
		"NUL behind the name":              {byHand(key, 0, named(text(asn1.TagUTF8String, "system:node:"+node+"\x00"))), "for the node"},
		"text before":                      {[]byte("x\n" + good), "not one PEM block alone"},
		"a broken block before":            {[]byte("-----BEGIN CERTIFICATE REQUEST-----\n!!\n-----END CERTIFICATE REQUEST-----\n" + good), "not one PEM block alone"},
		"lines that end otherwise":         {[]byte(strings.ReplaceAll(good, "\n", "\r\n")), "not one PEM block alone"},
	} {
		t.Run(name, func(t *testing.T) {
			r := honest(key)
			r.PEM = tt.pem
			_, err := r.Check(token, node)
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			testkit.WantReason(t, err, decision.CSRMismatch)
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want one that says %q", err, tt.says)
			}
		})
	}
}

// TestTheRequestAsKubeletsSpellIt: by client-go, of which a kubelet has it.
func TestTheRequestAsKubeletsSpellIt(t *testing.T) {
	key := p256()
	r := honest(key)
	r.PEM = must(cert.MakeCSR(key, &pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, nil, nil))
	if _, err := r.Check(token, node); err != nil {
		t.Error(err)
	}
}
