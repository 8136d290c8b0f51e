package kubeletcsr

import (
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
)

// OwnName is the name that a kubelet gives the request for this key and subject, so that it finds it again: it
// waits for the certificate of no other request (digestedName in kubelet's bootstrap.go). It is "" of what
// cannot be read.
func (r Request) OwnName() string {
	x, err := parse(r.PEM)
	if err != nil {
		return ""
	}
	key, err := x509.MarshalPKIXPublicKey(x.PublicKey)
	if err != nil {
		return ""
	}
	parts := append([]string{string(key), x.Subject.CommonName}, x.Subject.Organization...)
	parts = append(parts, "digital signature", "client auth")
	if _, ok := x.PublicKey.(*rsa.PublicKey); ok {
		parts = append(parts, "key encipherment")
	}
	hash := sha512.New512_256()
	for _, part := range parts {
		hash.Write([]byte(base64.RawURLEncoding.EncodeToString([]byte(part)) + "|"))
	}
	return "node-csr-" + base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}
