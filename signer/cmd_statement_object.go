package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

func (c *cli) statementObjectCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "object FILE",
		Short: "Print a signed statement as a HostStatement object",
		Long: `object prints the HostStatement that kubectl apply gives to a cluster, with the statement in FILE and its signatures
in FILE.sig. Nothing is verified: hostwarrant statement verify does that before, and the cluster after. A relay takes it
to every host that it is for.`,
		Example: `  hostwarrant statement object revoke-5.statement | kubectl apply -f -`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return c.statementObject(args[0], name) },
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the object (default KIND-SERIAL)")
	return cmd
}

func (c *cli) statementObject(path, name string) error {
	text, err := readFile(path)
	if err != nil {
		return undecided(err)
	}
	s, err := statement.Parse(text)
	if err != nil {
		return refused(path, err)
	}
	_, signatures, err := readSignatures(path)
	if err != nil {
		return err
	}
	if len(signatures) == 0 {
		return refused(path, decision.Errorf(decision.ThresholdNotMet, "nobody signed it").Try("hostwarrant statement sign "+path+" --key ROOT"))
	}
	if name == "" {
		name = fmt.Sprintf("%s-%d", s.Kind, s.Serial)
	}
	out, err := statementYAML(&object.HostStatement{Meta: object.Meta{Name: name}, Statement: string(text), Signatures: signatures})
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	return c.print(out)
}

// statementYAML writes a HostStatement object, and reads it again as the API server would.
func statementYAML(h *object.HostStatement) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s/v1alpha1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  statement: |\n%s  signatures:\n",
		object.GroupHostwarrant, object.KindHostStatement, h.Name, indentLines(h.Statement, 4))
	for _, s := range h.Signatures {
		fmt.Fprintf(&b, "  - |\n%s", indentLines(s, 4))
	}
	f, err := manifest.Read([]byte(b.String()))
	if err != nil {
		return nil, decision.Errorf(decision.Malformed, "%v", err)
	}
	objects, err := f.Objects()
	if err != nil || len(objects) != 1 {
		return nil, decision.Errorf(decision.Malformed, "%q is no name of an object", h.Name)
	}
	raw, err := objects[0].Node.JSON()
	if err != nil {
		return nil, decision.Errorf(decision.Malformed, "%v", err)
	}
	again, err := object.ParseHostStatement(raw)
	if err != nil {
		return nil, err
	}
	// check: BytesChanged: a statement that YAML carries differently would no longer match its signatures
	if again.Name != h.Name || again.Statement != h.Statement || !slices.Equal(again.Signatures, h.Signatures) {
		return nil, decision.Errorf(decision.BytesChanged, "it cannot be carried as a YAML block scalar").Try("sign it again, and end it with one newline")
	}
	return f.Data, nil
}
