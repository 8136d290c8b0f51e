package shimhost

import (
	"bytes"
	"context"
	"errors"
	"os/exec"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
)

// Answer is what the shim said.
type Answer struct {
	Code           envelope.ExitCode
	Stdout, Stderr string
}

// Send runs the shim as root on one envelope.
func Send(ctx context.Context, text []byte) (Answer, error) {
	cmd := exec.CommandContext(ctx, Shim)
	cmd.Env = []string{}
	cmd.Stdin = bytes.NewReader(text)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return Answer{}, err
	}
	return Answer{envelope.ExitCode(cmd.ProcessState.ExitCode()), out.String(), said.String()}, nil
}
