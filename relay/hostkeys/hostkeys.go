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
func Agree(pin transport.Pin, known proof.Host) error {
	if len(known.Keys)+len(known.Authorities) == 0 {
		return nil
	}
	keys := known.Keys
	if len(keys) == 0 {
		keys = pin.Keys() // only authorities are known: a pinned key is narrower than one
	}
	// check: HostKeyNotPinned: whoever writes the host's Secret makes another machine the host
	if strange := pin.Outside(keys, known.Authorities); strange != nil {
		return decision.Errorf(decision.HostKeyNotPinned, "the Secret pins %s, which is none of the host's keys by the policy's hostCA and ConfigMap %s/%s",
			sshsig.Fingerprint(strange), Namespace, ConfigMap)
	}
	return nil
}
