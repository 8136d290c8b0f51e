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
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// defaultShim is what an SSHHost without shimCommand means.
const defaultShim = "/opt/kpssh/kpssh-shim"

// Target says where the host is and which keys it and the relay have, by the host's Secret.
func Target(h *object.Host, secret map[string][]byte) (transport.Target, *refusal) {
	pinIn := fmt.Sprintf("Secret %q, knownHost", h.SecretName)
	pin, err := transport.ParsePin(secret["knownHost"])
	if err != nil {
		return transport.Target{}, keyRefusal(err, pinIn)
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
		User:    h.User, Login: login, Pin: pin, PinIn: pinIn, Command: command,
	}, nil
}

// message is what a judged run sends, and what must not show of it.
type message struct {
	envelope envelope.Envelope
	secrets  []string
	warrant  *warrant.Warrant // nil: the script has none
}

// handed is what a run is given from Secrets: the values of spec.secretRef, and its bootstrap token.
type handed struct {
	secret map[string][]byte
	token  string
}

// order writes the message of a judged run.
func order(run *v1alpha1.HostRun, h *object.Host, p *object.JoinProfile, c judge.Cluster, given handed, runID envelope.RunID) (message, *refusal) {
	if probes(run) {
		return message{envelope: envelope.Envelope{Phase: envelope.PhaseProbe, RunID: runID}}, nil
	}
	phase := script.Phase(run.Spec.Phase)
	w, err := warrant.Find([]byte(p.Scripts[phase]))
	if err != nil {
		return message{}, judge.RefusedBy(decision.From(err).Denied(object.KindJoinProfile, p.Name))
	}
	values := parameters(run, h, c)
	values[paramToken] = given.token
	if err := addSecrets(values, w, given.secret); err != nil {
		return message{}, judge.RefusedBy(decision.From(err).Denied(object.KindHostRun, run.Name))
	}
	if w != nil {
		// check: ParamUndeclared,ParamInvalid: values beyond what the script's author wrote it for, which a host that reads no warrant would take
		if err := w.CheckParams(values, c.Pin()); err != nil {
			return message{}, judge.RefusedBy(decision.From(err).Denied(object.KindHostRun, run.Name))
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
