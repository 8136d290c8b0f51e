package policy

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hostwarrant/hostwarrant/internal/inforce"
)

// Anchor is what the operator installed: which root keys to believe, and which cluster this is.
type Anchor = inforce.Anchor

// LoadAnchor reads the anchor directory. It is read once: an anchor that changes has no effect before
// the next start, and is compared with the pinned one then.
func LoadAnchor(dir string) (Anchor, error) {
	roots, err := readBounded(filepath.Join(dir, inforce.RootsFile), inforce.MaxAnchorFile)
	if err != nil {
		return Anchor{}, fmt.Errorf("reading the anchor: %v", err)
	}
	id, err := readBounded(filepath.Join(dir, inforce.ClusterIDFile), inforce.MaxAnchorFile)
	if err != nil {
		return Anchor{}, fmt.Errorf("reading the anchor: %v", err)
	}
	anchor, err := inforce.ParseAnchor(roots, id)
	if err != nil {
		return Anchor{}, fmt.Errorf("reading the anchor in %s: %v", dir, err)
	}
	return anchor, nil
}

// readBounded reads a whole small file.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return text, err
}
