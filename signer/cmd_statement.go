package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

func (c *cli) statementCommand() *cobra.Command {
	return group("statement", "Make, sign and verify root statements",
		`  hostwarrant statement sign roots --keys new-roots.pub --threshold 2 --serial 2 --cluster prod-1 --key root-1 -o roots-2.statement
  hostwarrant statement sign roots-2.statement --key root-2
  hostwarrant statement verify roots-2.statement --root roots.pub`,
		c.statementSignCommand(), c.statementVerifyCommand(), c.statementObjectCommand())
}

type statementSignOptions struct {
	key, roots string
	replace    bool
	known      *trustpolicy.Roots // those that signed the policy which says it; nil where none does
}

func (o *statementSignOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.key, "key", "", "private root key file, or the .pub file of a key in ssh-agent (required)")
	required(cmd, "key")
}

func (c *cli) statementSignCommand() *cobra.Command {
	var o statementSignOptions
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Make a statement, or add a root's signature to one",
		Long: `sign adds the signature of a root key to the statement in FILE, in FILE.sig. Where several roots sign, each does so on
its own machine, in any order: pass FILE and FILE.sig on. A roots statement wants the old generation's threshold and
the new one's. With --root, a key that is none of the roots, old or newly named, is refused before it signs. A signature
by another key that does not cover FILE, because it was edited since, is an error; --replace drops such signatures.

The commands below it each make a statement of one kind and sign it first.`,
		Example: `  hostwarrant statement sign roots-2.statement --key root-2 --root roots.pub`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return c.statementSign(args[0], o) },
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.roots, "root", "", "file of the root public keys, or a roots statement: refuse a --key that is none of them")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "drop the signatures of other keys that do not cover FILE")
	cmd.AddCommand(c.statementRootsCommand(), c.statementSignersCommand(), c.statementRevokeCommand(), c.statementFloorCommand(), c.statementResetCommand())
	return cmd
}

func (c *cli) statementSign(path string, o statementSignOptions) error {
	if path == "-" {
		return usage("a statement's signatures stand beside it: give a file, not stdin")
	}
	text, err := readFile(path)
	if err != nil {
		return undecided(err)
	}
	s, err := statement.Parse(text)
	if err != nil {
		return refused(path, err)
	}
	old, have, err := readSignatures(path)
	if err != nil {
		return err
	}
	all, err := c.signStatement(path, s, have, o)
	if err != nil {
		return err
	}
	if err := output.All([]output.Change{{Path: path + ".sig", Old: old, Data: []byte(strings.Join(all, ""))}}); err != nil {
		return undecided(err)
	}
	return nil
}

// signStatement gives the signatures of a statement with that of the key.
func (c *cli) signStatement(path string, s *statement.Statement, have []string, o statementSignOptions) (all []string, err error) {
	key, closeAll, err := c.loadRoot(o.key)
	defer closeAll(&err)
	if err != nil {
		return nil, err
	}
	roots := o.known
	if o.roots != "" {
		anchor, err := (&trust{roots: o.roots}).anchor()
		if err != nil {
			return nil, err
		}
		roots = anchor.Roots
	}
	if roots != nil {
		if err := oneOf(roots, s, key.PublicKey()); err != nil {
			return nil, refused(path, err)
		}
	}
	signatures, err := c.addSignature(statement.Namespace, s.Text(), have, key, o.replace)
	if err != nil {
		return nil, refused(path, err)
	}
	if roots == nil {
		c.sayUnchecked(key.PublicKey(), "hostwarrant statement verify "+path+" --root FILE checks it")
	}
	return signatures.all, nil
}

// oneOf wants the key to be one of the roots, or of those that the statement names.
func oneOf(roots *trustpolicy.Roots, s *statement.Statement, key ssh.PublicKey) error {
	current := statement.Roots{Keys: roots.Keys}
	isNew := s.Roots != nil && s.Roots.Among(key)
	// check: SignerUnknown: a signature by a key that is no root counts for nothing, and looks like one that does
	if !current.Among(key) && !isNew {
		return decision.Errorf(decision.SignerUnknown, "%s is none of the roots", sshsig.Fingerprint(key)).Try("sign with a root key")
	}
	return nil
}

