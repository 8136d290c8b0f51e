package envelope

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Size limits of the wire in bytes, before base64 where it applies
// (docs/spec/envelope.md, Sizes). MaxEnvelope holds for the whole text.
const (
	MaxEnvelope  = 2 << 20
	MaxScript    = 1 << 20
	MaxSignature = 16 << 10
	MaxParams    = 256 << 10
	MaxStatement = 64 << 10
)

// The field names of the wire.
const (
	fieldVersion      = "kpssh-envelope"
	fieldPhase        = "phase"
	fieldRunID        = "run-id"
	fieldParams       = "params-b64"
	fieldSig          = "sig-b64"
	fieldScript       = "script-b64"
	fieldStatement    = "statement-b64"
	fieldStatementSig = "statement-sig-b64"
)

const version = "1"

// Envelope is what a relay writes to the shim's stdin. The byte fields are the
// decoded values; nil means that the field is absent, empty but not nil that it
// is present and empty.
type Envelope struct {
	Phase        Phase
	RunID        RunID // empty: absent, as upstream's controller has it
	Params       []byte
	Sig          []byte
	Script       []byte
	Statement    []byte
	StatementSig []byte
}

// blob is one base64 field with its limit.
type blob struct {
	name  string
	limit int
	value *[]byte
}

func (e *Envelope) blobs() []blob {
	return []blob{
		{fieldParams, MaxParams, &e.Params},
		{fieldSig, MaxSignature, &e.Sig},
		{fieldScript, MaxScript, &e.Script},
		{fieldStatement, MaxStatement, &e.Statement},
		{fieldStatementSig, MaxSignature, &e.StatementSig},
	}
}

// Encode writes the envelope with its fields in one fixed order. It refuses
// what Decode refuses.
func (e Envelope) Encode() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	line := func(name, value string) { out.WriteString(name + ": " + value + "\n") }
	line(fieldVersion, version)
	line(fieldPhase, string(e.Phase))
	if e.RunID != "" {
		line(fieldRunID, string(e.RunID))
	}
	for _, b := range e.blobs() {
		if *b.value != nil {
			line(b.name, base64.StdEncoding.EncodeToString(*b.value))
		}
	}
	if out.Len() > MaxEnvelope {
		return nil, malformed("", "envelope of %d bytes, at most %d", out.Len(), MaxEnvelope)
	}
	return out.Bytes(), nil
}

// Decode reads an envelope strictly: every field known, none twice, all that
// the phase needs present. Fields may come in any order, and the last line may
// lack its line feed. Errors are of type *Error.
func Decode(text []byte) (*Envelope, error) {
	// check: Malformed: input that fills the host's memory before anything is verified
	if len(text) > MaxEnvelope {
		return nil, malformed("", "envelope of more than %d bytes", MaxEnvelope)
	}
	// check: Malformed: a NUL that a shell drops, so that two readers see different fields
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, malformed("", "holds a NUL byte")
	}
	fields, err := split(string(text))
	if err != nil {
		return nil, err
	}
	if v, ok := fields[fieldVersion]; !ok || v != version {
		return nil, malformed(fieldVersion, "must be given and be %q", version)
	}
	e := &Envelope{Phase: Phase(fields[fieldPhase])}
	if id, ok := fields[fieldRunID]; ok {
		if !RunID(id).Valid() {
			return nil, malformed(fieldRunID, "is not 32 lower-case hex digits")
		}
		e.RunID = RunID(id)
	}
	for _, b := range e.blobs() {
		value, ok := fields[b.name]
		if !ok {
			continue
		}
		if *b.value, err = decodeBase64(b, value); err != nil {
			return nil, err
		}
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	return e, nil
}

// split cuts the text into its fields. Only known names pass.
func split(text string) (map[string]string, error) {
	text, _ = strings.CutSuffix(text, "\n")
	fields := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		name, value, ok := strings.Cut(line, ": ")
		// check: Malformed: a field that another reader understands and this one skips
		if !ok || !knownField(name) {
			return nil, malformed("", "line %.40q is no known field", line)
		}
		_, twice := fields[name]
		// check: Malformed: a second value that another reader lets win
		if twice {
			return nil, malformed(name, "given twice")
		}
		fields[name] = value
	}
	return fields, nil
}

func knownField(name string) bool {
	switch name {
	case fieldVersion, fieldPhase, fieldRunID, fieldParams, fieldSig, fieldScript, fieldStatement, fieldStatementSig:
		return true
	default:
		return false
	}
}

func decodeBase64(b blob, value string) ([]byte, error) {
	if len(value) > base64.StdEncoding.EncodedLen(b.limit) {
		return nil, malformed(b.name, "more than %d bytes", b.limit)
	}
	// check: Malformed: carriage returns that a lenient base64 reader skips and a strict one does not
	if strings.ContainsRune(value, '\r') {
		return nil, malformed(b.name, "is not padded standard base64 on one line")
	}
	// Strict also refuses padding bits that are not zero: one spelling for each value.
	out, err := base64.StdEncoding.Strict().DecodeString(value)
	if err != nil {
		return nil, malformed(b.name, "is not padded standard base64 on one line")
	}
	return out, nil
}

// check holds for both directions: sizes, and what each phase needs.
func (e *Envelope) check() error {
	if !e.Phase.wellFormed() {
		return malformed(fieldPhase, "missing, or not a phase")
	}
	if !e.Phase.Known() {
		return &Error{Code: ExitPhase, Field: fieldPhase, What: "unknown phase"}
	}
	if e.RunID != "" && !e.RunID.Valid() {
		return malformed(fieldRunID, "is not 32 lower-case hex digits")
	}
	for _, b := range e.blobs() {
		if len(*b.value) > b.limit {
			return malformed(b.name, "%d bytes, at most %d", len(*b.value), b.limit)
		}
	}
	for _, name := range e.required() {
		if !e.has(name) {
			return malformed(name, "missing, phase %s needs it", e.Phase)
		}
	}
	if !e.Phase.takesStatement() && (e.Statement != nil || e.StatementSig != nil) {
		return malformed(fieldStatement, "not taken by phase %s", e.Phase)
	}
	return nil
}

func (p Phase) takesStatement() bool { return p == PhaseStatement }

func (e *Envelope) required() []string {
	switch {
	case e.Phase.RunsScript():
		return []string{fieldParams, fieldSig, fieldScript}
	case e.Phase == PhaseOutcome:
		return []string{fieldRunID}
	case e.Phase == PhaseStatement:
		return []string{fieldStatement, fieldStatementSig}
	default:
		return nil
	}
}

func (e *Envelope) has(name string) bool {
	if name == fieldRunID {
		return e.RunID != ""
	}
	for _, b := range e.blobs() {
		if b.name == name {
			return *b.value != nil
		}
	}
	return false
}
