package delivery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/transcript"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// Order is one run to deliver.
type Order struct {
	Target   transport.Target
	Limits   transport.Limits
	Envelope envelope.Envelope
	Secrets  []string // values that must not show
	// Statements go before the run, in the same connection: a host that learns of a
	// revocation now judges the run by it.
	Statements []statement.Signed
}

// Deliver sends the order and waits for its end. commit is called once the host
// was reached, proved its key and was told the statements, before it is given
// anything of the run; its error, or that of an order that cannot be written, is
// returned and nothing of the run was sent.
func Deliver(ctx context.Context, o Order, commit func() error) (Report, error) {
	text, err := o.Envelope.Encode()
	if err != nil {
		return Report{}, fmt.Errorf("writing the envelope: %v", err)
	}
	letters, err := lettersOf(o.Statements)
	if err != nil {
		return Report{}, err
	}
	conn, err := transport.Connect(ctx, o.Target, o.Limits)
	if err != nil {
		return unreached(err, unsent(letters, err)), nil
	}
	defer conn.Close()
	m := newMessenger(conn, o.Target.Command, o.Limits)
	told := m.tell(ctx, letters)
	if m.broken != nil {
		return unreached(m.broken, told), nil
	}
	r, err := run(ctx, conn, o, text, commit)
	r.Statements = told
	return r, err
}

// unreached is the report of a run of which nothing was sent.
func unreached(err error, told []StatementReport) Report {
	result, message := beforeAnything(err)
	r := unknownReport(result, message)
	r.Statements = told
	return r
}

// run sends the envelope over the connection and reads its end.
func run(ctx context.Context, conn *transport.Connection, o Order, text []byte, commit func() error) (Report, error) {
	kept := transcript.New(o.Secrets)
	reader, writer := io.Pipe()
	tr := envelope.NewTrailerReader(reader, o.Envelope.RunID, o.Envelope.Phase)
	head := &headWriter{}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		// the pipe's end is the stream's end, which the exit code and the trailer judge
		if _, err := io.Copy(io.MultiWriter(kept.Stdout, head), tr); err != nil {
			return
		}
	}()
	code, err := conn.Run(ctx, o.Target.Command, o.Limits, text, writer, kept.Stderr, commit)
	closePipe(writer, err)
	<-copied
	if err != nil {
		e, ok := fault(err)
		if !ok {
			return Report{}, err
		}
		r := faultReport(e)
		r.Transcript = kept.Text()
		return r, nil
	}
	return report(o, code, tr, head, kept), nil
}

// closePipe ends the stream: with err where the connection failed, so that no
// trailer of a cut stream counts.
func closePipe(w *io.PipeWriter, err error) {
	if err := w.CloseWithError(err); err != nil {
		return // documented never to happen
	}
}

// report joins exit code, trailer and what the streams say.
func report(o Order, code int, tr *envelope.TrailerReader, head *headWriter, kept *transcript.Transcript) Report {
	r := Report{Result: resultOf(envelope.ExitCode(code)), ShimExit: code, ScriptExit: envelope.Unknown, Trailer: None, Transcript: kept.Text()}
	trailer, err := tr.Trailer()
	repeated, isRepeated := recordOf(head, o.Envelope.RunID)
	switch {
	case err == nil:
		r.ScriptExit = trailer.Exit
		r.Trailer = Whole
		if trailer.Cut {
			r.Trailer = Truncated
		}
		// check: Malformed: an exit code and a trailer that contradict each other, of which one is forged
		if contradicts(r.Result, trailer.Exit) {
			r.Result = Cut
			r.Message = fmt.Sprintf("exit code %d and a trailer with exit=%d contradict each other", code, trailer.Exit)
			return r
		}
	case isRepeated:
		r.ScriptExit = repeated.Exit
		// check: Malformed: the record of another phase, or of another end, that is taken for how this run went
		if repeated.Phase != "" && repeated.Phase != o.Envelope.Phase || repeated.Code != envelope.Unknown && repeated.Code != code {
			r.Result = Cut
			r.Message = fmt.Sprintf("exit code %d and a record of phase %q with code %d contradict each other", code, repeated.Phase, repeated.Code)
			return r
		}
	case r.Result == Succeeded:
		r.ScriptExit = 0
	case r.Result == ScriptFailed:
		r.ScriptExit = scriptExited(kept.Stderr.Tail())
	}
	r.Message = messageOf(r)
	return r
}

// contradicts says whether a trailer with that exit status cannot stand beside the
// result. A host that refused, or was busy, ran nothing that could have ended.
func contradicts(result Result, exit int) bool {
	switch result {
	case Succeeded:
		return exit != 0
	case ScriptFailed:
		return exit == 0
	default:
		return result == Refused || result == Busy
	}
}

const scriptExitedLine = "kpssh-shim: script exited "

// scriptExited finds the last line in which the shim says how the script ended. A
// script can print such a line as well, but not after the shim's.
func scriptExited(stderr string) int {
	lines := strings.Split(stderr, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if rest, ok := strings.CutPrefix(lines[i], scriptExitedLine); ok {
			if n, err := strconv.ParseUint(rest, 10, 8); err == nil {
				return int(n)
			}
		}
	}
	return envelope.Unknown
}

// maxRecord is more than an outcome record's longest line.
const maxRecord = 512

// headWriter keeps the first bytes of a stream, and whether there were more.
type headWriter struct {
	b    bytes.Buffer
	over bool
}

func (h *headWriter) Write(p []byte) (int, error) {
	room := maxRecord - h.b.Len()
	if len(p) > room {
		h.over = true
		h.b.Write(p[:room])
		return len(p), nil
	}
	h.b.Write(p)
	return len(p), nil
}

// recordOf reads stdout as the outcome record of a run, when it is nothing else.
func recordOf(h *headWriter, runID envelope.RunID) (envelope.Outcome, bool) {
	line, ended := strings.CutSuffix(h.b.String(), "\n")
	if h.over || !ended {
		return envelope.Outcome{}, false
	}
	o, err := envelope.ParseOutcome(line)
	// check: Malformed: the record of another run taken for this one's
	if err != nil || o.RunID != runID {
		return envelope.Outcome{}, false
	}
	return o, true
}
