package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

type packOptions struct {
	links []string
	out   string
	force bool
}

func (c *cli) policyPackCommand() *cobra.Command {
	var o packOptions
	cmd := &cobra.Command{
		Use:   "pack DOCUMENT",
		Short: "Make a TrustPolicy object of a document, its signatures and its root chain",
		Long: `pack prints the TrustPolicy object of a bare document and the signatures in DOCUMENT.sig, ready to apply.

After the roots were replaced, give each roots statement since the anchor's to --root-link, the oldest first; its
signatures are in its own .sig file. Nothing is verified here: hostwarrant policy verify does that with the result.`,
		Example: `  hostwarrant policy pack policy-document.yaml --root-link roots-2.statement --root-link roots-3.statement -o trust-policy.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return c.policyPack(args[0], o) },
	}
	cmd.Flags().StringArrayVar(&o.links, "root-link", nil, "roots statement that leads from the anchor's roots to those that signed (may be repeated)")
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "write this new file instead of stdout")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace the file of -o")
	return cmd
}

func (c *cli) policyPack(path string, o packOptions) error {
	if err := outputFile(o.out); err != nil {
		return err
	}
	data, err := c.read(path)
	if err != nil {
		return undecided(err)
	}
	if !isDetached(data) {
		return stuck("give the text that stands under spec.document of a TrustPolicy; one that is an object needs no packing: kubectl apply -f FILE", "%s is not a bare policy document", path)
	}
	t, err := c.readPolicyBytes(path, data)
	if err != nil {
		return err
	}
	if len(t.Signatures) == 0 {
		return &failure{code: exitUndecided, err: fmt.Errorf("%s.sig holds no signature", path), hint: "hostwarrant policy sign -i " + path + " --key ROOT"}
	}
	for _, link := range o.links {
		signed, err := readLink(link)
		if err != nil {
			return err
		}
		t.RootChain = append(t.RootChain, object.RootLink{Document: string(signed.Text), Signatures: signed.Signatures})
	}
	text, err := policyYAML(t)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	// One that does not read is for verify to refuse.
	if p, err := trustpolicy.ReadUnverified([]byte(t.Document)); err == nil {
		c.warnOfAnyCluster(p)
	}
	if o.out != "" {
		return writeOut(o.out, text, o.force)
	}
	return c.print(text)
}

// readLink reads a roots statement with its signatures.
func readLink(path string) (statement.Signed, error) {
	text, err := readFile(path)
	if err != nil {
		return statement.Signed{}, undecided(err)
	}
	if s, err := statement.Parse(text); err != nil || s.Kind != statement.KindRoots {
		return statement.Signed{}, stuck("hostwarrant statement sign roots makes one; hostwarrant inspect FILE tells what this one is", "%s is not a roots statement", path)
	}
	_, signatures, err := readSignatures(path)
	return statement.Signed{Text: text, Signatures: signatures}, err
}

// policyYAML writes a TrustPolicy object, and reads it again as the API server would.
func policyYAML(t *object.TrustPolicy) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s/v1alpha1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  document: |\n%s  signatures:\n",
		object.GroupHostwarrant, object.KindTrustPolicy, object.TrustPolicyName, indentLines(t.Document, 4))
	for _, s := range t.Signatures {
		fmt.Fprintf(&b, "  - |\n%s", indentLines(s, 4))
	}
	if len(t.RootChain) > 0 {
		b.WriteString("  rootChain:\n")
	}
	for _, link := range t.RootChain {
		fmt.Fprintf(&b, "  - document: |\n%s    signatures:\n", indentLines(link.Document, 6))
		for _, s := range link.Signatures {
			fmt.Fprintf(&b, "    - |\n%s", indentLines(s, 6))
		}
	}
	f, err := manifest.Read([]byte(b.String()))
	if err != nil {
		return nil, decision.Errorf(decision.Malformed, "%v", err)
	}
	_, o, err := onlyPolicy(f)
	if err != nil {
		return nil, err
	}
	again, err := parsePolicy("the object", o)
	if err != nil {
		return nil, err
	}
	same := again.Document == t.Document && slices.Equal(again.Signatures, t.Signatures) &&
		slices.EqualFunc(again.RootChain, t.RootChain, func(a, b object.RootLink) bool {
			return a.Document == b.Document && slices.Equal(a.Signatures, b.Signatures)
		})
	// check: BytesChanged: a document that YAML carries differently would no longer match its signatures
	if !same {
		return nil, decision.Errorf(decision.BytesChanged, "the document cannot be carried as a YAML block scalar").
			Try("end it with one newline, and take CR, NUL and leading spaces out")
	}
	return f.Data, nil
}
