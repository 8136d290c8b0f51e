package delivery

import (
	"bytes"
	"context"
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/transcript"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// maxProof is more than a host can have to say: facts and one signature.
const maxProof = 128 << 10

// Question is what a host is asked to prove, with phase prove.
type Question struct{ Nonce, RunUID string }

// Visit is what came of a connection without a run.
type Visit struct {
	// Result is Applied where the host answered whatever was asked, else what kept it from that.
	Result     Result
	Message    string
	Statements []StatementReport
	// Proof is what the host printed when it was asked to prove, nobody verified it; nil where it was not.
	Proof []byte
}

// Call brings statements to one host and asks it to prove what it knows, in one connection. The error is
// that of what cannot be sent.
func Call(ctx context.Context, target transport.Target, limits transport.Limits, statements []statement.Signed, q Question) (Visit, error) {
	letters, err := lettersOf(statements)
	if err != nil {
		return Visit{}, err
	}
	question, err := q.encode()
	if err != nil {
		return Visit{}, err
	}
	conn, err := transport.Connect(ctx, target, limits)
	if err != nil {
		result, message := beforeAnything(err)
		return Visit{Result: result, Message: message, Statements: unsent(letters, err)}, nil
	}
	defer conn.Close()
	m := newMessenger(conn, target.Command, limits)
	v := Visit{Result: Applied, Message: "the host answered", Statements: m.tell(ctx, letters)}
	if m.broken == nil {
		v.Proof = m.prove(ctx, question)
	}
	if m.broken != nil {
		v.Result, v.Message = faultOf(m.broken)
	}
	return v, nil
}

func (q Question) encode() ([]byte, error) {
	params, err := envelope.EncodeParams(map[string]string{"KPSSH_NONCE": q.Nonce, "KPSSH_RUN_UID": q.RunUID})
	if err != nil {
		return nil, fmt.Errorf("writing the question: %v", err)
	}
	text, err := envelope.Envelope{Phase: envelope.PhaseProve, Params: params}.Encode()
	if err != nil {
		return nil, fmt.Errorf("writing the envelope: %v", err)
	}
	return text, nil
}

// prove asks, and gives what the host printed; nil where it would not, or printed too much.
func (m *messenger) prove(ctx context.Context, question []byte) []byte {
	out, errs := &bounded{}, transcript.New(nil)
	code, err := m.conn.Run(ctx, m.command, m.limits, question, out, errs.Stderr, func() error { return nil })
	if err != nil {
		m.broken = err
		return nil
	}
	// check: Malformed: more than a host can have to say, of which a beginning could look whole
	if out.over {
		return nil
	}
	if envelope.ExitCode(code) != envelope.ExitOK {
		return nil
	}
	return out.kept.Bytes()
}

// bounded keeps the first bytes of a stream, and whether there were more.
type bounded struct {
	kept bytes.Buffer
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), maxProof-b.kept.Len())
	b.over = b.over || room < len(p)
	b.kept.Write(p[:room])
	return len(p), nil
}
