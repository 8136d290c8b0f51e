package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/fragment/policyfile"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

type importOptions struct {
	root, mode string
	clusters   []string
	version    number
	validFor   string
}

func (c *cli) policyImportCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a policy document of kubescape's trust-policy.signed.json",
		Long: `import prints the document of a trust policy with the classes of a trust-policy.signed.json, ready to be completed
and signed. With --root (kubescape's root key, PEM or an OpenSSH line) its signature is verified first. A file in mode
alert, or without a mode, needs --mode: this policy has no silent default. What cannot be carried over is named on
stderr.

A FILE that is a PEM public key is printed as the OpenSSH line of the same key.`,
		Example: `  hostwarrant policy import trust-policy.signed.json --root root.pub --cluster prod-1 --mode enforce > policy-document.yaml
  hostwarrant policy import root.pub > roots`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policyImport(args[0], o) },
	}
	cmd.Flags().StringVar(&o.root, "root", "", "kubescape's root public key, to verify the file with")
	cmd.Flags().StringVar(&o.mode, "mode", "", "enforce or warn; needed where the file does not say enforce")
	cmd.Flags().StringArrayVar(&o.clusters, "cluster", nil, "cluster the policy is for, ID or ID=URL (required for a policy, may be repeated)")
	cmd.Flags().Var(&o.version, "version", "version of the policy (default: the file's policyVersion, or 1)")
	offer(cmd, "mode", string(trustpolicy.Enforce), string(trustpolicy.Warn))
	cmd.Flags().StringVar(&o.validFor, "valid-for", "90d", "term of the policy, in days")
	return cmd
}

func (c *cli) policyImport(path string, o importOptions) error {
	text, err := c.read(path)
	if err != nil {
		return undecided(err)
	}
	if err := notPrivate(path, path, text); err != nil {
		return err
	}
	if isPEM(text) {
		return c.importRoot(path, text)
	}
	f, err := policyfile.Parse(text)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	if err := c.checkPolicyFile(path, f, o.root); err != nil {
		return err
	}
	document, err := c.importDocument(f.Policy, o)
	if err != nil {
		return err
	}
	p, err := trustpolicy.ReadUnverified(document)
	// check: PolicyMalformed: what is printed must be a document that our own readers take
	if err != nil {
		return refused(path, err)
	}
	c.warnOfAnyCluster(p)
	c.say("note", "not carried over: the signature (the roots sign the new document), and who signed when")
	c.say("note", "the document vouches for no phase script and allows no SSHHost until joinProfiles is filled in")
	return c.print(document)
}

// importRoot prints PEM public keys as OpenSSH lines.
func (c *cli) importRoot(path string, text []byte) error {
	roots, err := trustpolicy.ParseRoots(text)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	var b bytes.Buffer
	for _, key := range roots.Keys {
		if isDemoKey(key) {
			c.say("warning", "%s is kubescape's published demo root: everybody has its private half, and a policy in mode enforce is refused under it", ssh.FingerprintSHA256(key))
		}
		b.Write(ssh.MarshalAuthorizedKey(key))
	}
	return c.print(b.Bytes())
}

func isDemoKey(key ssh.PublicKey) bool {
	public, err := ecdsaKey(key)
	if err != nil {
		return false
	}
	print, err := fragment.Fingerprint(public)
	return err == nil && print == demoKey
}

// checkPolicyFile verifies a file with the root of --root, if there is one.
func (c *cli) checkPolicyFile(path string, f *policyfile.File, root string) error {
	if root == "" {
		c.say("warning", "%s is NOT VERIFIED: give kubescape's root key to --root", path)
		return nil
	}
	anchor, err := (&trust{roots: root}).anchor()
	if err != nil {
		return err
	}
	key, err := onlyRoot(anchor)
	if err != nil {
		return undecided(fmt.Errorf("--root %s: %w", root, err))
	}
	if err := f.Verify(key); err != nil {
		return refused(path, err)
	}
	c.warnOfDemoRoot(anchor)
	return nil
}

