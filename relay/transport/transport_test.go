package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/relay/fakesshd"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func quick() Limits {
	return Limits{
		Dial: 5 * time.Second, Handshake: 5 * time.Second, Channel: 5 * time.Second, Run: 20 * time.Second,
		Drain: 100 * time.Millisecond, Keepalive: 5 * time.Second, Misses: 2, Output: 1 << 20,
	}
}

// buffer is a bytes.Buffer that two goroutines may use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type setup struct {
	target Target
	server *fakesshd.Server
}

func start(t *testing.T, o fakesshd.Options, handler fakesshd.Handler) setup {
	t.Helper()
	login, pem := fakesshd.Key(t)
	host, _ := fakesshd.Key(t)
	key, err := ParseLoginKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	pin, err := ParsePin(fakesshd.PinText(host))
	if err != nil {
		t.Fatal(err)
	}
	server := fakesshd.Start(t, login.PublicKey(), handler, o, host)
	return setup{Target{Address: server.Addr, User: "kpssh", Login: key, Pin: pin, Command: "/opt/kpssh/kpssh-shim"}, server}
}

func committed() error { return nil }

func wantFault(t *testing.T, err error, fault Fault, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want %s", err, fault)
	}
	if e.Fault != fault || !strings.Contains(e.What, text) {
		t.Fatalf("got %v, want %s with %q", e, fault, text)
	}
}

func TestRunCarriesStdinOutputAndStatus(t *testing.T) {
	s := start(t, fakesshd.Options{Banner: "hello\n"}, func(s *fakesshd.Session) int {
		in, err := io.ReadAll(s.Stdin)
		fmt.Fprintf(s.Stdout, "%s|%d|%v", s.Command, len(in), err)
		fmt.Fprint(s.Stderr, "kpssh-shim: script exited 2\n")
		return 10
	})
	var out, errs buffer
	code, err := Run(t.Context(), s.target, quick(), bytes.Repeat([]byte("x"), 1<<20), &out, &errs, committed)
	if err != nil || code != 10 {
		t.Fatalf("code %d, %v", code, err)
	}
	if out.String() != "/opt/kpssh/kpssh-shim|1048576|<nil>" || errs.String() != "kpssh-shim: script exited 2\n" {
		t.Fatalf("out %q, err %q", out.String(), errs.String())
	}
}

func TestRunGivesEveryExitStatus(t *testing.T) {
	for _, code := range []int{0, 1, 2, 23, 126, 255} {
		s := start(t, fakesshd.Options{}, func(*fakesshd.Session) int { return code })
		got, err := Run(t.Context(), s.target, quick(), []byte("not read"), io.Discard, io.Discard, committed)
		if err != nil || got != code {
			t.Fatalf("got %d, %v, want %d", got, err, code)
		}
	}
}

func TestRunNeverAsksWithoutCommit(t *testing.T) {
	s := start(t, fakesshd.Options{}, func(*fakesshd.Session) int { return 0 })
	refused := errors.New("status was not written")
	_, err := Run(t.Context(), s.target, quick(), nil, io.Discard, io.Discard, func() error { return refused })
	if !errors.Is(err, refused) || s.server.Sessions() != 0 {
		t.Fatalf("%v, %d commands", err, s.server.Sessions())
	}
}

