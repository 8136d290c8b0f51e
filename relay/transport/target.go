package transport

import (
	"time"

	"golang.org/x/crypto/ssh"
)

// Target is where to connect and what to ask for.
type Target struct {
	Address string // host:port
	User    string
	Login   ssh.Signer
	Pin     Pin
	PinIn   string // where the pin stands, for who has to compare it; "" says nothing
	Command string
}

// Limits bound every wait and every size.
type Limits struct {
	Dial      time.Duration // TCP connection
	Handshake time.Duration // version, key exchange, login, however slow or talkative the host is
	Channel   time.Duration // session and the answer to the command
	Run       time.Duration // from the command to its exit status
	Drain     time.Duration // without a byte, after the exit status
	Keepalive time.Duration // between two keepalives
	Misses    int           // intervals without an answer after which the host is gone
	Output    int64         // bytes of stdout and stderr together
}

// DefaultLimits are those of docs/spec/relay.md but for Run, which depends on
// the phase.
func DefaultLimits() Limits {
	return Limits{
		Dial:      15 * time.Second,
		Handshake: 15 * time.Second,
		Channel:   15 * time.Second,
		Drain:     10 * time.Second,
		Keepalive: 15 * time.Second,
		Misses:    3,
		Output:    64 << 20,
	}
}
