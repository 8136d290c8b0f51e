package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// The bounds of docs/spec/upstream.md, Connection.
const (
	dialTime      = 15 * time.Second
	handshakeTime = 15 * time.Second
	probeTime     = 30 * time.Second
	stderrTail    = 800
)

// phaseTime is how long a phase may take when the profile does not say.
func phaseTime(phase string) time.Duration {
	switch phase {
	case "join":
		return 5 * time.Minute
	case "leave":
		return 3 * time.Minute
	default:
		return 10 * time.Minute
	}
}

// Host is what an SSHHost and its Secret say.
type Host struct {
	Address        string // host:port
	User           string
	PrivateKey     []byte // PEM
	Fingerprint    string // of the host key; "": taken at first contact
	ShimCommand    string
	TrustedSigners []string
}

// Profile is what an SSHJoinProfile says of the phases.
type Profile struct {
	Scripts, Signatures map[string]string
}

// Failure is an operation that did not end with exit status 0. The controller does
// not tell its kinds apart; Status is here for tests, -1 where there is none.
type Failure struct {
	Status int
	Tail   string // the end of stderr
	err    error
}

// Error is what would stand in an event.
func (f *Failure) Error() string { return fmt.Sprintf("script failed (%s): %v", f.Tail, f.err) }

// Answer is what came back.
type Answer struct {
	Stdout, Stderr string
	Fingerprint    string // of the host key that was shown
}

// Facts are what the controller reads in a probe.
type Facts struct {
	CPUs, MemoryKB int64
	Arch           string
	KubeletActive  bool
}

// Probe asks a host for its facts.
func (h Host) Probe(ctx context.Context) (Facts, error) {
	answer, err := h.Send(ctx, probeTime, Envelope{Phase: "probe"}.Text())
	if err != nil {
		return Facts{}, err
	}
	return readFacts(answer.Stdout), nil
}

// readFacts takes words; what is missing or no number is left at zero.
func readFacts(stdout string) Facts {
	var f Facts
	words := strings.Fields(stdout)
	if len(words) < 3 {
		return f
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	f.CPUs, f.MemoryKB, f.Arch = number(words[0]), number(words[1]), words[2]
	switch f.Arch {
	case "x86_64":
		f.Arch = "amd64"
	case "aarch64":
		f.Arch = "arm64"
	}
	f.KubeletActive = len(words) > 3 && words[3] == "active"
	return f
}

// Run has the host run a phase of the profile. A *ConfigurationError is one before
// the host was dialled.
func (h Host) Run(ctx context.Context, p Profile, phase string, params map[string]string) (Answer, error) {
	if err := p.check(phase, h.TrustedSigners); err != nil {
		return Answer{}, &ConfigurationError{err}
	}
	e := Envelope{Phase: phase, Params: params, Signature: p.Signatures[phase], Script: p.Scripts[phase]}
	if err := e.check(); err != nil {
		return Answer{}, err
	}
	return h.Send(ctx, phaseTime(phase), e.Text())
}

// Send gives a text to the shim, whatever it is.
func (h Host) Send(ctx context.Context, limit time.Duration, text string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var answer Answer
	client, err := h.connect(ctx, &answer)
	if err != nil {
		return answer, err
	}
	defer ignore(client.Close)
	// a time that is over closes the connection
	defer context.AfterFunc(ctx, func() { ignore(client.Close) })()
	session, err := client.NewSession()
	if err != nil {
		return answer, fmt.Errorf("opening a session: %w", err)
	}
	var stdout, stderr bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader(text), &stdout, &stderr
	command := h.ShimCommand
	if command == "" {
		command = "/opt/kpssh/kpssh-shim"
	}
	err = session.Run(command)
	answer.Stdout, answer.Stderr = stdout.String(), stderr.String()
	if err != nil {
		return answer, failure(answer.Stderr, err)
	}
	return answer, nil
}

func failure(stderr string, err error) *Failure {
	f := &Failure{Status: -1, Tail: strings.TrimSpace(stderr), err: err}
	if over := len(f.Tail) - stderrTail; over > 0 {
		f.Tail = "…" + f.Tail[over:]
	}
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok && exit.Signal() == "" {
		f.Status = exit.ExitStatus()
	}
	return f
}

func (h Host) connect(ctx context.Context, answer *Answer) (*ssh.Client, error) {
	login, err := ssh.ParsePrivateKey(h.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", h.Address)
	if err != nil {
		return nil, fmt.Errorf("dialling: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c, channels, requests, err := ssh.NewClientConn(conn, h.Address, &ssh.ClientConfig{
		User: h.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(login)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			answer.Fingerprint = ssh.FingerprintSHA256(key)
			if h.Fingerprint != "" && h.Fingerprint != answer.Fingerprint {
				return fmt.Errorf("the host shows %s, known is %s", answer.Fingerprint, h.Fingerprint)
			}
			return nil
		},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("handshake: %w", err), conn.Close())
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return ssh.NewClient(c, channels, requests), nil
}

// ignore calls what ends something that is over; how that goes changes nothing.
func ignore(end func() error) {
	if err := end(); err != nil {
		return
	}
}