func TestRunFaults(t *testing.T) {
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	short := quick()
	short.Dial, short.Handshake, short.Channel = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	brief := quick()
	brief.Run = 200 * time.Millisecond
	lively := quick()
	lively.Keepalive = 50 * time.Millisecond
	cases := map[string]struct {
		o       fakesshd.Options
		handler fakesshd.Handler
		limits  Limits
		fault   Fault
		text    string
	}{
		"cut in the middle": {
			handler: func(s *fakesshd.Session) int { fmt.Fprint(s.Stdout, "half"); s.Cut(); return fakesshd.NoExit },
			limits:  quick(), fault: Cut, text: "before the command's exit status",
		},
		"no exit status":         {handler: func(*fakesshd.Session) int { return fakesshd.NoExit }, limits: quick(), fault: Cut, text: "before the command's exit status"},
		"an exit status of 256":  {handler: func(s *fakesshd.Session) int { s.ExitNow(256); return fakesshd.NoExit }, limits: quick(), fault: Cut, text: "before the command's exit status"},
		"a signal without name":  {handler: func(s *fakesshd.Session) int { s.Signal(""); return fakesshd.NoExit }, limits: quick(), fault: Cut, text: "before the command's exit status"},
		"ended by a signal":      {handler: func(s *fakesshd.Session) int { s.Signal("KILL"); return fakesshd.NoExit }, limits: quick(), fault: Cut, text: `signal "KILL"`},
		"a command without end":  {handler: func(*fakesshd.Session) int { <-block; return 0 }, limits: brief, fault: Cut, text: "no exit status within"},
		"no sign of life":        {o: fakesshd.Options{MuteRequests: true}, handler: func(*fakesshd.Session) int { <-block; return 0 }, limits: lively, fault: Cut, text: "no sign of life"},
		"endless output":         {handler: endless, limits: quick(), fault: Cut, text: "more output than is taken"},
		"no answer to a command": {o: fakesshd.Options{MuteExec: true}, limits: short, fault: Cut, text: "asking for the command: no answer within"},
		"no to a command":        {o: fakesshd.Options{RefuseExec: true}, limits: quick(), fault: Unreachable, text: "refused to run"},
		"no to a session":        {o: fakesshd.Options{RefuseSession: true}, limits: quick(), fault: Unreachable, text: "opening a session"},
		"no answer to a session": {o: fakesshd.Options{MuteSession: true}, limits: short, fault: Unreachable, text: "opening a session"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := start(t, c.o, c.handler)
			_, err := Run(t.Context(), s.target, c.limits, []byte("in"), io.Discard, io.Discard, committed)
			wantFault(t, err, c.fault, c.text)
		})
	}
}

func endless(s *fakesshd.Session) int {
	for {
		if _, err := s.Stdout.Write(make([]byte, 1<<16)); err != nil {
			return 0
		}
	}
}

func TestRunKeepsAQuietConnectionThatAnswers(t *testing.T) {
	l := quick()
	l.Keepalive, l.Misses = 20*time.Millisecond, 50
	s := start(t, fakesshd.Options{}, func(*fakesshd.Session) int {
		<-time.After(200 * time.Millisecond) // longer than several intervals: the time is what is tested
		return 0
	})
	if code, err := Run(t.Context(), s.target, l, nil, io.Discard, io.Discard, committed); err != nil || code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
}

func TestRunDoesNotWaitForAChildThatKeepsTheStreams(t *testing.T) {
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	s := start(t, fakesshd.Options{}, func(s *fakesshd.Session) int {
		fmt.Fprint(s.Stdout, "out")
		s.ExitNow(0)
		<-block
		return fakesshd.NoExit
	})
	var out buffer
	code, err := Run(t.Context(), s.target, quick(), nil, &out, io.Discard, committed)
	if err != nil || code != 0 || out.String() != "out" {
		t.Fatalf("code %d, %v, %q", code, err, out.String())
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	started := make(chan struct{})
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	s := start(t, fakesshd.Options{}, func(*fakesshd.Session) int { close(started); <-block; return 0 })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, err := Run(ctx, s.target, quick(), nil, io.Discard, io.Discard, committed)
	wantFault(t, err, Cut, "canceled")
}

func TestUnreachableHosts(t *testing.T) {
	cases := map[string]struct{ address, text string }{
		"nothing listens":                  {"127.0.0.1:1", "connecting to"},
		"a silent port":                    {fakesshd.Silent(t), "SSH handshake"},
		"a port that talks for ever":       {fakesshd.Talker(t, "welcome\r\n"), "SSH handshake"},
		"a port that talks without a line": {fakesshd.Talker(t, "x"), "SSH handshake"},
		"a web server":                     {fakesshd.Talker(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), "SSH handshake"},
	}
	s := start(t, fakesshd.Options{}, nil)
	l := quick()
	l.Handshake = 200 * time.Millisecond
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			target := s.target
			target.Address = c.address
			_, err := Run(t.Context(), target, l, nil, io.Discard, io.Discard, committed)
			wantFault(t, err, Unreachable, c.text)
		})
	}
}

