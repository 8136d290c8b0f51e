package allowedsigners_test

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// The parts of a question that can be refused.
const (
	atList      = "list"
	atRevoked   = "revoked"
	atSignature = "signature"
	atVerify    = "verify"
)

// stage is our answer, and which part of the question it is about.
func (q question) stage() (string, *decision.Error) {
	list, err := allowedsigners.Parse([]byte(q.list))
	if err != nil {
		return atList, decision.From(err)
	}
	var revoked allowedsigners.Revocations
	if q.revoked != nil {
		l, err := krl.Parse(q.revoked)
		if err != nil {
			return atRevoked, decision.From(err)
		}
		revoked = l
	}
	all, err := sshsig.ParseAllWithCertificates([]byte(q.signature))
	if err == nil && len(all) != 1 {
		err = decision.Errorf(decision.SignatureMalformed, "holds %d signatures where one is wanted", len(all))
	}
	if err != nil {
		return atSignature, decision.From(err)
	}
	if err := list.Verify(q.identity, q.namespace, all[0], q.message, revoked, q.now); err != nil {
		return atVerify, decision.From(err)
	}
	return "", nil
}

// keygen is the answer of "ssh-keygen -Y verify".
func (q question) keygen(t testing.TB) bool {
	t.Helper()
	tool, dir := testkit.Tool(t, "ssh-keygen"), t.TempDir()
	args := []string{
		"-Y", "verify", "-I", q.identity, "-n", q.namespace, "-Overify-time=" + q.now.UTC().Format("20060102150405Z"),
		"-f", testkit.WriteFile(t, dir, "allowed_signers", []byte(q.list)), "-s", testkit.WriteFile(t, dir, "signature", []byte(q.signature)),
	}
	if q.revoked != nil {
		args = append(args, "-r", testkit.WriteFile(t, dir, "revoked", q.revoked))
	}
	cmd := exec.Command(tool, args...)
	cmd.Stdin = bytes.NewReader(q.message)
	return cmd.Run() == nil
}
