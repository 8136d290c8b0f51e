package delivery

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/transcript"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// What a host may answer to a statement, beside Busy, Refused and the faults of a
// connection. Those that name a decision's Reason mean the same.
const (
	// Applied: the host knows the statement, since now or before.
	Applied Result = "Applied"
	// Superseded: the host is past this root link, and knows a later one.
	Superseded Result = "Superseded"
	// StatementsUnsupported: the host has karpenter-provider-ssh's shim.
	StatementsUnsupported Result = "StatementsUnsupported"
	// StatementRejected: not enough of the roots that the host knows signed it, or
	// the host cannot read it.
	StatementRejected Result = "StatementRejected"
	TargetRefused     Result = "TargetRefused"
	NotYetValid       Result = "NotYetValid"
	Expired           Result = "Expired"
	// SerialRefused: the host knows a newer one of the kind, or lacks the link before.
	SerialRefused Result = "SerialRefused"
	SerialReused  Result = "SerialReused"
)

// statementTime bounds the wait for a host's answer to one statement: reading (60 s
// at most) and the verification of sixteen signatures.
const statementTime = 90 * time.Second

// StatementReport is what a host made of one statement.
type StatementReport struct {
	Kind     statement.Kind
	Serial   int64
	Result   Result
	Message  string
	ShimExit int // or envelope.Unknown
}

// letter is a statement that is ready to be sent.
type letter struct {
	kind   statement.Kind
	serial int64
	text   []byte // the envelope
}

// lettersOf writes the envelopes of statements, and refuses what no host could read.
func lettersOf(statements []statement.Signed) ([]letter, error) {
	var out []letter
	for i, s := range statements {
		read, err := statement.Parse(s.Text)
		if err != nil {
			return nil, fmt.Errorf("statement %d: %v", i+1, err)
		}
		e := envelope.Envelope{Phase: envelope.PhaseStatement, Statement: s.Text, StatementSig: []byte(strings.Join(s.Signatures, ""))}
		text, err := e.Encode()
		if err != nil {
			return nil, fmt.Errorf("statement %d: writing the envelope: %v", i+1, err)
		}
		out = append(out, letter{kind: read.Kind, serial: read.Serial, text: text})
	}
	return out, nil
}

// DeliverStatements brings statements to one host, in the given order, in one
// connection. The error is that of statements that cannot be sent; a host that
// cannot be reached, or refuses, is in the reports, one a statement.
//
// Of root links that follow each other the last is tried first, since a host that
// has it, or only lacks it, needs no other; the whole chain follows where it is
// refused.
func DeliverStatements(ctx context.Context, target transport.Target, limits transport.Limits, statements []statement.Signed) ([]StatementReport, error) {
	letters, err := lettersOf(statements)
	if err != nil {
		return nil, err
	}
	conn, err := transport.Connect(ctx, target, limits)
	if err != nil {
		return unsent(letters, err), nil
	}
	defer conn.Close()
	return newMessenger(conn, target.Command, limits).tell(ctx, letters), nil
}

// linksAhead counts the root links at the head of the list; another kind stands
// alone.
func linksAhead(letters []letter) int {
	n := 0
	for n < len(letters) && letters[n].kind == statement.KindRoots {
		n++
	}
	return max(n, 1)
}

// messenger sends letters over one connection, until it breaks.
type messenger struct {
	conn    *transport.Connection
	command string
	limits  transport.Limits
	broken  error // what ended the connection
}

func newMessenger(conn *transport.Connection, command string, limits transport.Limits) *messenger {
	limits.Run = statementTime
	return &messenger{conn: conn, command: command, limits: limits}
}

// tell sends the letters. Those after the end of the connection are reported as not
// sent.
func (m *messenger) tell(ctx context.Context, letters []letter) []StatementReport {
	var reports []StatementReport
	for len(letters) > 0 {
		n := linksAhead(letters)
		some := m.chain(ctx, letters[:n])
		reports, letters = append(reports, some...), letters[n:]
		if m.broken != nil {
			return append(reports, unsent(letters, m.broken)...)
		}
		if last := some[len(some)-1]; last.Result == StatementsUnsupported {
			return append(reports, alike(letters, last)...)
		}
	}
	return reports
}

