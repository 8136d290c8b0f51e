package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// Connection is an authenticated connection to a pinned host, for one command
// after the other.
type Connection struct {
	client *ssh.Client
}

// Connect opens a connection, or says in an *Error why there is none.
func Connect(ctx context.Context, t Target, l Limits) (*Connection, error) {
	client, err := connect(ctx, t, l)
	if err != nil {
		return nil, err
	}
	return &Connection{client: client}, nil
}

// Close ends the connection. It may be called more than once.
func (c *Connection) Close() { closeQuietly(c.client) }

// Run connects and runs one command: Connect, Connection.Run, Close.
func Run(ctx context.Context, t Target, l Limits, stdin []byte, stdout, stderr io.Writer, commit func() error) (int, error) {
	c, err := Connect(ctx, t, l)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.Run(ctx, t.Command, l, stdin, stdout, stderr, commit)
}

// Run asks for the command, writes stdin and copies what comes back to stdout and
// stderr, which are written from two goroutines. It returns the exit status, or an
// *Error. A command that did not end whole ends the connection too.
//
// commit is called when everything is ready and nothing has been asked for yet.
// Where it fails, nothing is asked for. After it, a failure is Cut.
func (c *Connection) Run(ctx context.Context, command string, l Limits, stdin []byte, stdout, stderr io.Writer, commit func() error) (int, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	// every wait below ends when the connection does
	defer context.AfterFunc(ctx, c.Close)()

	s, err := openSession(c.client, l)
	if err != nil {
		return 0, err
	}
	defer closeQuietly(s.channel)
	if err := commit(); err != nil {
		return 0, err
	}
	timer := time.AfterFunc(l.Run, func() { giveUp(fmt.Errorf("no exit status within %s", l.Run)) })
	defer timer.Stop()
	go keepalive(ctx, c.client, l, giveUp)
	if err := s.ask(ctx, command, l, giveUp); err != nil {
		return 0, err
	}
	return s.finish(ctx, stdin, stdout, stderr, l, giveUp)
}

// session is one channel of type "session" (RFC 4254 section 6).
type session struct {
	channel  ssh.Channel
	requests <-chan *ssh.Request
}

func openSession(client *ssh.Client, l Limits) (*session, error) {
	timer := time.AfterFunc(l.Channel, func() { closeQuietly(client) })
	defer timer.Stop()
	channel, requests, err := client.OpenChannel("session", nil)
	if err != nil {
		return nil, failed(Unreachable, "opening a session: %.200v", err)
	}
	return &session{channel: channel, requests: requests}, nil
}

// ask requests the command. A host that says no has not run it.
func (s *session) ask(ctx context.Context, command string, l Limits, giveUp context.CancelCauseFunc) error {
	timer := time.AfterFunc(l.Channel, func() { giveUp(fmt.Errorf("no answer within %s", l.Channel)) })
	defer timer.Stop()
	payload := ssh.Marshal(struct{ Command string }{command})
	ok, err := s.channel.SendRequest("exec", true, payload)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return failed(Cut, "asking for the command: %.200v", err)
	}
	if !ok {
		return failed(Unreachable, "the host refused to run a command")
	}
	return nil
}

// exit is how the command ended, as the host told.
type exit struct {
	status int
	signal string
	known  bool
}

// finish feeds and drains the channel until the command's end is known and its
// output is through.
func (s *session) finish(ctx context.Context, stdin []byte, stdout, stderr io.Writer, l Limits, giveUp context.CancelCauseFunc) (int, error) {
	out := &drain{left: l.Output, giveUp: giveUp}
	var copies sync.WaitGroup
	copies.Go(func() { s.feed(stdin) })
	copies.Go(func() { out.copy(stdout, s.channel) })
	copies.Go(func() { out.copy(stderr, s.channel.Stderr()) })
	through := make(chan struct{})
	go func() {
		copies.Wait()
		close(through)
	}()
	end := s.awaitExit()
	whole := end.known && out.settle(through, l.Drain)
	cause := context.Cause(ctx)
	if !whole {
		giveUp(nil) // ends the connection, and so what is still being copied
	}
	<-through
	return end.answer(cause)
}

// answer is the exit status, unless the connection was given up or the command
// did not exit by itself.
func (e exit) answer(cause error) (int, error) {
	switch {
	case cause != nil:
		return 0, failed(Cut, "%v", cause)
	case !e.known:
		return 0, failed(Cut, "the connection ended before the command's exit status came")
	case e.signal != "":
		return 0, failed(Cut, "the command was ended by signal %.20q", e.signal)
	default:
		return e.status, nil
	}
}

// feed writes stdin. A command that ends without reading all of it tells its
// reason by its exit status, so a failed write is not an error of its own.
func (s *session) feed(stdin []byte) {
	if _, err := io.Copy(s.channel, bytes.NewReader(stdin)); err != nil {
		return
	}
	if err := s.channel.CloseWrite(); err != nil {
		return
	}
}

// awaitExit serves the channel's requests until the exit status or the end of
// the channel. The rest is discarded in the background, so that nothing blocks.
func (s *session) awaitExit() exit {
	for r := range s.requests {
		end, ok := readExit(r)
		if r.WantReply {
			if err := r.Reply(ok, nil); err != nil {
				return exit{}
			}
		}
		if ok {
			go ssh.DiscardRequests(s.requests)
			return end
		}
	}
	return exit{}
}

// readExit reads exit-status and exit-signal (RFC 4254 section 6.10).
func readExit(r *ssh.Request) (exit, bool) {
	switch r.Type {
	case "exit-status":
		var m struct{ Status uint32 }
		// check: Malformed: a status that no process ends with would not fit the object's status
		if err := ssh.Unmarshal(r.Payload, &m); err != nil || m.Status > 255 {
			return exit{}, false
		}
		return exit{status: int(m.Status), known: true}, true
	case "exit-signal":
		var m struct {
			Signal     string
			CoreDumped bool
			Message    string
			Language   string
		}
		if err := ssh.Unmarshal(r.Payload, &m); err != nil || m.Signal == "" {
			return exit{}, false
		}
		return exit{signal: m.Signal, known: true}, true
	default:
		return exit{}, false
	}
}

// drain copies both streams within one allowance.
type drain struct {
	mu     sync.Mutex
	left   int64
	moved  atomic.Int64
	giveUp context.CancelCauseFunc
}

const copySize = 32 << 10

// copy ends with its stream. Output beyond the allowance ends the connection.
func (d *drain) copy(w io.Writer, r io.Reader) {
	buf := make([]byte, copySize)
	for {
		n, err := r.Read(buf)
		// check: TooLarge: a host that prints without an end keeps its slot, and the relay busy
		if n > 0 && !d.take(n) {
			d.giveUp(errors.New("the host sent more output than is taken"))
			return
		}
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				d.giveUp(fmt.Errorf("passing output on: %v", werr))
				return
			}
		}
		if err != nil {
			return // the end, or a broken channel, which has no exit status
		}
	}
}

func (d *drain) take(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left -= int64(n)
	d.moved.Add(int64(n))
	return d.left >= 0
}

// settle waits for the end of all copies as long as bytes come: a background
// child on the host may hold the streams open for ever. It reports whether they
// ended.
func (d *drain) settle(through <-chan struct{}, quiet time.Duration) bool {
	ticker := time.NewTicker(quiet)
	defer ticker.Stop()
	last := d.moved.Load()
	for {
		select {
		case <-through:
			return true
		case <-ticker.C:
			now := d.moved.Load()
			if now == last {
				return false
			}
			last = now
		}
	}
}