func (c *cli) statementVerifyCommand() *cobra.Command {
	var t trust
	var links []string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify a root statement with the root keys",
		Long: `verify says whether enough root keys signed the statement in FILE, with its signatures in FILE.sig. For a roots
statement the keys of --root are the generation before it; it must have signed, and the newly named one too.

--root-link leads from older roots to those that signed, as in a policy's rootChain: each link must be in time, and for
the whole of the cluster, that of --cluster or else of the statement. With --cluster, a statement for another cluster is
refused. Whether it is newer than what a host knows, only the host can say.`,
		Example: `  hostwarrant statement verify roots-2.statement --root roots.pub --cluster prod-1
  hostwarrant statement verify revoke-5.statement --root roots.pub --root-link roots-2.statement`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.statementVerify(args[0], t, links) },
	}
	cmd.Flags().StringVar(&t.roots, "root", "", "file of the root public keys (OpenSSH lines or PEM), or a roots statement (required)")
	cmd.Flags().StringVar(&t.cluster, "cluster", "", "id of the cluster that the statement must be for")
	cmd.Flags().StringArrayVar(&links, "root-link", nil, "roots statement that leads from --root to the roots that signed (may be repeated)")
	required(cmd, "root")
	return cmd
}

func (c *cli) statementVerify(path string, t trust, linkPaths []string) error {
	anchor, err := t.anchor()
	if err != nil {
		return err
	}
	var chain []statement.Signed
	for _, link := range linkPaths {
		signed, err := readLink(link)
		if err != nil {
			return err
		}
		chain = append(chain, signed)
	}
	text, err := readFile(path)
	if err != nil {
		return undecided(err)
	}
	_, signatures, err := readSignatures(path)
	if err != nil {
		return err
	}
	d := c.judgeStatement(filepath.Base(path), statement.Signed{Text: text, Signatures: signatures}, chain, anchor.Roots, t.cluster)
	if !d.Allowed() {
		d.Hint = offlineHint(d.Reason, d.Where, d.Hint)
	}
	if err := c.printVerdicts([]verdict{{Path: path, Decision: d}}, "text"); err != nil {
		return err
	}
	if !d.Allowed() {
		return &failure{code: exitRefused}
	}
	return nil
}

// judgeStatement decides as a host of the cluster would, but for what only the host remembers.
func (c *cli) judgeStatement(name string, signed statement.Signed, chain []statement.Signed, anchor *trustpolicy.Roots, cluster string) decision.Decision {
	const kind = "Statement"
	// check: StatementRejected: what is no statement has no signatures to speak of
	if !statement.Is(signed.Text) {
		return decision.Errorf(decision.StatementRejected, "is no statement: its first line does not say so").
			Try("a trust policy is verified with hostwarrant policy verify").Denied(kind, name)
	}
	roots, err := anchor.FollowFor(chain, readerOf(signed.Text, cluster), c.now())
	if err != nil {
		return decision.From(err).Denied(kind, name)
	}
	s, err := statement.Verify(signed, statement.Roots{Threshold: roots.Threshold, Keys: roots.Keys}, c.now())
	if err != nil {
		return decision.From(err).Denied(kind, name)
	}
	// check: StatementRejected: roots follow one by one
	if s.Kind == statement.KindRoots && s.Serial != int64(roots.Version)+1 {
		return decision.Errorf(decision.StatementRejected, "root version %d does not follow %d", s.Serial, roots.Version).
			Try("give the roots before it to --root, or each link to --root-link").Denied(kind, name)
	}
	// check: StatementRejected: a statement for another cluster must not pass for one of this
	if cluster != "" && s.Cluster != "" && s.Cluster != cluster {
		return decision.Errorf(decision.StatementRejected, "is for cluster %s, not %.80s", s.Cluster, cluster).
			Try("give the id of the cluster to answer for with --cluster").Denied(kind, name)
	}
	return decision.Admit(kind, name, fmt.Sprintf("%s, serial %d, %s", s.Kind, s.Serial, placeOf(s)))
}

// readerOf is the cluster to answer for: the one that is given, else the one that the statement names.
func readerOf(text []byte, cluster string) string {
	if s, err := statement.Parse(text); cluster == "" && err == nil {
		return s.Cluster
	}
	return cluster
}

func placeOf(s *statement.Statement) string {
	var parts []string
	if s.Cluster != "" {
		parts = append(parts, "cluster "+s.Cluster)
	}
	for _, target := range s.Targets {
		parts = append(parts, "target "+target)
	}
	return "for " + strings.Join(parts, ", ")
}
