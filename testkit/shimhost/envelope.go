package shimhost

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// Warrant is a good one for this host; the same in every call.
func (h *Host) Warrant(profile string, phase script.Phase, serial int64) *warrant.Warrant {
	param := func(name string, required, secret bool, kind, value string) warrant.Param {
		return warrant.Param{Name: name, Required: required, Secret: secret, Matcher: warrant.Matcher{Kind: kind, Value: value}}
	}
	return &warrant.Warrant{
		Profile: profile, Phase: phase, Serial: serial, HasNotBefore: true,
		NotBefore: h.Made.Add(-time.Hour).Unix(), NotAfter: h.Made.Add(30 * 24 * time.Hour).Unix(),
		Targets: []warrant.Target{{Kind: warrant.TargetClass, Value: Class}, {Kind: warrant.TargetCluster, Value: Cluster}},
		Params: []warrant.Param{
			param("KPSSH_NODE_NAME", true, false, warrant.MatchType, "dns1123"),
			param("KPSSH_BOOTSTRAP_TOKEN", true, true, warrant.MatchRE, "[a-z0-9]{6}[.][a-z0-9]{16}"),
			param("KPSSH_VAR_clusterDNS", false, false, warrant.MatchType, "ip"),
			param("KPSSH_VAR_runtime", false, false, warrant.MatchEnum, "containerd crio"),
		},
		Timeout: 300,
	}
}

// Params are what a relay sends with a script of Warrant.
func Params() map[string]string {
	return map[string]string{
		warrant.ClusterEndpoint: Endpoint,
		warrant.ClusterCA:       base64.StdEncoding.EncodeToString(CA()),
		"KPSSH_BOOTSTRAP_TOKEN": "abcdef.0123456789abcdef",
		"KPSSH_NODE_NAME":       "node-1.pool.example.org",
		"KPSSH_PROVIDER_ID":     "kpssh://pool/node-1",
		"KPSSH_NODE_LABELS":     "node.kubernetes.io/pool=pool,karpenter.sh/nodepool=default",
		"KPSSH_TAINTS":          "karpenter.sh/unregistered:NoExecute",
		"KPSSH_HOST_ADDRESS":    "192.0.2.77",
		"KPSSH_NODE_ADDRESS":    "192.0.2.77",
		"KPSSH_VAR_clusterDNS":  "10.96.0.10",
		"KPSSH_VAR_runtime":     "containerd",
	}
}

// Script is a bash script of size bytes that prints what it got, with w, or without a
// warrant where w is nil.
func Script(size int, w *warrant.Warrant) ([]byte, error) {
	text := []byte("#!/usr/bin/env bash\nset -euo pipefail\necho \"joined $KPSSH_NODE_NAME\"\n")
	if w != nil {
		var err error
		if text, err = warrant.Set(text, w); err != nil {
			return nil, err
		}
	}
	if len(text) > size {
		return nil, fmt.Errorf("a script of %d bytes is too short for its warrant", size)
	}
	const line = "# 456789 123456789 123456789 123456789 123456789 123456789 123456789\n"
	text = append(text, strings.Repeat(line, size/len(line)+1)...)
	text = text[:size]
	text[len(text)-1] = '\n'
	return text, nil
}

// Sign signs as the host's signer.
func (h *Host) Sign(text []byte) ([]byte, error) {
	return sshsig.Sign(rand.Reader, h.Signer, "kpssh", text)
}

// Envelope is what a relay sends to have a script run, signed by the host's signer. An
// empty id is drawn.
func (h *Host) Envelope(phase script.Phase, id envelope.RunID, text []byte, params map[string]string) ([]byte, error) {
	sig, err := h.Sign(text)
	if err != nil {
		return nil, err
	}
	block, err := envelope.EncodeParams(params)
	if err != nil {
		return nil, err
	}
	if id == "" {
		if id, err = envelope.NewRunID(rand.Reader); err != nil {
			return nil, err
		}
	}
	return envelope.Envelope{Phase: envelope.Phase(phase), RunID: id, Params: block, Sig: sig, Script: text}.Encode()
}
