package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

// newStatement is what the commands that make a statement share.
type newStatement struct {
	statementSignOptions
	serial  number
	cluster string
	targets []string
	out     string
	force   bool
}

func (n *newStatement) register(cmd *cobra.Command) {
	n.flags(cmd)
	cmd.Flags().Var(&n.serial, "serial", "number of the statement, above that of the last of its kind (required)")
	cmd.Flags().StringVar(&n.cluster, "cluster", "", "id of the cluster that it is for")
	cmd.Flags().StringArrayVar(&n.targets, "target", nil, `hosts that it is for: "class LABEL", "host SHA256:…", or "any" (may be repeated)`)
	cmd.Flags().StringVarP(&n.out, "output", "o", "", "file to write; its signature goes beside it, to FILE.sig (required)")
	cmd.Flags().BoolVar(&n.force, "force", false, "replace the files of -o")
	required(cmd, "serial")
	required(cmd, "output")
}

// statement starts one of the kind.
func (n *newStatement) statement(c *cli, kind statement.Kind) *statement.Statement {
	return &statement.Statement{Kind: kind, Serial: int64(n.serial), Issued: c.now().Unix(), Cluster: n.cluster, Targets: n.targets}
}

// make checks a statement, signs it, and writes it with its signature, or nothing.
func (c *cli) makeStatement(n newStatement, s *statement.Statement) error {
	if err := outputFile(n.out); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return usage("%v", err)
	}
	text := s.Text()
	// What is signed must read back as what was meant.
	if _, err := statement.Parse(text); err != nil {
		return usage("%v", err)
	}
	all, err := c.signStatement(n.out, s, nil, n.statementSignOptions)
	if err != nil {
		return err
	}
	signature := []byte(strings.Join(all, ""))
	changes := []output.Change{{Path: n.out, Data: text}, {Path: n.out + ".sig", Data: signature}}
	for i := range changes {
		if changes[i].Old, err = existing(changes[i].Path, n.force); err != nil {
			return err
		}
	}
	if err := output.All(changes); err != nil {
		return undecided(err)
	}
	return nil
}

// existing gives what a file holds that may be replaced; nil where there is none.
func existing(path string, force bool) ([]byte, error) {
	if !force {
		_, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err == nil {
			err = fmt.Errorf("writing %q: it %w", path, output.ErrExists)
		}
		return nil, &failure{code: exitUsage, err: err, hint: "give another file to -o, or --force to replace it"}
	}
	old, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, undecided(err)
	}
	return old, nil
}
