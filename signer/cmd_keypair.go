package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/fragment/specpath"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

func (c *cli) keypairCommand() *cobra.Command {
	return group("keypair", "Take over keys that sign fragments",
		`  hostwarrant keypair import operator.pub --class overlay`, c.keypairImportCommand())
}

// keypairOptions say what the key is to sign.
type keypairOptions struct {
	class, ruleClass, bindingClass string
	paths, rules                   []string
}

func (c *cli) keypairImportCommand() *cobra.Command {
	var o keypairOptions
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Print what a trust policy needs to know of a key that signs fragments",
		Long: `import prints the fingerprint by which a trust policy names a key, and with --class, --rule-class or --binding-class the
lines of the policy document that let it sign: paste them, or add the fingerprint to the class that is there.

FILE is the public half: PEM (as kubescape's generate-keypair and cosign write it), an OpenSSH line, or a certificate in
PEM; or the private key, beside which FILE.pub, if it is there, must be its public half. Only ECDSA P-256 keys sign
fragments. Nothing is copied: sign reads the private key where it is.`,
		Example: `  hostwarrant keypair import operator.pub
  hostwarrant keypair import vendor.pub --class base --path execs --path syscalls --rule-class base --rule '*'`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.keypairImport(args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.class, "class", "", "class of ContainerProfiles that it is to sign")
	f.StringArrayVar(&o.paths, "path", nil, "part of a profile that the class may set, or * (may be repeated; with --class)")
	f.StringVar(&o.ruleClass, "rule-class", "", "class of Rules that it is to sign")
	f.StringArrayVar(&o.rules, "rule", nil, "id of a rule that the class may hold, or * (may be repeated; with --rule-class)")
	f.StringVar(&o.bindingClass, "binding-class", "", "class of RuntimeRuleAlertBindings that it is to sign")
	offer(cmd, "path", append(specpath.Names(), "*")...)
	return cmd
}

func (o keypairOptions) check() error {
	for _, class := range []string{o.class, o.ruleClass, o.bindingClass} {
		if class != "" && !labelValue.MatchString(class) {
			return usage("a class is a label value, not %.80q", class)
		}
	}
	for _, path := range o.paths {
		if path != "*" && !slices.Contains(specpath.Names(), path) {
			return usage("--path is one of %s, or *, not %.80q", strings.Join(specpath.Names(), ", "), path)
		}
	}
	switch {
	case len(o.paths) > 0 && o.class == "":
		return usage("--path goes with --class")
	case len(o.rules) > 0 && o.ruleClass == "":
		return usage("--rule goes with --rule-class")
	}
	return nil
}

func (c *cli) keypairImport(path string, o keypairOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	key, err := c.publicKey(path)
	if err != nil {
		return err
	}
	fingerprint, err := fragment.Fingerprint(key)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	if fingerprint == demoKey {
		c.say("warning", "%s is kubescape's published demo root: everybody has its private half", path)
	}
	return c.print(o.lines(fingerprint))
}

// lines are the fingerprint or, where a class is named, lines of a policy document.
func (o keypairOptions) lines(fingerprint string) []byte {
	var b bytes.Buffer
	for _, part := range []struct {
		field, class, list string
		values             []string
	}{
		{"fragmentClasses", o.class, "allowedSpecPaths", o.paths},
		{"ruleClasses", o.ruleClass, "allowedRuleIDs", o.rules},
		{"bindingClasses", o.bindingClass, "", nil},
	} {
		if part.class == "" {
			continue
		}
		fmt.Fprintf(&b, "%s:\n  %s: {signers: [%s]", part.field, quoted(part.class), quoted(fingerprint))
		if part.list != "" {
			fmt.Fprintf(&b, ", %s: %s", part.list, quoted(append([]string{}, part.values...)))
		}
		b.WriteString("}\n")
	}
	if b.Len() == 0 {
		return []byte(fingerprint + "\n")
	}
	return b.Bytes()
}

// publicKey reads the public half of a key, or works it out from the private one.
func (c *cli) publicKey(path string) (key *ecdsa.PublicKey, err error) {
	text, err := c.read(path)
	if err != nil {
		return nil, undecided(err)
	}
	if !bytes.Contains(text, []byte(" PRIVATE KEY-----")) {
		return readFragmentKey(path, text)
	}
	private, closeAll, err := c.loadRoot(path)
	defer closeAll(&err)
	if err != nil {
		return nil, err
	}
	if key, err = ecdsaKey(private.PublicKey()); err != nil {
		return nil, undecided(fmt.Errorf("%s: %w", path, err))
	}
	return key, matchesPublic(path+".pub", key)
}

// matchesPublic refuses a public half that belongs to another private one.
func matchesPublic(path string, key *ecdsa.PublicKey) error {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return undecided(err)
	}
	beside, err := readFragmentKey(path, text)
	if err != nil {
		return err
	}
	if !beside.Equal(key) {
		return &failure{code: exitUndecided, err: fmt.Errorf("%s is not the public half of the private key beside it", path), hint: "ssh-keygen -y -f KEY prints the one that is; put it there, or move this one away"}
	}
	return nil
}

// readFragmentKey reads a public key in any of the forms in which it is passed on.
func readFragmentKey(path string, text []byte) (*ecdsa.PublicKey, error) {
	key, err := parseFragmentKey(text)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %w", path, err))
	}
	return key, nil
}

func parseFragmentKey(text []byte) (*ecdsa.PublicKey, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		key, _, err := sshsig.ParsePublicKey(strings.TrimSpace(string(text)))
		if e, ok := errors.AsType[*decision.Error](err); ok && e.Reason == decision.Malformed {
			return nil, decision.Errorf(decision.Malformed, "no public key: neither PEM nor one OpenSSH line").Try("ssh-keygen -y -f KEY writes the public half of an OpenSSH key, openssl pkey -in KEY -pubout that of one in PEM")
		}
		if err != nil {
			return nil, err
		}
		return ecdsaKey(key)
	}
	public, err := publicOf(block)
	// check: Malformed: of two keys in a file, a reader would let one sign whom nobody meant
	if err != nil || len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(text, []byte("-----BEGIN ")) {
		return nil, decision.Errorf(decision.Malformed, "one PUBLIC KEY or CERTIFICATE block is wanted, and nothing else").Try("openssl pkey -in KEY -pubout writes one")
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, decision.Errorf(decision.KeyTypeRefused, "%v", err).Try(makeP256)
	}
	return ecdsaKey(key)
}

func publicOf(block *pem.Block) (any, error) {
	if block.Type == "CERTIFICATE" {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	}
	return x509.ParsePKIXPublicKey(block.Bytes)
}
