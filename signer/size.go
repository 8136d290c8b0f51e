package main

import (
	"bytes"
	"encoding/json"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

const (
	// maxObject is what etcd takes in a request (--max-request-bytes, 1.5 MiB), less what the API server
	// adds to an object: managedFields, uid, times, and the key.
	maxObject = 1536*1024 - 16*1024
	// maxAnnotations bounds all annotations of an object together, and kubectl apply writes the whole
	// object into one (apimachinery, TotalAnnotationSizeLimitB).
	maxAnnotations = 256 * 1024
)

// fits refuses an object that the API server could not store, and warns where kubectl apply needs
// --server-side.
func (s *signing) fits(o manifest.Object) error {
	raw, err := o.Node.JSON()
	if err != nil {
		return decision.Errorf(decision.Malformed, "%v", err)
	}
	// The API server stores custom resources as encoding/json writes them, with <, > and & escaped.
	var stored bytes.Buffer
	json.HTMLEscape(&stored, raw)
	// check: TooLarge: what cannot be stored would be refused only at the cluster, after everyone signed
	if stored.Len() > maxObject {
		return decision.Errorf(decision.TooLarge, "the object takes %d bytes in the cluster, more than %d", stored.Len(), maxObject).
			Try("let install fetch by digest what is large")
	}
	if size := stored.Len() + annotations(o); size > maxAnnotations {
		s.advise("%s: it takes %d bytes, too many for the annotation that kubectl apply writes: use kubectl apply --server-side", s.subject, stored.Len())
	}
	return nil
}

// annotations is the size of those that the object has already.
func annotations(o manifest.Object) int {
	size := len("kubectl.kubernetes.io/last-applied-configuration")
	if n := o.Node.Path("metadata", "annotations"); n != nil {
		for _, p := range n.Pairs {
			size += len(p.Key.Text) + len(p.Value.Text)
		}
	}
	return size
}
