package fakesshd

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// NoExit as a handler's answer sends no exit status.
const NoExit = -1

// Session is one command that a client asked for.
type Session struct {
	Command string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer

	channel ssh.Channel
	conn    net.Conn
}

// Cut ends the TCP connection as a broken network does.
func (s *Session) Cut() { ignore(s.conn.Close()) }

// Signal says that the command was ended by a signal.
func (s *Session) Signal(name string) {
	payload := ssh.Marshal(struct {
		Signal   string
		Core     bool
		Message  string
		Language string
	}{Signal: name})
	_, err := s.channel.SendRequest("exit-signal", false, payload)
	ignore(err)
}

// ExitNow sends the exit status and leaves the streams open.
func (s *Session) ExitNow(code int) {
	_, err := s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(code)}))
	ignore(err)
}

// Handler plays one command and gives its exit status.
type Handler func(s *Session) int

// Server is a listening fake.
type Server struct {
	Addr     string
	sessions atomic.Int32
	listener net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

// Options change what the server does before a command.
type Options struct {
	RefuseExec    bool   // answers no to the command
	MuteExec      bool   // gives no answer to the command
	RefuseSession bool   // answers no to the session
	MuteSession   bool   // gives no answer to the session
	MuteRequests  bool   // answers no keepalive
	Banner        string // shown before login
}

// Start serves until the test ends. Only login may log in.
func Start(t testing.TB, login ssh.PublicKey, handler Handler, o Options, hostKeys ...ssh.Signer) *Server {
	t.Helper()
	s := Serve(Listen(t), login, handler, o, hostKeys...)
	t.Cleanup(s.stop)
	return s
}

// Serve is Start for a process of its own, on a listener of its choice: it serves until the process ends.
func Serve(l net.Listener, login ssh.PublicKey, handler Handler, o Options, hostKeys ...ssh.Signer) *Server {
	s := &Server{listener: l, Addr: l.Addr().String()}
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if login == nil || string(key.Marshal()) != string(login.Marshal()) {
				return nil, errors.New("not this key")
			}
			return &ssh.Permissions{}, nil
		},
	}
	if o.Banner != "" {
		config.BannerCallback = func(ssh.ConnMetadata) string { return o.Banner }
	}
	for _, key := range hostKeys {
		config.AddHostKey(key)
	}
	go s.accept(config, handler, o)
	return s
}

// Sessions counts the commands that were asked for.
func (s *Server) Sessions() int { return int(s.sessions.Load()) }

// Connections counts the connections that were taken.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *Server) stop() {
	ignore(s.listener.Close())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		ignore(c.Close())
	}
}

func (s *Server) accept(config *ssh.ServerConfig, handler Handler, o Options) {
	s.each(func(c net.Conn) { s.serve(c, config, handler, o) })
}

func (s *Server) each(play func(net.Conn)) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
		go play(conn)
	}
}

func (s *Server) serve(conn net.Conn, config *ssh.ServerConfig, handler Handler, o Options) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		ignore(conn.Close())
		return
	}
	go func() {
		for r := range requests {
			if r.WantReply && !o.MuteRequests {
				ignore(r.Reply(false, nil))
			}
		}
	}()
	for offered := range channels {
		switch {
		case o.MuteSession:
		case o.RefuseSession || offered.ChannelType() != "session":
			ignore(offered.Reject(ssh.Prohibited, "no"))
		default:
			go s.session(conn, offered, handler, o)
		}
	}
}

func (s *Server) session(conn net.Conn, offered ssh.NewChannel, handler Handler, o Options) {
	channel, requests, err := offered.Accept()
	if err != nil {
		return
	}
	for r := range requests {
		if r.Type != "exec" || o.RefuseExec {
			ignore(r.Reply(false, nil))
			continue
		}
		s.sessions.Add(1)
		if o.MuteExec {
			continue
		}
		var m struct{ Command string }
		ignore(ssh.Unmarshal(r.Payload, &m))
		ignore(r.Reply(true, nil))
		go ssh.DiscardRequests(requests)
		session := &Session{Command: m.Command, Stdin: channel, Stdout: channel, Stderr: channel.Stderr(), channel: channel, conn: conn}
		if code := handler(session); code != NoExit {
			session.ExitNow(code)
		}
		ignore(channel.Close())
		return
	}
}

// Listen is a TCP listener on the loopback address that ends with the test.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ignore(l.Close()) })
	return l
}

// Silent is the address of a port that takes connections and says nothing.
func Silent(t testing.TB) string {
	return raw(t, func(c net.Conn) {
		_, err := io.Copy(io.Discard, c)
		ignore(err)
	})
}

// Talker is the address of a port that never stops to send the text.
func Talker(t testing.TB, text string) string {
	return raw(t, func(c net.Conn) {
		block := []byte(strings.Repeat(text, 1+4096/len(text)))
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})
}

func raw(t testing.TB, play func(net.Conn)) string {
	t.Helper()
	s := &Server{listener: Listen(t)}
	t.Cleanup(s.stop)
	go s.each(play)
	return s.listener.Addr().String()
}

// Key makes a key pair for one test: the signer and the private key in PEM.
func Key(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	key := testkit.NewSigner(t, "ed25519")
	return key.Signer, key.PEM
}

// PinText is the public key line of a host key.
func PinText(key ssh.Signer) []byte { return ssh.MarshalAuthorizedKey(key.PublicKey()) }

// ignore says that an error of a fake changes nothing: the client sees it.
func ignore(error) {}
