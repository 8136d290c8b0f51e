package hostkeys

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// Where the keys of hosts are listed that no CA certifies.
const (
	Namespace = "hostwarrant-system"
	ConfigMap = "hostwarrant-host-keys"
)

// Of gives the keys of a host by policy and ConfigMap. The error is a Decision's,
// Malformed, where the ConfigMap lists what is no key, and else the API server's.
func Of(ctx context.Context, reader client.Reader, p *trustpolicy.Policy, host *object.Host) (proof.Host, error) {
	h := proof.Host{Principals: []string{host.Address}}
	if ca := p.Hosts.Namespaces[host.Namespace].HostCA; ca != nil {
		h.Authorities = []ssh.PublicKey{ca}
	}
	var listed corev1.ConfigMap
	err := reader.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: ConfigMap}, &listed)
	if apierrors.IsNotFound(err) {
		return h, nil
	}
	if err != nil {
		return proof.Host{}, fmt.Errorf("reading ConfigMap %s/%s: %w", Namespace, ConfigMap, err)
	}
	if h.Keys, err = parse(listed.Data[host.Namespace+"."+host.Name]); err != nil {
		return proof.Host{}, decision.From(err).At(fmt.Sprintf("ConfigMap %s, %s.%s", ConfigMap, host.Namespace, host.Name))
	}
	return h, nil
}

// parse reads public key lines. Empty lines and comments are nothing.
func parse(text string) ([]ssh.PublicKey, error) {
	var keys []ssh.PublicKey
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, err := sshsig.ParsePublicKey(line)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Agree refuses a pin that lets other keys be the host's than those that are known
// of it. Where nothing is known, the pin alone says. The error carries HostKeyNotPinned.
//
// A raw key is no narrower than a host CA: it is a machine that the CA need not have
// certified. So where a CA is all that is known, the pin is that CA.
func Agree(pin transport.Pin, known proof.Host) error {
	if len(known.Keys)+len(known.Authorities) == 0 {
		return nil
	}
	// check: HostKeyNotPinned: whoever writes the host's Secret makes another machine the host, and gets the run's secrets
	if strange := pin.Outside(known.Keys, known.Authorities); strange != nil {
		return decision.Errorf(decision.HostKeyNotPinned, "the Secret pins %s, which is neither the policy's hostCA as @cert-authority nor a key of the host in ConfigMap %s/%s; pin that CA, or have the key listed",
			sshsig.Fingerprint(strange), Namespace, ConfigMap)
	}
	return nil
}
