package sshsig

import (
	"regexp"

	"golang.org/x/crypto/ssh"
)

// FingerprintPattern is what a fingerprint in OpenSSH's spelling looks like, as a
// POSIX ERE: 32 bytes in base64 without padding. The last digit has two bits to
// spare, which are zero: with any other digit it looks like one and names no key.
const FingerprintPattern = `SHA256:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]`

var fingerprint = regexp.MustCompile(`^` + FingerprintPattern + `$`)

// Fingerprint is the OpenSSH form "SHA256:…", by which people tell keys apart.
func Fingerprint(key ssh.PublicKey) string { return ssh.FingerprintSHA256(key) }

// ValidFingerprint reports whether Fingerprint gives the text for some key.
func ValidFingerprint(text string) bool { return fingerprint.MatchString(text) }
