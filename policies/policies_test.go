package policies

import (
	"os"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestTheExampleIsAPolicyOnceItsKeysAreFilledIn(t *testing.T) {
	text, err := os.ReadFile("trust-policy.document.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root, platform, security := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	verify := func(document string) (*trustpolicy.Policy, error) {
		signed := trustpolicy.Signed{Document: []byte(document), Signatures: []string{testkit.Sign(t, root, trustpolicy.Namespace, []byte(document))}}
		return trustpolicy.Verify(signed, testkit.Roots(t, root), "prod-1", testkit.Now())
	}
	if _, err := verify(string(text)); err == nil {
		t.Error("the example is accepted with its placeholders")
	}
	p, err := verify(strings.NewReplacer("PLATFORM_KEY", platform.Line, "SECURITY_KEY", security.Line).Replace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if p.Thresholds[script.Join] != 2 || len(p.Signers) != 2 || p.Mode(testkit.Now()) != trustpolicy.Enforce {
		t.Errorf("%+v", p)
	}
}
