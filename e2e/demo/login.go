//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// loginKey is the relay's way into the hosts: it can start the shim and nothing else.
type loginKey struct {
	signer ssh.Signer
	pem    []byte
}

func newLoginKey() (*loginKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "relay of the demonstration")
	if err != nil {
		return nil, err
	}
	return &loginKey{signer: signer, pem: pem.EncodeToMemory(block)}, nil
}

// send pipes an envelope to the host's shim, past the relay, and returns its exit code.
func (k *loginKey) send(ctx context.Context, h *lab.Host, message []byte) (code int, stderr string, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", h.SSHAddr())
	if err != nil {
		return 0, "", err
	}
	config := &ssh.ClientConfig{
		User: "kpssh", Auth: []ssh.AuthMethod{ssh.PublicKeys(k.signer)},
		HostKeyCallback: ssh.FixedHostKey(h.HostKey), HostKeyAlgorithms: []string{h.HostKey.Type()},
	}
	c, channels, requests, err := ssh.NewClientConn(conn, h.SSHAddr(), config)
	if err != nil {
		return 0, "", errors.Join(err, conn.Close())
	}
	client := ssh.NewClient(c, channels, requests)
	code, stderr, err = pipe(client, message)
	return code, stderr, errors.Join(err, client.Close())
}

// pipe runs the shim with the message on its stdin.
func pipe(client *ssh.Client, message []byte) (code int, stderr string, err error) {
	session, err := client.NewSession()
	if err != nil {
		return 0, "", err
	}
	var out bytes.Buffer
	session.Stdin, session.Stderr = bytes.NewReader(message), &out
	err = session.Run("/opt/kpssh/kpssh-shim")
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		return exit.ExitStatus(), out.String(), nil
	}
	return 0, out.String(), err
}
