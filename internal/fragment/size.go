package fragment

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"strings"
)

// Unpacks reports whether the embedded content of a carrier has more than limit bytes, and stops
// reading there. Where there is none, or it cannot be read, it has not: that is for Verify to say.
func Unpacks(o *Object, limit int64) bool {
	member, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(o.Annotations[AnnotationContent])))
	if err != nil {
		return false
	}
	read, err := io.CopyN(io.Discard, member, limit+1)
	return err == nil && read > limit
}