// importDocument writes the document.
func (c *cli) importDocument(p policyfile.Policy, o importOptions) ([]byte, error) {
	mode, err := importMode(p.Mode, o.mode)
	if err != nil {
		return nil, err
	}
	if len(o.clusters) == 0 {
		return nil, usage("--cluster is missing: name the cluster the policy is for, or say any")
	}
	if err := checkClusters(o.clusters); err != nil {
		return nil, err
	}
	named, err := readClusters(o.clusters, nil)
	if err != nil {
		return nil, err
	}
	clusters, err := named.yaml()
	if err != nil {
		return nil, err
	}
	term, err := parseTerm(o.validFor)
	if err != nil {
		return nil, err
	}
	version := max(int64(o.version), 1)
	if o.version == 0 && p.PolicyVersion > 0 {
		version = p.PolicyVersion
	}
	issued := c.now().UTC().Truncate(time.Second)
	for _, name := range sortedKeys(p.RuleClasses) {
		c.say("note", "ruleClasses.%s: rules that are switched off are refused; set mayDisable: true to allow them", shown(name))
	}
	return documentOf(p, documentTerms{version: version, clusters: clusters, issued: issued, expires: issued.Add(term), mode: mode}), nil
}

// documentTerms are what a policy document says and the other format does not.
type documentTerms struct {
	version         int64
	clusters        string // as clusterMap writes them
	issued, expires time.Time
	mode            trustpolicy.Mode
	mayDisable      bool
}

// documentOf writes the classes of a policy as a document.
func documentOf(p policyfile.Policy, t documentTerms) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "version: %d\nclusters: %s\nissued: %s\nexpires: %s\nmode: %s\n", t.version, t.clusters, documentTime(t.issued), documentTime(t.expires), t.mode)
	if t.mode == trustpolicy.Warn {
		fmt.Fprintf(&b, "warnUntil: %s\n", documentTime(t.issued.AddDate(0, 0, 30)))
	}
	b.WriteString("rootVersion: 1\njoinProfiles:\n  requireWarrant: true\n  signers: []\n")
	writeClasses(&b, "fragmentClasses", p.Classes, "")
	more := ""
	if t.mayDisable {
		more = "mayDisable: true"
	}
	writeClasses(&b, "ruleClasses", p.RuleClasses, more)
	writeClasses(&b, "bindingClasses", p.BindingClasses, "")
	return b.Bytes()
}

// checkClusters wants ids that a policy can name.
func checkClusters(clusters []string) error {
	for _, c := range clusters {
		id, _, _ := strings.Cut(c, "=")
		if _, err := warrant.ParseTarget("cluster " + id); err != nil && id != trustpolicy.AnyCluster {
			return usage("--cluster is ID or ID=URL, where an ID is [a-z0-9-], up to 63, not %.80q", c)
		}
	}
	return nil
}

func importMode(was, given string) (trustpolicy.Mode, error) {
	modes := []string{string(trustpolicy.Enforce), string(trustpolicy.Warn)}
	switch {
	case given != "" && !slices.Contains(modes, given):
		return "", usage("--mode is enforce or warn, not %.40q", given)
	case given != "":
		return trustpolicy.Mode(given), nil
	case was == policyfile.Enforce:
		return trustpolicy.Enforce, nil
	default:
		return "", usage("the file is in mode alert, or has none: say --mode enforce or --mode warn (for 30 days)")
	}
}

// parseTerm reads a number of days like 90d.
func parseTerm(text string) (time.Duration, error) {
	count, inDays := strings.CutSuffix(text, "d")
	n, err := parseNumber(count)
	if err != nil || !inDays || n < 1 || n > 3650 {
		return 0, usage("--valid-for is a number of days like 90d, not %.20q", text)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// writeClasses writes one class a line, each with one more field; null lists are left out.
func writeClasses[V any](b *bytes.Buffer, field string, classes map[string]V, more string) {
	if len(classes) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", field)
	for _, name := range sortedKeys(classes) {
		fmt.Fprintf(b, "  %s: %s\n", quoted(name), flow(classes[name], more))
	}
}

func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return `""` // a text always has a JSON form
	}
	return string(text)
}

// flow writes the fields of a class that are given, and one more.
func flow(class any, more string) string {
	raw := []byte(quoted(class))
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "{}"
	}
	var parts []string
	for _, name := range []string{"signers", "allowedSpecPaths", "allowedRuleIDs"} {
		if value, given := fields[name]; given && string(value) != "null" {
			parts = append(parts, fmt.Sprintf("%s: %s", name, value))
		}
	}
	if more != "" {
		parts = append(parts, more)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
