package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/signer/keyring"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

// policyTerm is how long the first policy is good for.
const policyTerm = 90 * 24 * time.Hour

type initOptions struct {
	clusters, authorities, namespaces []string
}

func (c *cli) initCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make keys and a signed trust policy to start with",
		Long: `init writes a root key, a signer key and a signed TrustPolicy, ready to apply, into a new or empty directory:
root, root.pub, signer, signer.pub, trust-policy.yaml. The keys are Ed25519 without a passphrase: good for trying
things out. Keep the root of a real cluster offline, and better on a FIDO2 token.

The policy is for any cluster unless --cluster names some, is good for 90 days, enforces, wants one signature and a
warrant in each phase, and allows hosts with user kpssh, port 22 and the shim at /opt/kpssh/kpssh-shim: those of class
default, in the namespace default unless --namespace names others, with any profile and under any node name. A new host
takes any serial of a profile as its first.

To set hosts up, the policy must pin the cluster that they may join: by the URL of its API server and, with --cluster-ca,
by its CA. FILE is the bundle that node classes carry as caBundle, byte for byte: the decoded certificate-authority-data
of a kubeconfig.`,
		Example: `  hostwarrant init keys
  hostwarrant init keys --cluster prod-1=https://10.0.0.5:6443
  hostwarrant init keys --cluster prod-1=https://10.0.0.5:6443 --cluster-ca prod-1=ca.crt`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.init(args[0], o) },
	}
	cmd.Flags().StringArrayVar(&o.clusters, "cluster", nil, "cluster id, with the URL of its API server if given: ID[=URL] (may be repeated; default any)")
	cmd.Flags().StringArrayVar(&o.authorities, "cluster-ca", nil, "file with the CA certificates of such a cluster in PEM: ID=FILE (may be repeated)")
	cmd.Flags().StringArrayVarP(&o.namespaces, "namespace", "n", []string{"default"}, "namespace that may hold hosts (may be repeated)")
	return cmd
}

func (c *cli) init(dir string, o initOptions) error {
	clusters, err := readClusters(o.clusters, o.authorities)
	if err != nil {
		return err
	}
	root, err := keyring.Generate(c.rand, "hostwarrant root (for trying out, no passphrase)")
	if err != nil {
		return undecided(err)
	}
	signer, err := keyring.Generate(c.rand, "hostwarrant signer (for trying out, no passphrase)")
	if err != nil {
		return undecided(err)
	}
	expires := c.now().UTC().Truncate(time.Second).Add(policyTerm)
	policy, err := c.firstPolicy(root, signer, clusters, o.namespaces, expires)
	if err != nil {
		return err
	}
	files := []output.Change{
		{Path: "root", Data: root.Private, Mode: 0o600},
		{Path: "root.pub", Data: []byte(root.Public + "\n")},
		{Path: "signer", Data: signer.Private, Mode: 0o600},
		{Path: "signer.pub", Data: []byte(signer.Public + "\n")},
		{Path: "trust-policy.yaml", Data: policy},
	}
	for i := range files {
		files[i].Path = filepath.Join(dir, files[i].Path)
	}
	made, err := newDirectory(dir)
	if err != nil {
		return err
	}
	if err := output.All(files); err != nil {
		if made {
			err = errors.Join(err, os.Remove(dir))
		}
		return undecided(err)
	}
	return c.explain(dir, root, signer, clusters, o.namespaces, expires)
}

// newDirectory makes a directory, or takes an empty one.
func newDirectory(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made, err = true, os.MkdirAll(dir, 0o700)
	case err == nil && len(entries) > 0:
		return false, &failure{code: exitUndecided, err: fmt.Errorf("%q is not empty", dir), hint: "give a new directory to init"}
	}
	if err != nil {
		return false, undecided(fmt.Errorf("making %q: %v", dir, err))
	}
	return made, nil
}

// firstPolicy writes the TrustPolicy object, signed by the new root.
func (c *cli) firstPolicy(root, signer *keyring.Pair, clusters namedClusters, namespaces []string, expires time.Time) ([]byte, error) {
	names, err := clusters.yaml()
	if err != nil {
		return nil, err
	}
	key := strings.Join(strings.Fields(signer.Public)[:2], " ")
	document := fmt.Sprintf(`version: 1
clusters: %s
issued: "%s"
expires: "%s"
mode: enforce
rootVersion: 1
joinProfiles:
  signers:
  - {name: signer, key: "%s"}
  thresholds: {install: 1, join: 1, leave: 1, uninstall: 1}
  requireWarrant: true
  maxValidity: 90d
  hosts:
    users: [kpssh]
    ports: [22]
    shimCommands: [/opt/kpssh/kpssh-shim]
    profiles: {default: ["*"]}
    namespaces:
%sfloors: {"*": 0}
`, names, stamp(expires.Add(-policyTerm)), stamp(expires), key, hostNamespaces(namespaces))
	signature, err := sshsig.Sign(c.rand, root.Signer, trustpolicy.Namespace, []byte(document))
	if err != nil {
		return nil, refused("signing the policy", err)
	}
	roots, err := trustpolicy.ParseRoots([]byte(root.Public))
	if err != nil {
		return nil, refused("reading the new root", err)
	}
	// A cluster id that a policy cannot hold is found here, before anything is written.
	s := trustpolicy.Signed{Document: []byte(document), Signatures: []string{string(signature)}}
	if _, err := trustpolicy.Verify(s, roots, clusters.id(), c.now()); err != nil {
		return nil, usage("%v", err)
	}
	return []byte(fmt.Sprintf("apiVersion: %s/v1alpha1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  document: |\n%s  signatures:\n  - |\n%s",
		object.GroupHostwarrant, object.KindTrustPolicy, object.TrustPolicyName, indentLines(document, 4), indentLines(string(signature), 4))), nil
}

// hostNamespaces writes one line for each namespace.
func hostNamespaces(namespaces []string) string {
	var b strings.Builder
	for _, name := range namespaces {
		fmt.Fprintf(&b, "      %q: {classes: [default], nodeNames: [\"*\"]}\n", name)
	}
	return b.String()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func indentLines(text string, n int) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString(strings.Repeat(" ", n) + line + "\n")
	}
	return b.String()
}

func (c *cli) explain(dir string, root, signer *keyring.Pair, clusters namedClusters, namespaces []string, expires time.Time) error {
	text := fmt.Sprintf(`wrote %[1]s: root, root.pub, signer, signer.pub, trust-policy.yaml
root    %[2]s  (no passphrase: for trying out)
signer  %[3]s  (no passphrase: for trying out)
policy  version 1, for %[4]s, mode enforce, good until %[5]s, one signature and a warrant in each phase
        hosts: user kpssh, port 22, shim /opt/kpssh/kpssh-shim, of class default in %[10]s,
        any profile, any node name; a new host takes any serial first
%[11]snext    hostwarrant sign -i profile.yaml --key %[6]s --serial 1 --target "class default"
        hostwarrant verify profile.yaml --policy %[7]s --root %[8]s%[9]s
        kubectl apply -f %[7]s
`, dir, sshsig.Fingerprint(root.Signer.PublicKey()), sshsig.Fingerprint(signer.Signer.PublicKey()), clusters.scope(), stamp(expires),
		filepath.Join(dir, "signer"), filepath.Join(dir, "trust-policy.yaml"), filepath.Join(dir, "root.pub"), clusters.flag(), strings.Join(namespaces, ", "), clusters.hosts())
	return c.print([]byte(text))
}