func TestHostKeys(t *testing.T) {
	s := start(t, fakesshd.Options{}, func(*fakesshd.Session) int { return 0 })
	other, _ := fakesshd.Key(t)
	pin, err := ParsePin(fakesshd.PinText(other))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("another key of the pinned type", func(t *testing.T) {
		target := s.target
		target.Pin, target.PinIn = pin, `Secret "a-ssh", knownHost`
		_, err := Run(t.Context(), target, quick(), nil, io.Discard, io.Discard, committed)
		wantFault(t, err, HostKeyMismatch, "which is not pinned; Secret \"a-ssh\", knownHost pins "+ssh.FingerprintSHA256(other.PublicKey())+": compare at the host's console")
	})
	t.Run("no key of the pinned type", func(t *testing.T) {
		target := s.target
		target.Pin = pinOf(t, ecdsaLine(t))
		_, err := Run(t.Context(), target, quick(), nil, io.Discard, io.Discard, committed)
		wantFault(t, err, HostKeyMismatch, "no key of a pinned type; the caller pins SHA256:")
	})
	t.Run("the pinned key, and nothing listens", func(t *testing.T) {
		target := s.target
		target.Address = "127.0.0.1:1"
		_, err := Run(t.Context(), target, quick(), nil, io.Discard, io.Discard, committed)
		wantFault(t, err, Unreachable, "connecting to")
		if strings.Contains(err.Error(), "pins") {
			t.Errorf("tells to compare keys that nobody saw: %v", err)
		}
	})
	t.Run("no pin", func(t *testing.T) {
		target := s.target
		target.Pin = Pin{}
		_, err := Run(t.Context(), target, quick(), nil, io.Discard, io.Discard, committed)
		wantFault(t, err, HostKeyNotPinned, "no host key is pinned")
	})
	t.Run("one of two pinned keys", func(t *testing.T) {
		target := s.target
		target.Pin = Pin{keys: append(pin.keys, s.target.Pin.keys...)}
		if _, err := Run(t.Context(), target, quick(), nil, io.Discard, io.Discard, committed); err != nil {
			t.Fatal(err)
		}
	})
	if s.server.Sessions() != 1 {
		t.Fatalf("%d commands were asked for, want 1", s.server.Sessions())
	}
}

func TestAnotherLoginKeyIsUnreachable(t *testing.T) {
	s := start(t, fakesshd.Options{}, func(*fakesshd.Session) int { return 0 })
	_, pem := fakesshd.Key(t)
	target := s.target
	var err error
	if target.Login, err = ParseLoginKey(pem); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), target, quick(), nil, io.Discard, io.Discard, committed)
	wantFault(t, err, Unreachable, "unable to authenticate")
	target.Login = nil
	_, err = Run(t.Context(), target, quick(), nil, io.Discard, io.Discard, committed)
	wantFault(t, err, LoginKeyInvalid, "no login key")
}

func TestParseLoginKeyRefuses(t *testing.T) {
	_, pem := fakesshd.Key(t)
	cases := map[string][]byte{
		"nothing":      nil,
		"a public key": []byte("ssh-ed25519 AAAA"),
		"half a key":   pem[:len(pem)/2],
		"too long":     bytes.Repeat([]byte("x"), maxLoginKey+1),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseLoginKey(text)
			wantFault(t, err, LoginKeyInvalid, "")
			if len(text) > 0 && strings.Contains(err.Error(), string(text)) {
				t.Fatal("the error holds the file")
			}
		})
	}
}

