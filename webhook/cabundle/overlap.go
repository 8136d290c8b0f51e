package cabundle

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"time"
)

const (
	// Overlap is how long the former CA stays beside the one that follows it. Replicas change within
	// minutes (a mounted Secret takes the kubelet up to two; webhook/certgate waits for this bundle);
	// a day covers issuers that date certificates back by an hour, and a replica that was cut off.
	Overlap = 24 * time.Hour
	// formerKept is how many former CAs stay: two changes within a day.
	formerKept = 2
)

// bundle is what caBundle is to hold: ca, and for Overlap after issued the former CAs of live, newest
// first. A former CA that was taken out of live stays out, so an operator can end its trust at once.
func bundle(live, ca []byte, issued, now time.Time) []byte {
	all := [][]byte{bytes.TrimSpace(ca)}
	if now.Before(issued.Add(Overlap)) {
		all = append(all, former(live, ca, now)...)
	}
	return append(bytes.Join(all, []byte("\n")), '\n')
}

// former lists the CAs of live but for ca, as PEM without the final newline.
func former(live, ca []byte, now time.Time) (kept [][]byte) {
	current, _ := pem.Decode(ca)
	for rest := live; len(kept) < formerKept; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if current != nil && bytes.Equal(block.Bytes, current.Bytes) {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !cert.IsCA || !now.Before(cert.NotAfter) {
			continue
		}
		kept = append(kept, bytes.TrimSpace(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})))
	}
	return kept
}

// issuedAt is when the certificate that the Secret was last filled with was issued: tls.crt is the
// leaf's where others issue it, and the CA's own where we do. Without one there is nothing to bridge.
func issuedAt(text []byte) time.Time {
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return cert.NotBefore
}
