package hostrun

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// defaultShim is what an SSHHost without shimCommand means.
const defaultShim = "/opt/kpssh/kpssh-shim"

// stored is what the API server holds, as JSON; nil is absent.
type stored struct {
	host    []byte
	claimed bool
	profile []byte
}

// judgeHost says whether the host may be dialled at all for this run.
func judgeHost(s verify.Snapshot, run *v1alpha1.HostRun, st stored) (*object.Host, *refusal) {
	if st.host == nil {
		return nil, refuse(reasonHostNotFound, fmt.Sprintf("there is no SSHHost %q in namespace %q", run.Spec.HostRef.Name, run.Namespace))
	}
	h, err := object.ParseHost(st.host)
	if err != nil {
		return nil, refusedBy(decision.From(err).Denied(object.KindHost, run.Spec.HostRef.Name))
	}
	// The engine refuses a host that is not Verified (RawRefused), other users,
	// ports, commands and signers. What was stored before counts for nothing here.
	// check: RawRefused: a host that was admitted under another policy, or past the webhook, runs what nobody vouched for
	if d := verify.Host(s, h, nil); !d.Allowed() {
		return nil, refusedBy(d)
	}
	leaving := run.Spec.Phase == v1alpha1.HostRunLeave || run.Spec.Phase == v1alpha1.HostRunUninstall
	// check: InUse: a host that is being given up joins once more
	if h.Deleting && !leaving {
		return nil, refuse(reasonHostNotFound, fmt.Sprintf("the SSHHost %q is being deleted: only leave and uninstall still run there", h.Name))
	}
	// check: InUse: two controllers that change one host at once
	if st.claimed {
		return nil, refuse(reasonHostClaimed, fmt.Sprintf("the SSHHost %q is claimed by karpenter-provider-ssh", h.Name))
	}
	return h, nil
}

// judgeRun says whether the run itself is within the policy: its namespace, host class, profile and
// node name. What was admitted is not believed: it may have been admitted under another policy.
func judgeRun(s verify.Snapshot, run *v1alpha1.HostRun) *refusal {
	o, err := readRun(run)
	if err != nil {
		return refusedBy(decision.From(err).Denied(object.KindHostRun, run.Name))
	}
	// check: NamespaceRefused,HostClassRefused,NodeNameRefused,NodeNameTaken,ProfileRefused: a run that was admitted under another policy, or past the webhook
	if d := verify.HostRun(s, o); !d.Allowed() {
		return refusedBy(d)
	}
	return nil
}

// judgeSending says whether the run may be sent, and gives the profile whose script is.
func judgeSending(s verify.Snapshot, run *v1alpha1.HostRun, st stored) (*object.JoinProfile, *refusal) {
	p, refused := judgePhase(s, run, st)
	if refused != nil {
		return nil, refused
	}
	return p, judgeRun(s, run)
}

// judgePhase says whether the phase of the profile may run, and gives its script.
func judgePhase(s verify.Snapshot, run *v1alpha1.HostRun, st stored) (*object.JoinProfile, *refusal) {
	name := run.Spec.ProfileRef.Name
	if st.profile == nil {
		return nil, refuse(reasonProfileNotFound, fmt.Sprintf("there is no SSHJoinProfile %q", name))
	}
	p, err := object.ParseJoinProfile(st.profile)
	if err != nil {
		return nil, refusedBy(decision.From(err).Denied(object.KindJoinProfile, name))
	}
	phase := script.Phase(run.Spec.Phase)
	// check: ProfileRefused: a profile that was withdrawn, and is held by a finalizer, runs once more
	if p.Deleting && phase != script.Leave && phase != script.Uninstall {
		return nil, refuse(reasonProfileNotFound, fmt.Sprintf("the SSHJoinProfile %q is being deleted: only leave and uninstall still run", name))
	}
	// check: Unsigned: a script that was admitted under another policy, or past the webhook, leaves the cluster
	if d := verify.Phase(s, p, phase); !d.Allowed() {
		return nil, refusedBy(d)
	}
	return p, nil
}

// target says where the host is and which keys it and the relay have.
func target(h *object.Host, secret map[string][]byte) (transport.Target, *refusal) {
	pin, err := transport.ParsePin(secret["knownHost"])
	if err != nil {
		return transport.Target{}, keyRefusal(err, fmt.Sprintf("Secret %q, knownHost", h.SecretName))
	}
	login, err := transport.ParseLoginKey(secret["privateKey"])
	if err != nil {
		return transport.Target{}, keyRefusal(err, fmt.Sprintf("Secret %q, privateKey", h.SecretName))
	}
	command := h.ShimCommand
	if command == "" {
		command = defaultShim
	}
	return transport.Target{
		Address: net.JoinHostPort(h.Address, strconv.Itoa(h.Port)),
		User:    h.User, Login: login, Pin: pin, Command: command,
	}, nil
}

// message is what a judged run sends, and what must not show of it.
type message struct {
	envelope envelope.Envelope
	secrets  []string
	warrant  *warrant.Warrant // nil: the script has none
}

// order writes the message of a judged run. secret is that of spec.secretRef.
func order(run *v1alpha1.HostRun, h *object.Host, p *object.JoinProfile, c Cluster, secret map[string][]byte, runID envelope.RunID) (message, *refusal) {
	phase := script.Phase(run.Spec.Phase)
	w, err := warrant.Find([]byte(p.Scripts[phase]))
	if err != nil {
		return message{}, refusedBy(decision.From(err).Denied(object.KindJoinProfile, p.Name))
	}
	values := parameters(run, h, c)
	if err := addSecrets(values, w, secret); err != nil {
		return message{}, refusedBy(decision.From(err).Denied(object.KindHostRun, run.Name))
	}
	if w != nil {
		// check: ParamUndeclared,ParamInvalid: values beyond what the script's author wrote it for, which a host that reads no warrant would take
		if err := w.CheckParams(values, c.pin()); err != nil {
			return message{}, refusedBy(decision.From(err).Denied(object.KindHostRun, run.Name))
		}
	}
	params, err := envelope.EncodeParams(values)
	if err != nil {
		return message{}, refuse(string(decision.ParamInvalid), err.Error())
	}
	return message{
		envelope: envelope.Envelope{Phase: envelope.Phase(phase), RunID: runID, Params: params, Sig: []byte(p.Signatures[phase]), Script: []byte(p.Scripts[phase])},
		secrets:  secretValues(values, w),
		warrant:  w,
	}, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
