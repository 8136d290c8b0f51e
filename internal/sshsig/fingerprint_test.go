package sshsig_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestAFingerprintHasOneSpelling(t *testing.T) {
	own := testkit.NewSigner(t, "ed25519").Fingerprint
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	stem := own[:len(own)-1]
	good := 0
	for _, last := range digits {
		text := stem + string(last)
		_, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimPrefix(text, "SHA256:"))
		if got := sshsig.ValidFingerprint(text); got != (err == nil) {
			t.Errorf("last digit %c: %v, and base64 says %v", last, got, err)
		}
		if err == nil {
			good++
		}
	}
	if good != 16 || !sshsig.ValidFingerprint(own) {
		t.Errorf("%d last digits are good, and %s is %v", good, own, sshsig.ValidFingerprint(own))
	}
	for name, text := range map[string]string{
		"nothing": "", "MD5": "MD5:aa", "a short one": own[:len(own)-1], "a long one": own + "A", "padded": own + "=",
		"in other case": "sha256:" + own[7:], "without its hash": own[7:], "with a line break": own + "\n", "with text before it": "x" + own,
		"in base64 for URLs": "SHA256:" + strings.Repeat("-", 42) + "A",
	} {
		if sshsig.ValidFingerprint(text) {
			t.Errorf("%s: %q is taken", name, text)
		}
	}
}
