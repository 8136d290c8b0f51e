package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/signer/keyring"
)

// Exit codes (docs/cli.md).
const (
	exitDone      = 0 // done, or verified
	exitRefused   = 1
	exitUsage     = 2
	exitUndecided = 3 // I/O, a key that cannot be used, nothing to verify
)

func main() {
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{in: stdin, out: stdout, err: stderr, rand: rand.Reader, now: time.Now, program: programName(args[0])}
	c.keys = keyring.Source{
		Passphrase:  keyring.AskTerminal,
		AgentSocket: os.Getenv("SSH_AUTH_SOCK"),
		Notify:      func(text string) { c.say("note", "%s", text) },
	}
	if password, set := os.LookupEnv("COSIGN_PASSWORD"); set {
		c.keys.CosignPassword = []byte(password)
	}
	return c.run(ctx, arguments(c.program, args[1:]))
}

// cli is what the commands share.
type cli struct {
	in       io.Reader
	out, err io.Writer
	rand     io.Reader
	now      func() time.Time
	keys     keyring.Source
	program  string // the name it was called by
}

func (c *cli) run(ctx context.Context, args []string) int {
	root := c.rootCommand()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	cmd, err := root.ExecuteContextC(ctx)
	return c.report(cmd.CommandPath(), err)
}

// failure ends a command with an exit code. What cobra returns by itself is a mistake in usage.
type failure struct {
	code int
	err  error // nil: everything was said already
	hint string
}

func (f *failure) Error() string { return fmt.Sprint(f.err) }
func (f *failure) Unwrap() error { return f.err }

// usage is a mistake in how a command was called.
func usage(format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// undecided is a command that could not do its work.
func undecided(err error) error { return &failure{code: exitUndecided, err: err, hint: hintOf(err)} }

// stuck is an undecided command of which it is known what to do next.
func stuck(hint, format string, args ...any) error {
	return &failure{code: exitUndecided, err: fmt.Errorf(format, args...), hint: hint}
}

// refused is a rule of the trust core that said no. Internal is none: there the core could not do its
// work, because an agent would not sign, say.
func refused(context string, err error) error {
	e := decision.From(err)
	code := exitRefused
	if e.Reason == decision.Internal {
		code = exitUndecided
	}
	return &failure{code: code, err: fmt.Errorf("%s: %v", context, e), hint: e.Hint}
}

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	if e, ok := errors.AsType[*decision.Error](err); ok {
		return e.Hint
	}
	return ""
}

// report says on stderr what went wrong with a command, and gives the exit code.
func (c *cli) report(command string, err error) int {
	if err == nil {
		return exitDone
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{code: exitUsage, err: err}
	}
	// What cobra prints by itself (completion, --version) may not arrive either.
	if _, file := errors.AsType[*fs.PathError](err); file && !ok {
		f = &failure{code: exitUndecided, err: fmt.Errorf("writing to stdout: %v", err)}
	}
	if f.code == exitUsage && f.hint == "" {
		f.hint = command + " --help"
	}
	if f.err != nil {
		c.say("error", "%v", f.err)
		if f.hint != "" {
			c.say("hint", "%s", f.hint)
		}
	}
	return f.code
}

// maxSaid bounds a message; it is what a terminal shows, not what a program reads.
const maxSaid = 4096

// say writes one message for people. If stderr is gone there is nobody to tell.
func (c *cli) say(level, format string, args ...any) {
	// File names and foreign text may hold what a terminal obeys: escaped here, once for all.
	fmt.Fprintf(c.err, "hostwarrant: %s: %s\n", level, decision.OneLine(fmt.Sprintf(format, args...), maxSaid))
}

// print writes data. A reader that went away is an error: the data did not arrive.
func (c *cli) print(data []byte) error {
	if _, err := c.out.Write(data); err != nil {
		return undecided(fmt.Errorf("writing to stdout: %v", err))
	}
	return nil
}