// chain sends the root links that lead to the last letter, as far as the host needs
// them.
func (m *messenger) chain(ctx context.Context, letters []letter) []StatementReport {
	last := len(letters) - 1
	newest := m.send(ctx, letters[last])
	switch {
	case newest.Result == Applied:
		return append(alike(letters[:last], superseded()), newest)
	case m.broken != nil:
		return append(unsent(letters[:last], m.broken), newest)
	case last == 0 || newest.Result == StatementsUnsupported:
		return append(alike(letters[:last], newest), newest)
	}
	var reports []StatementReport
	for _, l := range letters {
		if m.broken != nil {
			return append(reports, unsent(letters[len(reports):], m.broken)...)
		}
		reports = append(reports, m.send(ctx, l))
	}
	return passOver(reports)
}

// passOver says of the links before one that was taken that the host needed no
// answer to them: it was past them.
func passOver(reports []StatementReport) []StatementReport {
	taken := false
	for i := len(reports) - 1; i >= 0; i-- {
		if r := &reports[i]; taken && r.Result != Applied {
			r.Result, r.Message = Superseded, superseded().Message
		}
		taken = taken || reports[i].Result == Applied
	}
	return reports
}

func superseded() StatementReport {
	return StatementReport{Result: Superseded, Message: "the host knows a later link", ShimExit: envelope.Unknown}
}

// send sends one letter and reads the answer.
func (m *messenger) send(ctx context.Context, l letter) StatementReport {
	kept := transcript.New(nil)
	code, err := m.conn.Run(ctx, m.command, m.limits, l.text, io.Discard, kept.Stderr, func() error { return nil })
	r := StatementReport{Kind: l.kind, Serial: l.serial, ShimExit: envelope.Unknown}
	if err != nil {
		m.broken = err
		r.Result, r.Message = faultOf(err)
		return r
	}
	r.ShimExit, r.Result = code, answerOf(envelope.ExitCode(code))
	r.Message = answerMessage(r, kept.Stderr.Tail())
	return r
}

// answerOf maps the shim's exit code for a statement. What no shim gives says
// nothing about whether the statement was applied.
func answerOf(code envelope.ExitCode) Result {
	switch code {
	case envelope.ExitOK:
		return Applied
	case envelope.ExitPhase:
		return StatementsUnsupported
	case envelope.ExitSignature, envelope.ExitEnvelope:
		return StatementRejected
	case envelope.ExitBusy:
		return Busy
	case envelope.ExitTarget:
		return TargetRefused
	case envelope.ExitNotYetValid:
		return NotYetValid
	case envelope.ExitExpired:
		return Expired
	case envelope.ExitRollback:
		return SerialRefused
	case envelope.ExitSerialReused:
		return SerialReused
	default:
		if code.Refused() {
			return Refused
		}
		return Cut
	}
}

func answerMessage(r StatementReport, stderr string) string {
	if r.Result == Applied {
		return "the host knows it"
	}
	message := fmt.Sprintf("the host answered with exit code %d: %s", r.ShimExit, envelope.ExitCode(r.ShimExit))
	if said := lastLine(stderr); said != "" {
		message += fmt.Sprintf("; it says %q", said)
	}
	return message
}

// lastLine is where the shim says why it refused.
func lastLine(stderr string) string {
	text := strings.TrimRight(stderr, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// faultOf names what ended a connection.
func faultOf(err error) (Result, string) {
	if e, ok := fault(err); ok {
		r := faultReport(e)
		return r.Result, r.Message
	}
	return Cut, err.Error()
}

// beforeAnything names what ended a connection before anything was asked for that
// could have been done.
func beforeAnything(err error) (Result, string) {
	result, message := faultOf(err)
	if result == Cut {
		result = Unreachable
	}
	return result, message
}

// unsent reports letters that were not sent, since there is no connection.
func unsent(letters []letter, err error) []StatementReport {
	result, message := beforeAnything(err)
	return alike(letters, StatementReport{Result: result, Message: message, ShimExit: envelope.Unknown})
}

// alike gives each letter the same answer.
func alike(letters []letter, r StatementReport) []StatementReport {
	var reports []StatementReport
	for _, l := range letters {
		r.Kind, r.Serial = l.kind, l.serial
		reports = append(reports, r)
	}
	return reports
}
