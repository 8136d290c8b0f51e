package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// policyFiles are the forms in which --policy takes a trust policy.
const policyFiles = "TrustPolicy object, its document with signatures in FILE.sig, or kubescape's trust-policy.signed.json"

func (c *cli) verifyCommand() *cobra.Command {
	var t trust
	var policy, format, profile, namespace string
	var forUpstreamShim bool
	cmd := &cobra.Command{
		Use:   "verify PATH...",
		Short: "Say what the cluster would say about objects in files",
		Long: `verify judges SSHJoinProfile, SSHHost, SSHNodeClass, HostRun and TrustPolicy objects, and fragments (ContainerProfile, Rules,
RuntimeRuleAlertBinding, SeccompProfile), by a signed trust policy, with the cluster's own rules and words: what stands behind "denied the request: " when kubectl apply is refused is what verify
prints. Each object is judged beside the others that are given: give a node class with its profile, a run with its host.
What only the cluster knows, its ledger and its nodes, is not asked here.

What a waiver, an unguarded profile or a raw host of the policy excuses is "excused", with a warning that says until when.

PATH is a YAML or JSON file of one or more objects (lists too), "-" for stdin, or a directory: of such files at any
depth, or of phase scripts with detached signatures (join.sh and join.sh.sig). Other kinds are named on stderr and
skipped. Text that could be read in two ways (duplicate keys, aliases, anchors) is refused.

Hosts with karpenter-provider-ssh's own shim take a script from any one signer of their list: --for-upstream-shim names
where a profile, or a policy among the paths, relies on more than that.

Where bytes were changed, put the signed source beside what a tool made of it: the first byte that differs is named.

Exit status: 0 all verified, 1 any refused, 2 wrong usage, 3 nothing to verify, or it could not be decided.`,
		Example: `  hostwarrant verify profile.yaml --policy keys/trust-policy.yaml --root keys/root.pub
  helm template chart | hostwarrant verify - scripts/ --policy policy.yaml --root root.pub
  kubectl get sshjoinprofiles -o yaml | hostwarrant verify - --policy policy.yaml --root root.pub --cluster prod-1 -o json
  hostwarrant verify fragments/ --policy trust-policy.signed.json --root root.pub`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			if !slices.Contains([]string{"text", "json", "sarif"}, format) {
				return usage("-o takes text, json or sarif, not %q", format)
			}
			anchor, err := t.anchor()
			if err != nil {
				return err
			}
			snapshot, err := c.snapshot(policy, anchor)
			if err != nil {
				return err
			}
			snapshot.ForUpstreamShim = forUpstreamShim
			return c.verify(&judge{c: c, anchor: anchor, snapshot: snapshot, profile: profile, namespace: namespace}, paths, format)
		},
	}
	t.flags(cmd)
	cmd.Flags().StringVar(&policy, "policy", "", policyFiles+" (required)")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, json or sarif")
	cmd.Flags().StringVar(&profile, "profile", "", "profile name of a directory of scripts (default: the directory's own name)")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of objects that name none, as in kubectl")
	cmd.Flags().BoolVar(&forUpstreamShim, "for-upstream-shim", false, "warn of what hosts with karpenter-provider-ssh's shim do not hold: scopes of signers, and thresholds")
	required(cmd, "policy")
	return cmd
}

func (c *cli) verify(j *judge, paths []string, format string) error {
	inputs, err := c.gather(paths)
	if err != nil {
		return err
	}
	j.snapshot.Stored = j.stored(inputs)
	var all []verdict
	shown := c.progress("verified", len(inputs))
	var held holding
	for i, in := range inputs {
		found := j.input(in)
		held.take(in, len(found))
		all = append(all, found...)
		shown.step(i + 1)
	}
	shown.end()
	explain(all)
	if err := c.printVerdicts(all, format); err != nil {
		return err
	}
	for _, v := range all {
		if !v.Decision.Allowed() {
			return &failure{code: exitRefused}
		}
	}
	return held.missing(paths, "verify", "give files or directories that hold "+strings.Join(guardedKinds(), ", ")+" objects, or phase scripts")
}

// row is a verdict in JSON (docs/cli.md).
type row struct {
	Path     string   `json:"path"`
	Document string   `json:"document,omitempty"`
	Line     int      `json:"line,omitempty"`
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	Outcome  string   `json:"outcome"`
	Reason   string   `json:"reason"`
	Where    string   `json:"where,omitempty"`
	What     string   `json:"what,omitempty"`
	Hint     string   `json:"hint,omitempty"`
	Message  string   `json:"message"`
	Details  []string `json:"details,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func (c *cli) printVerdicts(all []verdict, format string) error {
	for _, v := range all {
		for _, w := range v.Decision.Warnings {
			c.say("warning", "%s: %s", place(v.Path, v.Document), w)
		}
	}
	if format == "sarif" {
		return c.printSARIF(all)
	}
	if format == "json" {
		rows := []row{}
		for _, v := range all {
			d := v.Decision
			rows = append(rows, row{
				v.Path, v.Document, v.Line, d.Kind, d.Name, d.Outcome.String(), string(d.Reason), d.Where, d.What, d.Hint, d.Message(), v.Details, d.Warnings,
			})
		}
		return c.printJSON(rows)
	}
	for _, v := range all {
		word := "refused"
		switch {
		case v.Decision.Allowed() && v.Decision.Reason != decision.Verified:
			word = "excused"
		case v.Decision.Allowed():
			word = "verified"
		}
		if err := c.print([]byte(fmt.Sprintf("%s: %s: %s\n", place(v.Path, v.Document), word, v.Decision.Message()))); err != nil {
			return err
		}
		for _, detail := range v.Details {
			c.say("note", "%s: %s", place(v.Path, v.Document), detail)
		}
	}
	return nil
}

func (c *cli) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return undecided(fmt.Errorf("writing JSON: %v", err))
	}
	return c.print(append(text, '\n'))
}
