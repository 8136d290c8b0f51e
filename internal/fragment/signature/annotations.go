package signature

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"time"
)

// The annotations of the format. All but the first three are display, which nobody signed.
const (
	prefix                = "signature.kubescape.io/"
	AnnotationSignature   = prefix + "signature"
	AnnotationCertificate = prefix + "certificate"
	AnnotationContent     = prefix + "content"
	AnnotationIssuer      = prefix + "issuer"
	AnnotationIdentity    = prefix + "identity"
	AnnotationTimestamp   = prefix + "timestamp"
)

// Annotations are those that a signer writes beside what it signed.
func Annotations(certificatePEM, signature []byte, at time.Time) map[string]string {
	return map[string]string{
		AnnotationSignature:   base64.StdEncoding.EncodeToString(signature),
		AnnotationCertificate: base64.StdEncoding.EncodeToString(certificatePEM),
		AnnotationIssuer:      "local",
		AnnotationIdentity:    "local-key",
		AnnotationTimestamp:   strconv.FormatInt(at.Unix(), 10),
	}
}

// Decode is strict base64: of each text there is one spelling. encoding/base64 skips
// line ends even where it is strict.
func Decode(text string) (decoded []byte, ok bool) {
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	return decoded, err == nil && !bytes.ContainsAny([]byte(text), "\r\n")
}
