package sshsig

import (
	"bytes"
	"encoding/base64"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

const (
	beginLine = "-----BEGIN SSH SIGNATURE-----\n"
	endLine   = "-----END SSH SIGNATURE-----\n"

	// columns is the width ssh-keygen writes.
	columns = 70

	// MaxArmored bounds the armored text of all blocks together: the maxLength
	// of SSHJoinProfile.spec.signatures.*.
	MaxArmored = 16384

	// MaxBlocks bounds the signatures of one phase (docs/spec/sshsig.md).
	MaxBlocks = 8
)

func malformed(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.SignatureMalformed, format, args...)
}

// armor writes the one canonical armored form of a blob.
func armor(blob []byte) []byte {
	text := base64.StdEncoding.EncodeToString(blob)
	var b bytes.Buffer
	b.WriteString(beginLine)
	for len(text) > columns {
		b.WriteString(text[:columns])
		b.WriteByte('\n')
		text = text[columns:]
	}
	b.WriteString(text)
	b.WriteByte('\n')
	b.WriteString(endLine)
	return b.Bytes()
}

// dearmor returns the blob of the first block and the text after it.
func dearmor(text []byte) (blob, rest []byte, err error) {
	// The comparison below would refuse it as well; this says it in plainer words.
	if !bytes.HasPrefix(text, []byte(beginLine)) {
		return nil, nil, malformed("signature does not begin with the line %q", beginLine[:len(beginLine)-1])
	}
	end := bytes.Index(text, []byte("\n"+endLine))
	if end < 0 {
		return nil, nil, malformed("signature has no line %q", endLine[:len(endLine)-1])
	}
	end++ // the LF before the END line belongs to the body
	block := text[:end+len(endLine)]
	body := bytes.ReplaceAll(text[len(beginLine):end], []byte("\n"), nil)
	blob, decodeErr := base64.StdEncoding.Strict().AppendDecode(nil, body)
	if decodeErr != nil {
		return nil, nil, malformed("signature is not base64 between its BEGIN and END lines")
	}
	// check: SignatureMalformed: a second spelling of one signature could be read differently elsewhere
	if !bytes.Equal(armor(blob), block) {
		return nil, nil, malformed("signature armor is not canonical: lines of %d characters, LF ends, nothing else", columns)
	}
	return blob, text[len(block):], nil
}

// canonicalEnd adds the final LF that YAML's "|-" drops. Nothing else is repaired.
func canonicalEnd(text []byte) []byte {
	if bytes.HasSuffix(text, []byte(endLine[:len(endLine)-1])) {
		return append(bytes.Clone(text), '\n')
	}
	return text
}
