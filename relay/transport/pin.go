package transport

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// maxPin bounds the pin's text: sixteen RSA 16384 keys fit.
const maxPin = 64 << 10

// Pin says which keys a host may show: its own, or a certificate of a host CA.
// The zero Pin accepts none.
type Pin struct {
	keys        []ssh.PublicKey
	authorities []ssh.PublicKey
}

// ParsePin reads the pin of one host: public key lines ("ssh-ed25519 AAAA…") or
// known_hosts lines, one key each, with @cert-authority for a host CA. The
// names in a known_hosts line are not looked at, since the pin belongs to one
// host already. A fingerprint is no pin: it does not say which key types to ask
// for, and so leaves the choice to whoever answers.
func ParsePin(text []byte) (Pin, error) {
	// check: TooLarge: a Secret full of lines, parsed again for each attempt
	if len(text) > maxPin {
		return Pin{}, failed(HostKeyNotPinned, "the pin is longer than %d bytes", maxPin)
	}
	var p Pin
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.add(line); err != nil {
			return Pin{}, err
		}
	}
	// check: HostKeyNotPinned: trust on first use lets whoever answers first be the host for ever
	if p.empty() {
		return Pin{}, failed(HostKeyNotPinned, "no host key is pinned")
	}
	return p, nil
}

func (p *Pin) empty() bool { return len(p.keys)+len(p.authorities) == 0 }

func (p *Pin) add(line string) error {
	// check: HostKeyNotPinned: a fingerprint does not say which key types to ask for
	if strings.HasPrefix(line, "SHA256:") || strings.HasPrefix(line, "MD5:") {
		return failed(HostKeyNotPinned, "a fingerprint is no pin, give the whole public key line")
	}
	if strings.HasPrefix(line, "@") || !isKeyLine(line) {
		return p.addKnownHost(line)
	}
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(options) > 0 || len(rest) > 0 {
		return failed(HostKeyNotPinned, "a line of the pin is no public key")
	}
	return p.addKey(key, &p.keys)
}

func isKeyLine(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return len(algorithms(word)) > 0
}

func (p *Pin) addKnownHost(line string) error {
	marker, _, key, _, _, err := ssh.ParseKnownHosts([]byte(line))
	if err != nil {
		return failed(HostKeyNotPinned, "a line of the pin is neither a known_hosts line nor a public key")
	}
	switch marker {
	case "":
		return p.addKey(key, &p.keys)
	case "cert-authority":
		return p.addKey(key, &p.authorities)
	default:
		return failed(HostKeyNotPinned, "the pin has a line with @%.20s", marker)
	}
}

func (p *Pin) addKey(key ssh.PublicKey, to *[]ssh.PublicKey) error {
	// check: HostKeyNotPinned: DSA, certificates pasted as keys, and types whose algorithms we do not know
	if len(algorithms(key.Type())) == 0 {
		return failed(HostKeyNotPinned, "the pin has a key of type %.40q, which is not accepted", key.Type())
	}
	*to = append(*to, key)
	return nil
}

// algorithms are the host key algorithms of a key type, none with SHA-1.
func algorithms(keyType string) []string {
	switch keyType {
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return []string{keyType}
	default:
		return nil
	}
}

// certAlgorithms are those under which a host with a certificate may prove its
// key; the CA's type says nothing about the type of the host's key.
func certAlgorithms() []string {
	return []string{
		ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
		ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
	}
}

// Algorithms are what to ask a host for: only what the pin can recognise, so that
// a host with several keys shows the pinned one.
func (p Pin) Algorithms() []string {
	var out []string
	if len(p.authorities) > 0 {
		out = certAlgorithms()
	}
	for _, key := range p.keys {
		for _, algorithm := range algorithms(key.Type()) {
			if !slices.Contains(out, algorithm) {
				out = append(out, algorithm)
			}
		}
	}
	return out
}

// callback compares the key that a host shows with the pin.
func (p Pin) callback() ssh.HostKeyCallback {
	checker := &ssh.CertChecker{
		IsHostAuthority: func(ca ssh.PublicKey, _ string) bool { return holds(p.authorities, ca) },
		HostKeyFallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			// check: HostKeyNotPinned: a machine in the middle that answers for the host
			if !holds(p.keys, key) {
				return failed(HostKeyMismatch, "the host shows the key %s, which is not pinned", ssh.FingerprintSHA256(key))
			}
			return nil
		},
	}
	return func(address string, remote net.Addr, key ssh.PublicKey) error {
		err := checker.CheckHostKey(address, remote, key)
		cert, isCert := key.(*ssh.Certificate)
		// check: HostKeyNotPinned: a certificate for another host, made from one of the CA's by a collision of SHA-1
		if err == nil && isCert && cert.Signature.Format == ssh.KeyAlgoRSA {
			err = errors.New("the CA signed it with SHA-1")
		}
		if err != nil && isCert {
			return failed(HostKeyMismatch, "the host shows a certificate that does not hold: %.200v", err)
		}
		return err
	}
}

func holds(keys []ssh.PublicKey, key ssh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) })
}

// Keys are the host's own keys that are pinned.
func (p Pin) Keys() []ssh.PublicKey { return slices.Clone(p.keys) }

// Authorities are the host CAs that are pinned.
func (p Pin) Authorities() []ssh.PublicKey { return slices.Clone(p.authorities) }

// maxNamed is how many fingerprints a message holds, so that what stands before and behind them is read.
const maxNamed = 4

// fingerprints names the pinned keys and authorities.
func (p Pin) fingerprints() string {
	var names []string
	for _, key := range p.keys {
		names = append(names, ssh.FingerprintSHA256(key))
	}
	for _, key := range p.authorities {
		names = append(names, "the CA "+ssh.FingerprintSHA256(key))
	}
	more := ""
	if len(names) > maxNamed {
		names, more = names[:maxNamed], fmt.Sprintf(" and %d more", len(names)-maxNamed)
	}
	return strings.Join(names, ", ") + more
}

// Outside gives a pinned key that is not among keys, or a pinned authority that is
// not among authorities, and nil where there is none.
func (p Pin) Outside(keys, authorities []ssh.PublicKey) ssh.PublicKey {
	for _, key := range p.keys {
		// check: HostKeyNotPinned: one more key in the Secret, and another machine may be the host
		if !holds(keys, key) {
			return key
		}
	}
	for _, key := range p.authorities {
		// check: HostKeyNotPinned: one more CA in the Secret, and every machine that it certifies may be the host
		if !holds(authorities, key) {
			return key
		}
	}
	return nil
}
