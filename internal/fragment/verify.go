package fragment

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/canonical"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// Verify reports what was signed, by the strict profile of docs/spec/fragments.md. Whether
// the signer may is not asked. The error carries Unsigned, SignatureMalformed,
// SignatureInvalid, KeyTypeRefused, Tampered, NotCanonical, KindMismatch, Malformed or TooLarge.
func Verify(o *Object) (*Fragment, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	sig, err := signature.Read(o.Annotations)
	if err != nil {
		return nil, err
	}
	if embedded, ok := o.Annotations[AnnotationContent]; ok {
		return verifyEmbedded(o, sig, embedded)
	}
	content, s, err := build(o)
	if err != nil {
		return nil, err
	}
	digest, err := verified(sig, content)
	if err != nil {
		return nil, err
	}
	return describe(&document{o.APIVersion, o.Kind, metadata{o.Labels, o.Name}, nil}, s, sig, content, digest)
}

// verifyEmbedded takes everything from the embedded content; the stored object is held against it only to report.
func verifyEmbedded(o *Object, sig *signature.Signature, embedded string) (*Fragment, error) {
	content, err := unpack(embedded)
	if err != nil {
		return nil, err
	}
	digest, err := verified(sig, content)
	if err != nil {
		return nil, err
	}
	d, s, err := decode(content, o)
	if err != nil {
		return nil, err
	}
	// check: Tampered: a carrier under another name takes the place of a fragment that its signer did not mean
	if d.Metadata.Name != o.Name {
		return nil, tampered("the content is signed for another name").At("metadata.name")
	}
	f, err := describe(d, s, sig, content, digest)
	if err != nil {
		return nil, err
	}
	f.Diverges = diverges(o.Kind, o.Spec, d.Spec)
	return f, nil
}

// verified gives the digest of content that sig signs.
func verified(sig *signature.Signature, content []byte) (string, error) {
	digest, err := canonical.Hash(content)
	if err != nil {
		return "", unhashed(err)
	}
	return digest, sig.Verify(digest)
}

// unhashed is the error of content that has no hash.
func unhashed(err error) error {
	e := decision.From(err)
	// check: Tampered: nobody signs what has no hash
	if e.Reason == decision.Malformed {
		return tampered("the content is " + e.What)
	}
	return e
}

func describe(d *document, s *spec, sig *signature.Signature, content []byte, digest string) (*Fragment, error) {
	version, err := versionOf(d.Metadata.Labels)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	return &Fragment{
		APIVersion: d.APIVersion, Kind: d.Kind, Name: d.Metadata.Name, Labels: d.Metadata.Labels,
		Bundle: d.Metadata.Labels[LabelBundle], Class: d.Metadata.Labels[LabelClass], Version: version,
		Signer: sig.Signer, Digest: digest, Bytes: hex.EncodeToString(sum[:]),
		Profile: s.profile, Rules: s.rules, Other: []byte(s.other),
	}, nil
}

var versionGrammar = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

func versionOf(labels map[string]string) (int64, error) {
	text, given := labels[LabelVersion]
	if !given {
		return 0, nil
	}
	version, err := strconv.ParseInt(text, 10, 64)
	// check: Malformed: a version that readers take differently is no mark to hold others against
	if err != nil || !versionGrammar.MatchString(text) {
		return 0, decision.Errorf(decision.Malformed, "%.40q is not a whole number from 0 to %d", text, int64(1<<63-1)).At("metadata.labels[" + LabelVersion + "]")
	}
	return version, nil
}

// Content is what a signature of the object covers, as the format writes it. The error
// carries KindMismatch, Malformed or NotCanonical.
func Content(o *Object) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	content, _, err := build(o)
	if err != nil {
		return nil, err
	}
	_, err = versionOf(o.Labels)
	return content, err
}

// Digest is the canonical hash of content, as 64 hex digits: the text that is signed.
func Digest(content []byte) (string, error) { return canonical.Hash(content) }

// Signer is the fingerprint of the key that the object claims to be signed by. It reads
// the certificate alone and verifies nothing of the content: it is there to drop, before
// any work, what no policy could admit.
func Signer(o *Object) (string, error) {
	sig, err := signature.Read(o.Annotations)
	if err != nil {
		return "", err
	}
	return sig.Signer, nil
}

// Fingerprint is how policies name a key: "key:" and the SHA-256 of its SPKI in hex. The
// error carries KeyTypeRefused.
func Fingerprint(key *ecdsa.PublicKey) (string, error) { return signature.Fingerprint(key) }
