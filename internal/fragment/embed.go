package fragment

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// The annotations of the format (internal/fragment/signature).
const (
	AnnotationSignature   = signature.AnnotationSignature
	AnnotationCertificate = signature.AnnotationCertificate
	AnnotationContent     = signature.AnnotationContent
)

// Annotations are those of a signature over content; embed adds the content itself, so
// that the signature outlives whatever storage does to the object.
func Annotations(content, certificatePEM, sig []byte, embed bool, at time.Time) map[string]string {
	all := signature.Annotations(certificatePEM, sig, at)
	if embed {
		maps.Copy(all, map[string]string{AnnotationContent: pack(content)})
	}
	return all
}

func pack(content []byte) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // memory takes everything
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// unpack gives embedded content. The error carries Tampered, NotCanonical or TooLarge.
func unpack(annotation string) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(annotation)
	// check: Tampered: content that cannot be read is not what was signed
	if err != nil {
		return nil, tampered("the embedded content is not base64")
	}
	_, strict := signature.Decode(annotation)
	// check: NotCanonical: line ends in base64 are skipped by one reader and refused by another
	if !strict {
		return nil, decision.Errorf(decision.NotCanonical, "the embedded content is base64 in another spelling")
	}
	rest := bytes.NewReader(packed)
	member, err := gzip.NewReader(rest)
	// check: Tampered: content that cannot be read is not what was signed
	if err != nil {
		return nil, tampered("the embedded content is not gzip")
	}
	member.Multistream(false)
	content, err := io.ReadAll(io.LimitReader(member, MaxContent+1))
	// check: TooLarge: a few bytes of gzip make gigabytes of content
	if len(content) > MaxContent {
		return nil, decision.Errorf(decision.TooLarge, "the embedded content has more than %d bytes", MaxContent)
	}
	// check: Tampered: content that cannot be read is not what was signed
	if err != nil {
		return nil, tampered("the embedded content is broken gzip")
	}
	// check: NotCanonical: one reader takes the first of several members, another all of them
	if rest.Len() > 0 {
		return nil, decision.Errorf(decision.NotCanonical, "the embedded content has more than one gzip member")
	}
	return content, nil
}

func tampered(what string) *decision.Error { return decision.Errorf(decision.Tampered, "%s", what) }
