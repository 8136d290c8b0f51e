package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Host judges an SSHHost; old is what is stored, nil for a new one. It wants mode
// Verified of every host: exceptions are admission's alone.
func Host(s Snapshot, h, old *object.Host) decision.Decision {
	if err := judgeHost(s, h, old, false); err != nil {
		return decision.From(err).Denied(h.Kind, h.Name)
	}
	return decision.Admit(h.Kind, h.Name, "runs only what is signed")
}

// judgeHost judges a host; mayBeRaw lifts the rule for the mode and no other.
func judgeHost(s Snapshot, h, old *object.Host, mayBeRaw bool) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := verifiedMode(h, old, mayBeRaw); err != nil {
		return err
	}
	if err := placed(s.Policy.Hosts, h.Namespace, h); err != nil {
		return err
	}
	if err := login(s.Policy.Hosts, h); err != nil {
		return err
	}
	if mayBeRaw && len(h.TrustedSigners) == 0 {
		return nil // nothing is verified with them
	}
	return trustedSigners(s, h)
}

// placed wants the namespace to be one that holds hosts, and, where the host is
// known, its class to be one of that namespace's.
func placed(allowed trustpolicy.Hosts, namespace string, h *object.Host) error {
	space, listed := allowed.Namespaces[namespace]
	// check: NamespaceRefused: a host made by whoever may write in some namespace of their own
	if !listed {
		return decision.Errorf(decision.NamespaceRefused, "the policy allows no hosts in the namespace %.63q", namespace).
			At("metadata.namespace").Try("use one of joinProfiles.hosts.namespaces, or add this one there")
	}
	if h == nil {
		return nil
	}
	// check: HostClassRefused: a class taken by a label gives the host another class's profiles
	if !slices.Contains(space.Classes, h.Class()) {
		return decision.Errorf(decision.HostClassRefused, "the policy does not allow the host class %.63q in the namespace %s", h.Class(), namespace).
			At("metadata.labels[" + object.HostClassLabel + "]").Try("use one of its classes: " + list(space.Classes))
	}
	return nil
}

func login(allowed trustpolicy.Hosts, h *object.Host) error {
	// check: UserRefused: a login that no shim confines
	if !slices.Contains(allowed.Users, h.User) {
		return decision.Errorf(decision.UserRefused, "the policy does not allow the login user %.40q", h.User).
			At("spec.user").Try("use one of joinProfiles.hosts.users: " + list(allowed.Users))
	}
	// check: PortRefused: another daemon on the host, without the forced command
	if !slices.Contains(allowed.Ports, h.Port) {
		return decision.Errorf(decision.PortRefused, "the policy does not allow port %d", h.Port).
			At("spec.port").Try("use one of joinProfiles.hosts.ports: " + listPorts(allowed.Ports))
	}
	// check: ShimCommandRefused: on a host without a forced command this line runs as it stands
	if h.ShimCommand != "" && !slices.Contains(allowed.ShimCommands, h.ShimCommand) {
		return decision.Errorf(decision.ShimCommandRefused, "the policy does not allow the command %.60q", h.ShimCommand).
			At("spec.shimCommand").Try("leave it empty, or use one of joinProfiles.hosts.shimCommands")
	}
	return nil
}

// verifiedMode wants execMode Verified, or Raw where that may be. The CRD fills in Raw where it is left out.
func verifiedMode(h, old *object.Host, mayBeRaw bool) error {
	const hint = "set spec.execMode: Verified"
	// check: ModeDowngrade: turning verification off on a host that had it
	if old != nil && old.ExecMode == object.ExecVerified && h.ExecMode != object.ExecVerified {
		return decision.Errorf(decision.ModeDowngrade, "a Verified host may not become %.20s", h.ExecMode).At("spec.execMode").Try(hint)
	}
	if mayBeRaw && h.ExecMode == object.ExecRaw {
		return nil
	}
	// check: RawRefused: a Raw host runs whatever the object says, as root
	if h.ExecMode != object.ExecVerified {
		return decision.Errorf(decision.RawRefused, "execMode %.20s runs scripts that nobody vouched for (Raw is the default)", h.ExecMode).At("spec.execMode").Try(hint)
	}
	return nil
}

// trustedSigners wants the keys that karpenter-provider-ssh verifies with to be
// keys of the policy.
func trustedSigners(s Snapshot, h *object.Host) error {
	const hint = "leave spec.trustedSigners out to have it filled from the policy"
	// check: SignersNotInPolicy: karpenter-provider-ssh skips verification where the list is empty
	if len(h.TrustedSigners) == 0 {
		return decision.Errorf(decision.SignersNotInPolicy, "lists no key").At("spec.trustedSigners").Try("list keys of joinProfiles.signers")
	}
	known := s.Policy.TrustedSigners()
	for i, line := range h.TrustedSigners {
		at := fmt.Sprintf("spec.trustedSigners[%d]", i)
		key, _, err := sshsig.ParsePublicKey(line)
		if err != nil {
			return decision.From(err).At(at).Try(hint)
		}
		plain := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
		// check: SignersNotInPolicy: a key added here would vouch for anything in karpenter-provider-ssh's eyes
		if !slices.Contains(known, plain) {
			return decision.Errorf(decision.SignersNotInPolicy, "the policy does not name the signer %s", sshsig.Fingerprint(key)).At(at).Try(hint)
		}
	}
	return nil
}

// list shows a few values of the policy.
func list(values []string) string {
	if len(values) == 0 {
		return "none"
	}
	return strings.Join(values[:min(len(values), 5)], ", ")
}

func listPorts(ports []int) string {
	values := make([]string, len(ports))
	for i, port := range ports {
		values[i] = strconv.Itoa(port)
	}
	return list(values)
}