// A message stays short, whatever is pinned, and tells a CA from a key.
func TestFingerprintsOfAPin(t *testing.T) {
	var text, want []string
	for range maxNamed {
		key := testkit.NewSigner(t, "ed25519")
		text, want = append(text, key.Line), append(want, ssh.FingerprintSHA256(key.PublicKey()))
	}
	pinned := func(more ...string) string {
		return pinOf(t, strings.Join(append(slices.Clone(text), more...), "\n")).fingerprints()
	}
	if got := pinned(); got != strings.Join(want, ", ") {
		t.Errorf("%q", got)
	}
	ca := testkit.NewSigner(t, "ed25519")
	if got := pinned("@cert-authority * " + ca.Line); got != strings.Join(want, ", ")+" and 1 more" {
		t.Errorf("%q", got)
	}
	if got := pinOf(t, "@cert-authority * "+ca.Line).fingerprints(); got != "the CA "+ssh.FingerprintSHA256(ca.PublicKey()) {
		t.Errorf("%q", got)
	}
}

func TestHostCertificates(t *testing.T) {
	ca, _ := fakesshd.Key(t)
	now := time.Now()
	good := func(c *ssh.Certificate) { c.ValidPrincipals = []string{"127.0.0.1"} }
	cases := map[string]struct {
		change func(*ssh.Certificate)
		text   string // "" accepted
	}{
		"a good one":         {good, ""},
		"for another host":   {func(c *ssh.Certificate) { c.ValidPrincipals = []string{"10.0.0.1"} }, "certificate that does not hold"},
		"expired":            {func(c *ssh.Certificate) { good(c); c.ValidBefore = uint64(now.Add(-time.Hour).Unix()) }, "certificate that does not hold"},
		"a user certificate": {func(c *ssh.Certificate) { good(c); c.CertType = ssh.UserCert }, "certificate that does not hold"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := startCertified(t, ca, c.change)
			s.target.Pin = pinOf(t, "@cert-authority * "+string(fakesshd.PinText(ca)))
			_, err := Run(t.Context(), s.target, quick(), nil, io.Discard, io.Discard, committed)
			if c.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantFault(t, err, HostKeyMismatch, c.text)
		})
	}
	for algorithm, refused := range map[string]bool{ssh.KeyAlgoRSASHA512: false, ssh.KeyAlgoRSASHA256: false, ssh.KeyAlgoRSA: true} {
		t.Run("of an RSA authority by "+algorithm, func(t *testing.T) {
			authority := testkit.NewSigner(t, "rsa3072")
			signs, ok := authority.Signer.(ssh.AlgorithmSigner)
			if !ok {
				t.Fatal("the authority cannot choose its algorithm")
			}
			rsa, err := ssh.NewSignerWithAlgorithms(signs, []string{algorithm})
			if err != nil {
				t.Fatal(err)
			}
			s := startCertified(t, rsa, good)
			s.target.Pin = pinOf(t, "@cert-authority * "+authority.Line)
			_, err = Run(t.Context(), s.target, quick(), nil, io.Discard, io.Discard, committed)
			if refused {
				wantFault(t, err, HostKeyMismatch, "SHA-1")
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("for nobody, which ssh 9.2 takes for every host", func(t *testing.T) {
		authority, host := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
		nameless := testkit.Certify(t, authority, host.PublicKey(), nil, func(c *ssh.Certificate) { c.CertType, c.ValidBefore = ssh.HostCert, ssh.CertTimeInfinity })
		s := startShowing(t, nameless, host)
		s.target.Pin = pinOf(t, "@cert-authority * "+authority.Line)
		_, err := Run(t.Context(), s.target, quick(), nil, io.Discard, io.Discard, committed)
		wantFault(t, err, HostKeyMismatch, "certificate that does not hold")
	})
	t.Run("of another CA", func(t *testing.T) {
		s := startCertified(t, ca, good)
		other, _ := fakesshd.Key(t)
		s.target.Pin = pinOf(t, "@cert-authority * "+string(fakesshd.PinText(other)))
		_, err := Run(t.Context(), s.target, quick(), nil, io.Discard, io.Discard, committed)
		wantFault(t, err, HostKeyMismatch, "certificate that does not hold")
	})
}

func startCertified(t *testing.T, ca ssh.Signer, change func(*ssh.Certificate)) setup {
	t.Helper()
	host, _ := fakesshd.Key(t)
	cert := &ssh.Certificate{Key: host.PublicKey(), CertType: ssh.HostCert, ValidBefore: ssh.CertTimeInfinity, Nonce: []byte("nonce")}
	change(cert)
	if err := cert.SignCert(bytesForever{}, ca); err != nil {
		t.Fatal(err)
	}
	return startShowing(t, cert, host)
}

// startShowing starts a host that shows a certificate of its key.
func startShowing(t *testing.T, cert *ssh.Certificate, host ssh.Signer) setup {
	t.Helper()
	certified, err := ssh.NewCertSigner(cert, host)
	if err != nil {
		t.Fatal(err)
	}
	login, pem := fakesshd.Key(t)
	key, err := ParseLoginKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	server := fakesshd.Start(t, login.PublicKey(), func(*fakesshd.Session) int { return 0 }, fakesshd.Options{}, certified)
	return setup{Target{Address: server.Addr, User: "kpssh", Login: key, Command: "x"}, server}
}

// bytesForever stands for randomness where none is needed.
type bytesForever struct{}

func (bytesForever) Read(p []byte) (int, error) { return len(p), nil }

func TestCommandsShareAConnection(t *testing.T) {
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	s := start(t, fakesshd.Options{}, func(s *fakesshd.Session) int {
		fmt.Fprint(s.Stdout, s.Command)
		switch s.Command {
		case "cut":
			s.Cut()
			return fakesshd.NoExit
		case "child":
			s.ExitNow(0)
			<-block
			return fakesshd.NoExit
		default:
			return 7
		}
	})
	connection := func(t *testing.T) *Connection {
		t.Helper()
		c, err := Connect(t.Context(), s.target, quick())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	run := func(t *testing.T, c *Connection, command string) (int, string, error) {
		t.Helper()
		var out buffer
		code, err := c.Run(t.Context(), command, quick(), []byte("in"), &out, io.Discard, committed)
		return code, out.String(), err
	}
	t.Run("one after the other", func(t *testing.T) {
		c := connection(t)
		for _, command := range []string{"one", "two", "three"} {
			if code, out, err := run(t, c, command); err != nil || code != 7 || out != command {
				t.Fatalf("%s: code %d, %q, %v", command, code, out, err)
			}
		}
		if dialled := s.server.Connections(); dialled != 1 {
			t.Fatalf("%d connections", dialled)
		}
		refused := errors.New("not now")
		if _, err := c.Run(t.Context(), "four", quick(), nil, io.Discard, io.Discard, func() error { return refused }); !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if code, _, err := run(t, c, "five"); err != nil || code != 7 {
			t.Fatalf("after a command that was not asked for: code %d, %v", code, err)
		}
	})
	for _, last := range []string{"cut", "child"} {
		t.Run("none after "+last, func(t *testing.T) {
			c := connection(t)
			if _, _, err := run(t, c, last); last == "cut" {
				wantFault(t, err, Cut, "before the command's exit status")
			} else if err != nil {
				t.Fatal(err)
			}
			_, _, err := run(t, c, "next")
			wantFault(t, err, Unreachable, "opening a session")
		})
	}
}
