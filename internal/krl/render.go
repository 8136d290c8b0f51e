package krl

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/wire"
)

// Render writes a KRL that revokes the keys with these fingerprints, and
// certificates of them or by them. It is what "ssh-keygen -k -z serial" writes
// for their "hash:" lines at that date, byte for byte. A fingerprint is spelled
// "SHA256:" and 43 characters, as ssh-keygen prints it; twice is once.
func Render(fingerprints []string, serial uint64, date time.Time) ([]byte, error) {
	var hashes [][]byte
	for _, f := range fingerprints {
		hash, err := parseFingerprint(f)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hash)
	}
	slices.SortFunc(hashes, bytes.Compare)
	hashes = slices.CompactFunc(hashes, bytes.Equal)

	b := []byte(magic)
	b = binary.BigEndian.AppendUint32(b, formatVersion)
	b = binary.BigEndian.AppendUint64(b, serial)
	b = binary.BigEndian.AppendUint64(b, uint64(max(date.Unix(), 0)))
	b = binary.BigEndian.AppendUint64(b, 0) // flags
	b = wire.AppendString(b, "")            // reserved
	b = wire.AppendString(b, "")            // comment
	if len(hashes) > 0 {
		var section []byte
		for _, hash := range hashes {
			section = wire.AppendString(section, hash)
		}
		b = append(b, sectionSHA256)
		b = wire.AppendString(b, section)
	}
	// check: TooLarge: a list that nobody can read revokes nothing
	if len(b) > MaxSize {
		return nil, decision.Errorf(decision.TooLarge, "%d fingerprints make a list of more than %d bytes", len(hashes), MaxSize)
	}
	return b, nil
}

func parseFingerprint(f string) ([]byte, error) {
	encoded, found := strings.CutPrefix(f, "SHA256:")
	hash, err := base64.RawStdEncoding.Strict().DecodeString(encoded)
	// check: Malformed: a fingerprint with a slip in it revokes nobody
	if !found || err != nil || len(hash) != 32 || len(encoded) != 43 {
		return nil, malformed("%.60q is not a fingerprint %q", f, "SHA256:…")
	}
	return hash, nil
}
