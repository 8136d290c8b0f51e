package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

// signOptions are the flags of sign.
type signOptions struct {
	key, out            string
	inPlace, add, force bool
	dir                 dirOptions
}

func (c *cli) signCommand() *cobra.Command {
	var o signOptions
	cmd := &cobra.Command{
		Use:   "sign PATH...",
		Short: "Sign the phase scripts of SSHJoinProfiles",
		Long: `sign signs every phase of the SSHJoinProfiles in PATH, in the namespace kpssh, and prints the signed text.
Only the bytes of signatures change: comments, order and style stay. Before anything is written, the output is read
again as the API server would read it, and every signature is verified.

PATH is a YAML or JSON file, "-" for stdin, or a directory of install.sh, join.sh, leave.sh and uninstall.sh: then
<phase>.sh.sig is written beside each, and an SSHJoinProfile is printed.

A new signature replaces all others of its phase; with --add it stands behind those of other keys (at most 8).
--key takes an OpenSSH private key (a passphrase is asked on the terminal), or the .pub file of a key that ssh-agent
holds, which is how FIDO2 and PKCS#11 tokens are used.

Exit status: 0 signed, 1 refused (a template, a NUL, a weak key), 2 wrong usage, 3 I/O or a key that cannot be used.`,
		Example: `  hostwarrant sign -i profile.yaml --key keys/signer
  hostwarrant sign scripts/ --key ~/.ssh/id_ed25519_sk.pub --profile tls-bootstrap --version 42 -o profile.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error { return c.sign(paths, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.key, "key", "", "private key file, or the .pub file of a key in ssh-agent (required)")
	f.BoolVarP(&o.inPlace, "in-place", "i", false, "edit the file instead of printing it")
	f.StringVarP(&o.out, "output", "o", "", "write to a new file instead of stdout")
	f.BoolVar(&o.force, "force", false, "let -o replace a file")
	f.BoolVar(&o.add, "add", false, "keep the signatures of other keys")
	f.StringVar(&o.dir.profile, "profile", "", "profile name for a directory (default: the directory's own name)")
	f.StringVar(&o.dir.version, "version", "1", "spec.version for a directory")
	required(cmd, "key")
	return cmd
}

func (o signOptions) check(paths []string) error {
	switch {
	case o.inPlace && o.out != "":
		return usage("-i and -o exclude each other")
	case o.force && o.out == "":
		return usage("--force goes with -o")
	case o.out != "" && len(paths) > 1:
		return usage("-o takes one PATH")
	case !profileVersion.MatchString(o.dir.version):
		return usage("%.80q cannot be a version: 1 to 63 of A-Z, a-z, 0-9, ., _ and -", o.dir.version)
	}
	for _, path := range paths {
		if o.inPlace && path == "-" {
			return usage("-i needs a file, not stdin")
		}
	}
	return nil
}

// signed is the result for one path.
type signed struct {
	text  []byte // to print; nil when edited in place
	files []file // to write
}

// sign makes all signatures before it writes anything.
func (c *cli) sign(paths []string, o signOptions) (err error) {
	if err := o.check(paths); err != nil {
		return err
	}
	key, closer, err := c.keys.Load(o.key)
	if err != nil {
		return undecided(err)
	}
	defer closeKey(closer, &err)
	if err := checkKey(o.key, key); err != nil {
		return err
	}
	var all []signed
	for _, path := range paths {
		one, err := c.signPath(&scriptSigner{c: c, key: key, add: o.add}, path, o)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	return c.deliver(all, o)
}

func closeKey(closer io.Closer, err *error) {
	if cerr := closer.Close(); cerr != nil && *err == nil {
		*err = undecided(fmt.Errorf("closing the key: %v", cerr))
	}
}

func checkKey(path string, key ssh.Signer) error {
	// Signing would refuse it too; here it is said before anything is read.
	if err := sshsig.CheckKey(key.PublicKey()); err != nil {
		return refused("key "+path, err)
	}
	return nil
}

func (c *cli) signPath(s *scriptSigner, path string, o signOptions) (signed, error) {
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return signed{}, undecided(err)
		}
		if info.IsDir() {
			if o.inPlace {
				return signed{}, usage("-i edits files; %s is a directory, whose signatures are always written beside the scripts", path)
			}
			text, files, err := s.directory(path, o.dir)
			return signed{text, files}, err
		}
	}
	data, err := c.read(path)
	if err != nil {
		return signed{}, undecided(err)
	}
	text, err := s.file(path, data)
	if err != nil || !o.inPlace {
		return signed{text: text}, err
	}
	return signed{files: []file{{path: path, old: data, data: text}}}, nil
}

// deliver writes what was signed. A new file comes first: it is what may be refused.
func (c *cli) deliver(all []signed, o signOptions) error {
	var texts [][]byte
	for _, one := range all {
		if one.text != nil {
			texts = append(texts, one.text)
		}
	}
	if o.out != "" {
		if err := writeOut(o.out, bytes.Join(texts, nil), o.force); err != nil {
			return err
		}
	}
	for _, one := range all {
		for _, f := range one.files {
			if err := f.write(); err != nil {
				return undecided(err)
			}
		}
	}
	if o.out != "" || len(texts) == 0 {
		return nil
	}
	return c.print(joinDocuments(texts))
}

// joinDocuments makes one stream of several texts.
func joinDocuments(texts [][]byte) []byte {
	var b bytes.Buffer
	for i, text := range texts {
		if i > 0 && !bytes.HasPrefix(text, []byte("---")) {
			if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
				b.WriteByte('\n')
			}
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	return b.Bytes()
}

func writeOut(path string, data []byte, force bool) error {
	if force {
		if err := output.Force(path, data, 0o644); err != nil {
			return undecided(err)
		}
		return nil
	}
	err := output.Create(path, data, 0o644)
	if errors.Is(err, output.ErrExists) {
		return &failure{code: exitUndecided, err: err, hint: "give another file to -o, or --force to replace it"}
	}
	if err != nil {
		return undecided(err)
	}
	return nil
}
