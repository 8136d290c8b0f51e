package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// trust is what --root and --cluster say.
type trust struct{ roots, cluster string }

func (t *trust) flags(cmd *cobra.Command) {
	t.register(cmd, " (required)")
	required(cmd, "root")
}

func (t *trust) register(cmd *cobra.Command, must string) {
	cmd.Flags().StringVar(&t.roots, "root", "", "file of the root public keys (OpenSSH lines or PEM), or a roots statement"+must)
	cmd.Flags().StringVar(&t.cluster, "cluster", trustpolicy.AnyCluster, "id of the cluster to answer for, as its anchor names it")
}

// required panics for a flag that does not exist, which a test of any command finds.
func required(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err)
	}
}

func (t *trust) anchor() (verify.Anchor, error) {
	text, err := readPublic("--root", t.roots)
	if err != nil {
		return verify.Anchor{}, err
	}
	roots, err := trustpolicy.ParseRoots(text)
	if err != nil {
		return verify.Anchor{}, undecided(fmt.Errorf("reading --root %s: %w", t.roots, err))
	}
	return verify.Anchor{Roots: roots, ClusterID: t.cluster}, nil
}

// readPublic reads a file that a flag names and that holds what all may know. The likely mistake is the
// private half of a key.
func readPublic(flag, path string) ([]byte, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, undecided(fmt.Errorf("reading %s: %v", flag, err))
	}
	return text, notPrivate(flag+" "+path, path, text)
}

func notPrivate(what, path string, text []byte) error {
	if !bytes.Contains(text, []byte(" PRIVATE KEY-----")) {
		return nil
	}
	return &failure{
		code: exitUndecided, err: fmt.Errorf("%s is a private key, and a public one is wanted", what),
		hint: "give " + strings.TrimSuffix(path, ".key") + ".pub, and keep the private key where it signs",
	}
}

// readPolicy reads a TrustPolicy object, or a document with its signatures in FILE.sig.
func (c *cli) readPolicy(path string) (*object.TrustPolicy, error) {
	data, err := c.read(path)
	if err != nil {
		return nil, undecided(err)
	}
	return c.readPolicyBytes(path, data)
}

func (c *cli) readPolicyBytes(path string, data []byte) (*object.TrustPolicy, error) {
	if statement.Is(data) {
		return nil, &failure{
			code: exitUndecided, err: fmt.Errorf("%s is a statement, not a trust policy", path),
			hint: "hostwarrant statement verify " + path + " --root FILE",
		}
	}
	if isPolicyFile(data) {
		return nil, &failure{
			code: exitUndecided,
			err:  fmt.Errorf("%s is a trust policy of kubescape's reference, which judges fragments", path),
			hint: "hostwarrant policy import " + path + " makes a TrustPolicy document of it",
		}
	}
	if isDetached(data) {
		signatures, err := readFile(path + ".sig")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, undecided(err)
		}
		t := &object.TrustPolicy{Document: string(data), Signatures: blocks(string(signatures))}
		t.Kind, t.Name = object.KindTrustPolicy, object.TrustPolicyName
		return t, nil
	}
	f, err := manifest.Read(data)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %v", path, err))
	}
	_, o, err := onlyPolicy(f)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %w", path, err))
	}
	return parsePolicy(path, o)
}

// isPolicyFile tells kubescape's trust-policy.signed.json, whole or broken.
func isPolicyFile(data []byte) bool {
	var f struct {
		Policy struct {
			Classes json.RawMessage `json:"classes"`
		} `json:"policy"`
	}
	return json.Unmarshal(data, &f) == nil && f.Policy.Classes != nil
}

func parsePolicy(path string, o manifest.Object) (*object.TrustPolicy, error) {
	if err := o.Node.Check(); err != nil {
		return nil, undecided(fmt.Errorf("%s: %v", path, err))
	}
	raw, err := o.Node.JSON()
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %v", path, err))
	}
	t, err := object.ParseTrustPolicy(raw)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %w", path, err))
	}
	return t, nil
}

// onlyPolicy finds the one TrustPolicy of a file, and its number among the file's objects.
func onlyPolicy(f *manifest.File) (int, manifest.Object, error) {
	objects, err := f.Objects()
	if err != nil {
		return 0, manifest.Object{}, err
	}
	at := -1
	for i, o := range objects {
		if o.Kind != object.KindTrustPolicy || o.Group() != object.GroupHostwarrant {
			continue
		}
		if at >= 0 {
			return 0, manifest.Object{}, errors.New("holds more than one TrustPolicy")
		}
		at = i
	}
	if at < 0 {
		return 0, manifest.Object{}, decision.Errorf(decision.PolicyMalformed, "holds neither a TrustPolicy object nor a policy document").
			Try("hostwarrant init DIR writes one to start with")
	}
	return at, objects[at], nil
}

// snapshot loads the policy that objects are judged by. An expired one is no error here: the engine
// then refuses every object with PolicyExpired, as the cluster would.
func (c *cli) snapshot(path string, a verify.Anchor) (verify.Snapshot, error) {
	data, err := c.read(path)
	if err != nil {
		return verify.Snapshot{}, undecided(err)
	}
	if isPolicyFile(data) {
		return c.referenceSnapshot(path, data, a)
	}
	t, err := c.readPolicyBytes(path, data)
	if err != nil {
		return verify.Snapshot{}, err
	}
	return c.snapshotOf(path, t, a)
}

func (c *cli) snapshotOf(path string, t *object.TrustPolicy, a verify.Anchor) (verify.Snapshot, error) {
	now := c.now()
	signed := t.Signed()
	p, err := trustpolicy.Verify(signed, a.Roots, a.ClusterID, now)
	if err != nil && decision.From(err).Reason == decision.PolicyExpired {
		p, err = trustpolicy.Authenticate(signed, a.Roots)
	}
	if err != nil {
		return verify.Snapshot{}, notInForce(path, err)
	}
	if p.Mode(now) == trustpolicy.Warn {
		c.say("note", "the policy is in mode warn: the cluster admits what is refused here, relay and hosts do not run it")
	}
	return verify.Snapshot{Policy: p, ClusterID: a.ClusterID, Now: now}, nil
}

// notInForce says why a policy cannot be judged by.
func notInForce(path string, err error) error {
	e := decision.From(err)
	hint := offlineHint(e.Reason, e.Where, hintOf(err))
	return &failure{code: exitUndecided, err: fmt.Errorf("policy %s: %w", path, err), hint: hint}
}

// offlineHint words what to do about a policy for whoever calls a command: offline the likely mistakes are
// the name of the cluster and the roots. A fault at a place in the policy is none of them.
func offlineHint(reason decision.Reason, where, hint string) string {
	switch {
	case reason == decision.PolicyWrongCluster && where == "":
		return "give the id of the cluster to answer for with --cluster; hostwarrant inspect shows those of the policy"
	case reason == decision.PolicyUnsigned || reason == decision.ThresholdNotMet:
		return "check that --root holds the keys that signed, which hostwarrant inspect shows; else: " + hint
	}
	return hint
}
