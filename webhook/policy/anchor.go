package policy

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Files of the anchor directory, and keys of the ConfigMap that is mounted there.
const (
	rootsFile     = "roots"
	clusterIDFile = "cluster-id"
)

// maxAnchorFile bounds what is read: 16 root keys of RSA 16384 are 45 KiB.
const maxAnchorFile = 64 << 10

// Anchor is what the operator installed: which root keys to believe, and which cluster this is.
type Anchor struct {
	verify.Anchor
	// Digest identifies the roots file, so that two programs can be compared.
	Digest string
}

// LoadAnchor reads the anchor directory.
func LoadAnchor(dir string) (Anchor, error) {
	text, err := readBounded(filepath.Join(dir, rootsFile), maxAnchorFile)
	if err != nil {
		return Anchor{}, fmt.Errorf("reading the anchor: %v", err)
	}
	id, err := readBounded(filepath.Join(dir, clusterIDFile), maxAnchorFile)
	if err != nil {
		return Anchor{}, fmt.Errorf("reading the anchor: %v", err)
	}
	anchor, err := verify.ParseAnchor(text, id)
	if err != nil {
		return Anchor{}, fmt.Errorf("reading the anchor in %s: %v", dir, err)
	}
	return Anchor{Anchor: anchor, Digest: trustpolicy.Digest(text)}, nil
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
