//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

const (
	joinProfile = "join-example" // of examples/join
	nodeName    = "node-c"
	stolenRun   = "join-c"

	// stepLimit bounds what takes seconds, on a busy machine.
	stepLimit = time.Minute
)

// noNode says why no kubelet can join here, "" where one can.
func (s *story) noNode() string {
	switch {
	case s.cluster.External:
		return "a cluster of your own is not given a node that ends with the demonstration, nor need it reach a host in here"
	case !s.cluster.HasControllers():
		return "KUBEBUILDER_ASSETS has no kube-controller-manager, which signs the certificates of nodes"
	}
	return ""
}

// nodeSteps have a real kubelet join, and a thief not.
func (s *story) nodeSteps() []step {
	if s.noNode() != "" {
		return nil
	}
	return []step{
		{title: "Scripts that make a host a node (examples/join) are signed and admitted like any other", want: "serverside-applied", try: s.signJoin},
		{title: "They run on host-c with a token of its own. A thief takes it and is faster than kubelet: same node name, another key", want: "ProofFailed", fails: true, try: s.stealToken},
		{title: "The run of the stolen token failed; with the next one host-c joins", want: " Ready ", try: s.joinNode},
	}
}

// admitNodes makes the cluster one that hosts may join: docs/operations/join.md.
func (s *story) admitNodes(ctx context.Context) (err error) {
	if s.noNode() != "" {
		return nil
	}
	for _, bind := range []func(context.Context) error{s.product.BindBootstrappers, s.product.BindRenewals} {
		if err := bind(ctx); err != nil {
			return err
		}
	}
	if err := s.product.ListHostKey(ctx, namespace, s.hostC.Name, s.hostC.HostKey); err != nil {
		return err
	}
	if s.running.Minter, err = s.product.StartMinter(ctx); err != nil {
		return err
	}
	return s.running.Minter.Wait(ctx, "/readyz")
}

// signJoin signs a copy of examples/join and applies it.
func (s *story) signJoin(ctx context.Context) (answer, bool, error) {
	if err := os.CopyFS(filepath.Join(s.dir, "join"), os.DirFS(filepath.Join(s.lab.Root(), "examples", "join"))); err != nil {
		return answer{}, false, err
	}
	signed, refused, err := s.command(ctx, "hostwarrant", "sign", "join", "--key", "keys/signer", "--serial", "1", "--target", "class "+product.HostClass, "-o", "join.yaml")
	if err != nil || refused {
		return signed, refused, err
	}
	applied, refused, err := s.command(ctx, "kubectl", "apply", "--server-side", "-f", "join.yaml")
	applied.tried = signed.tried + " && " + applied.tried
	return applied, refused, err
}

// stealToken asks for a certificate with the token of a run that is under way.
func (s *story) stealToken(ctx context.Context) (answer, bool, error) {
	if a, refused, err := s.ask(ctx, stolenRun, s.hostC.Name, joinProfile, nodeName); err != nil || refused {
		return a, false, fmt.Errorf("asking for the join: %v %s", err, a.said)
	}
	value, err := s.tokenOf(ctx, stolenRun)
	if err != nil {
		return answer{}, false, err
	}
	thief, err := product.Bearer(s.cluster, value)
	if err != nil {
		return answer{}, false, err
	}
	key, err := product.NewKubeletKey()
	if err != nil {
		return answer{}, false, err
	}
	request, err := product.AskCertificate(ctx, thief, nodeName, key)
	if err != nil {
		return answer{}, false, err
	}
	id, _, _ := strings.Cut(value, ".")
	a := answer{tried: "kubectl --token=" + id + "... create -f a-request-for-system:node:" + nodeName + ".yaml"}
	a.said, err = s.decision(ctx, request.Name)
	return a, strings.HasPrefix(a.said, "Denied"), err
}

// tokenOf reads the token of a run, as whoever may read Secrets there, or has broken into host or relay.
func (s *story) tokenOf(ctx context.Context, run string) (value string, err error) {
	uid, refused, err := s.command(ctx, "kubectl", "-n", namespace, "get", "hostrun", run, "-o", "jsonpath={.metadata.uid}")
	if err != nil || refused {
		return "", fmt.Errorf("reading HostRun %s: %v %s", run, err, uid.said)
	}
	name := token.HandoverName(types.UID(uid.said))
	err = until(ctx, stepLimit, func() (bool, error) {
		secret, err := s.cluster.Client().CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err == nil {
			value = string(secret.Data["token"])
		}
		return true, err
	})
	if err != nil {
		return "", fmt.Errorf("waiting for the token of HostRun %s: %w", run, err)
	}
	return value, nil
}

// decision waits until somebody has decided about a certificate request.
func (s *story) decision(ctx context.Context, request string) (said string, err error) {
	err = until(ctx, stepLimit, func() (bool, error) {
		csr, err := s.cluster.Client().CertificatesV1().CertificateSigningRequests().Get(ctx, request, metav1.GetOptions{})
		if err != nil || len(csr.Status.Conditions) == 0 {
			return false, err
		}
		c := csr.Status.Conditions[0]
		said = string(c.Type) + " " + c.Reason + ": " + c.Message
		return true, nil
	})
	if err != nil {
		return "", fmt.Errorf("waiting for a word on %s: %w", request, err)
	}
	return said, nil
}

// joinNode waits for the end of the run whose token was stolen, has the host join by another one, and shows the node.
func (s *story) joinNode(ctx context.Context) (answer, bool, error) {
	said, failed, err := s.end(ctx, stolenRun)
	if err != nil || !failed {
		return answer{}, false, fmt.Errorf("the run of a stolen token ended otherwise: %v %s", err, said)
	}
	joined, refused, err := s.run(ctx, stolenRun+"-again", s.hostC.Name, joinProfile, nodeName)
	if err != nil || refused {
		return joined, refused, err
	}
	var nodes answer
	err = until(ctx, stepLimit, func() (bool, error) {
		nodes, refused, err = s.command(ctx, "kubectl", "get", "nodes")
		return strings.Contains(nodes.said, " Ready ") || refused, err
	})
	nodes.tried = joined.tried + " && " + nodes.tried
	nodes.said = said + "\n        " + joined.said + "\n        " + nodes.said
	return nodes, refused, err
}
