package keyring

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestLoadFindsAKeyInTheAgent(t *testing.T) {
	socket, dir := testkit.Agent(t), t.TempDir()
	s := Source{AgentSocket: socket}
	other := testkit.NewSigner(t, "ed25519")
	for _, kind := range []string{"ed25519", "ecdsa256", "ecdsa521", "rsa3072"} {
		t.Run(kind, func(t *testing.T) {
			held := testkit.NewSigner(t, kind)
			add := exec.Command(testkit.Tool(t, "ssh-add"), "-q", testkit.WriteFile(t, dir, kind, held.PEM))
			add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
			if out, err := add.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			signer, closer, err := s.Load(testkit.WriteFile(t, dir, kind+".pub", []byte(held.Line+" comment\n")))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sshsig.Sign(rand.Reader, signer, "kpssh", []byte("x")); err != nil {
				t.Error(err)
			}
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	_, _, err := s.Load(testkit.WriteFile(t, dir, "other.pub", []byte(other.Line+"\n")))
	wantError(t, err, "does not hold the key "+other.Fingerprint)
	_, _, err = Source{}.Load(filepath.Join(dir, "other.pub"))
	wantError(t, err, "SSH_AUTH_SOCK is not set")
	_, _, err = Source{AgentSocket: filepath.Join(dir, "none")}.Load(filepath.Join(dir, "other.pub"))
	wantError(t, err, "reaching ssh-agent")
}

// faultyAgent is an agent in this process, for the faults that a real one does not show.
type faultyAgent struct {
	agent.Agent
	list []*agent.Key
	sign func(data []byte) (*ssh.Signature, error)
}

func (a faultyAgent) List() ([]*agent.Key, error) {
	if a.list == nil {
		return nil, errors.New("no")
	}
	return a.list, nil
}

func (a faultyAgent) Sign(_ ssh.PublicKey, data []byte) (*ssh.Signature, error) { return a.sign(data) }

func serve(t *testing.T, a faultyAgent) Source {
	t.Helper()
	a.Agent = agent.NewKeyring()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				if err := agent.ServeAgent(a, conn); err != nil && !errors.Is(err, io.EOF) {
					t.Error(err)
				}
			}()
		}
	}()
	return Source{AgentSocket: socket}
}

func TestAFaultyAgentIsAnError(t *testing.T) {
	key, other, token := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "sk-ed25519")
	listed := func(s testkit.Signer) []*agent.Key {
		return []*agent.Key{{Format: s.PublicKey().Type(), Blob: s.PublicKey().Marshal()}}
	}
	refuse := func([]byte) (*ssh.Signature, error) { return nil, errors.New("no") }
	for name, tt := range map[string]struct {
		key   testkit.Signer
		agent faultyAgent
		word  string
	}{
		"it does not list its keys":      {key, faultyAgent{}, "asking ssh-agent for its keys"},
		"it lists nothing":               {key, faultyAgent{list: []*agent.Key{}}, "lists no key at all"},
		"it lists others":                {key, faultyAgent{list: listed(other)}, "does not hold the key " + key.Fingerprint},
		"it refuses to sign":             {key, faultyAgent{list: listed(key), sign: refuse}, "Internal: signing with " + key.Fingerprint + ": ssh-agent holds the key and refused to sign"},
		"it refuses to sign by a token":  {token, faultyAgent{list: listed(token), sign: refuse}, "the token was not touched in time"},
		"it signs with another key":      {key, faultyAgent{list: listed(key), sign: func(b []byte) (*ssh.Signature, error) { return other.Sign(rand.Reader, b) }}, "SignatureInvalid"},
		"it signs something else":        {key, faultyAgent{list: listed(key), sign: func([]byte) (*ssh.Signature, error) { return key.Sign(rand.Reader, []byte("y")) }}, "SignatureInvalid"},
		"it does not ask for the touch":  {testkit.NewSigner(t, "sk-ed25519-untouched"), faultyAgent{}, "TouchMissing"},
		"it answers with another format": {key, faultyAgent{list: listed(key), sign: func([]byte) (*ssh.Signature, error) { return &ssh.Signature{Format: "ssh-rsa"}, nil }}, "KeyTypeRefused: signature algorithm"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(tt.word, "Touch") {
				tt.agent = faultyAgent{list: listed(tt.key), sign: func(b []byte) (*ssh.Signature, error) { return tt.key.Sign(rand.Reader, b) }}
			}
			signer, closer, err := serve(t, tt.agent).Load(testkit.WriteFile(t, t.TempDir(), "k.pub", []byte(tt.key.Line+"\n")))
			if err == nil {
				_, err = sshsig.Sign(rand.Reader, signer, "kpssh", []byte("x"))
				if cerr := closer.Close(); cerr != nil {
					t.Error(cerr)
				}
			}
			wantError(t, err, tt.word)
		})
	}
}

func TestATokenAsksForATouch(t *testing.T) {
	token := testkit.NewSigner(t, "sk-ed25519")
	s := serve(t, faultyAgent{
		list: []*agent.Key{{Format: token.PublicKey().Type(), Blob: token.PublicKey().Marshal()}},
		sign: func(b []byte) (*ssh.Signature, error) { return token.Sign(rand.Reader, b) },
	})
	var said []string
	s.Notify = func(text string) { said = append(said, text) }
	signer, _, err := s.Load(testkit.WriteFile(t, t.TempDir(), "k.pub", []byte(token.Line+"\n")))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := sshsig.Sign(rand.Reader, signer, "kpssh", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	want := "touch the security key " + token.Fingerprint
	if !slices.Equal(said, []string{want, want}) {
		t.Errorf("want a note for each signature, got %q", said)
	}
}

func TestAWeakKeyIsRefusedBeforeTheAgentIsAsked(t *testing.T) {
	small := testkit.NewSigner(t, "rsa2048")
	_, _, err := Source{}.Load(testkit.WriteFile(t, t.TempDir(), "k.pub", []byte(small.Line+"\n")))
	wantError(t, err, string(decision.KeyTypeRefused))
}
