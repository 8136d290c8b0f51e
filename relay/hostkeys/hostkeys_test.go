package hostkeys_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/relay/hostkeys"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestAPinAgreesWithWhatIsKnown: a Secret may name fewer keys than are known of the host, and none beside.
func TestAPinAgreesWithWhatIsKnown(t *testing.T) {
	a, b, ca, other := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	keys := func(of ...testkit.Signer) (all []ssh.PublicKey) {
		for _, s := range of {
			all = append(all, s.PublicKey())
		}
		return all
	}
	authority := func(s testkit.Signer) string { return "@cert-authority * " + s.Line }
	for name, tt := range map[string]struct {
		pin   []string
		known proof.Host
		want  decision.Reason
	}{
		"nothing is known":                 {[]string{a.Line}, proof.Host{Principals: []string{"x"}}, decision.Verified},
		"its key":                          {[]string{a.Line}, proof.Host{Keys: keys(a)}, decision.Verified},
		"one of its keys":                  {[]string{b.Line}, proof.Host{Keys: keys(a, b)}, decision.Verified},
		"another key":                      {[]string{other.Line}, proof.Host{Keys: keys(a, b)}, decision.HostKeyNotPinned},
		"its key and another":              {[]string{a.Line, other.Line}, proof.Host{Keys: keys(a, b)}, decision.HostKeyNotPinned},
		"an authority where keys are":      {[]string{authority(ca)}, proof.Host{Keys: keys(a)}, decision.HostKeyNotPinned},
		"its key as an authority":          {[]string{authority(a)}, proof.Host{Keys: keys(a)}, decision.HostKeyNotPinned},
		"its authority":                    {[]string{authority(ca)}, proof.Host{Authorities: keys(ca)}, decision.Verified},
		"another authority":                {[]string{authority(other)}, proof.Host{Authorities: keys(ca)}, decision.HostKeyNotPinned},
		"a key where an authority is":      {[]string{a.Line}, proof.Host{Authorities: keys(ca)}, decision.HostKeyNotPinned},
		"a key beside the authority":       {[]string{authority(ca), a.Line}, proof.Host{Authorities: keys(ca)}, decision.HostKeyNotPinned},
		"the authority as a host's key":    {[]string{ca.Line}, proof.Host{Authorities: keys(ca)}, decision.HostKeyNotPinned},
		"a listed key and the authority":   {[]string{authority(ca), a.Line}, proof.Host{Keys: keys(a), Authorities: keys(ca)}, decision.Verified},
		"both, and its key":                {[]string{a.Line}, proof.Host{Keys: keys(a), Authorities: keys(ca)}, decision.Verified},
		"both, and another key":            {[]string{other.Line}, proof.Host{Keys: keys(a), Authorities: keys(ca)}, decision.HostKeyNotPinned},
		"both, and another key beside all": {[]string{a.Line, authority(ca), other.Line}, proof.Host{Keys: keys(a), Authorities: keys(ca)}, decision.HostKeyNotPinned},
	} {
		t.Run(name, func(t *testing.T) {
			pin, err := transport.ParsePin([]byte(strings.Join(tt.pin, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			testkit.WantReason(t, hostkeys.Agree(pin, tt.known), tt.want)
		})
	}
}
