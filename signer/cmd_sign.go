package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

// signOptions are the flags of sign.
type signOptions struct {
	keys                         []string
	out, version                 string
	inPlace, add, replace, force bool
	fixCRLF                      bool
	terms                        termFlags
	dir                          dirOptions
	fragment                     fragmentTerms
	judge                        judgeFlags
}

func (c *cli) signCommand() *cobra.Command {
	var o signOptions
	cmd := &cobra.Command{
		Use:   "sign PATH...",
		Short: "Sign phase scripts and fragments, by kind",
		Long: `sign writes into every phase script of an SSHJoinProfile what it is for (its warrant), signs it in the namespace kpssh,
and prints the signed text. A fragment (ContainerProfile, Rules, RuntimeRuleAlertBinding, SeccompProfile) it signs as
kubescape's tools do. Only the bytes of warrants, signatures, versions and the labels below change: comments, order and
style stay. Before anything is written, the output is read again as the API server would read it, and every signature
is verified.

PATH is a YAML or JSON file, "-" for stdin, or a directory of install.sh, join.sh, leave.sh and uninstall.sh: then
the warrant is written into the scripts, <phase>.sh.sig beside each, and an SSHJoinProfile is printed.

The warrant comes from the flags, from warrant.yaml (beside the scripts of a directory, or --warrant FILE), and from
the block that a script has already, in this order. A new serial brings a new validity: 90 days for install and join
unless --valid-for says otherwise, no end for leave and uninstall, whose digests install and join then name. See
"hostwarrant help warrant".

Signatures by other keys stay where they still cover the script. --add is for the second signer: it changes nothing
but signatures, and fails where an earlier one does not cover the script. --replace drops those of others.
With --policy and --root the result is judged as "hostwarrant verify" would; signatures that are still missing are
named, anything else is refused before it is written.

A fragment has one signature, by an ECDSA P-256 key. --class, --bundle and --version write what is signed with it into
its labels. With --embed-content=false it must be stored exactly as it stands. See "hostwarrant help fragments".

--key takes an OpenSSH private key (a passphrase is asked on the terminal), a PEM private key, a cosign.key, or the .pub
file of a key that ssh-agent holds, which is how FIDO2 and PKCS#11 tokens are used. It may be repeated.

Exit status: 0 signed, 1 refused (a template, a NUL, a warrant that contradicts itself, an unknown field), 2 wrong usage,
3 I/O or a key that cannot be used.`,
		Example: `  hostwarrant sign -i profile.yaml --key keys/signer --serial 42 --target "class bm-amd64"
  hostwarrant sign -i profile.yaml --key ~/.ssh/id_ed25519_sk.pub --add
  hostwarrant sign scripts/ --key keys/signer --profile tls-bootstrap --serial 42 --target any -o profile.yaml
  hostwarrant sign -i fragment.yaml --key vendor.key --class base --bundle redis --version 3`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error { return c.sign(paths, o) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.keys, "key", nil, "private key file, or the .pub file of a key in ssh-agent (required; may be repeated)")
	f.BoolVarP(&o.inPlace, "in-place", "i", false, "edit the file instead of printing it")
	f.StringVarP(&o.out, "output", "o", "", "write to a new file instead of stdout")
	f.BoolVar(&o.force, "force", false, "let -o replace a file")
	f.BoolVar(&o.add, "add", false, "change nothing but signatures, and keep those of other keys")
	f.BoolVar(&o.replace, "replace", false, "drop the signatures of other keys")
	f.BoolVar(&o.fixCRLF, "fix-crlf", false, "make LF line ends of CR LF before signing")
	f.StringVar(&o.dir.profile, "profile", "", "profile name for a directory (default: warrant.yaml's, or the directory's own name)")
	f.StringVar(&o.version, "version", "", "version of a fragment; spec.version for a directory without warrants (default 1)")
	f.StringVar(&o.fragment.class, "class", "", "class to write into a fragment")
	f.StringVar(&o.fragment.bundle, "bundle", "", "bundle to write into a fragment")
	f.BoolVar(&o.fragment.embed, "embed-content", true, "embed what is signed of a fragment, so that the signature outlives what storage does to it")
	o.terms.add(f)
	o.judge.optional(cmd)
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
	case o.out == "" && o.terms.flags.Changed("output"):
		return usage("-o needs the name of a file")
	case o.out != "" && slices.ContainsFunc(slices.Concat(paths, o.keys, []string{o.terms.file, o.judge.policy, o.judge.roots}), o.writesTo):
		return usage("-o %s is what is read: -i edits a file in place", o.out)
	case o.add && o.replace:
		return usage("--add and --replace exclude each other")
	case o.add && (o.fixCRLF || o.terms.over(terms{}).given() || o.terms.file != ""):
		return usage("--add changes nothing but signatures: leave out what states a warrant")
	}
	if err := o.checkTexts(); err != nil {
		return err
	}
	if err := outputFile(o.out); err != nil {
		return err
	}
	for _, path := range paths {
		if o.inPlace && path == "-" {
			return usage("-i needs a file, not stdin")
		}
	}
	return o.judge.check()
}

// labelValue is what a label may hold (Kubernetes, syntax and character set of labels).
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

func (o signOptions) checkTexts() error {
	if o.version != "" && !profileVersion.MatchString(o.version) {
		return usage("%.80q cannot be a version: 1 to 63 of A-Z, a-z, 0-9, ., _ and -", o.version)
	}
	for flag, text := range map[string]string{"class": o.fragment.class, "bundle": o.fragment.bundle} {
		if o.terms.flags.Changed(flag) && !labelValue.MatchString(text) {
			return usage("--%s is a label value, not %.80q", flag, text)
		}
	}
	return nil
}

// fragmentFlag is a flag that was given and is for fragments alone, "" where none was.
func (o signOptions) fragmentFlag() string {
	return o.given("class", "bundle", "embed-content", "version")
}

// scriptFlag is a flag that was given and is for phase scripts alone, "" where none was.
func (o signOptions) scriptFlag() string {
	return o.given("add", "replace", "fix-crlf", "profile", "warrant", "serial", "valid-for", "not-before", "target", "param")
}

func (o signOptions) given(flags ...string) string {
	for _, flag := range flags {
		if o.terms.flags.Changed(flag) {
			return flag
		}
	}
	return ""
}

func (o signOptions) othersMode() othersMode {
	switch {
	case o.add:
		return onlyAdd
	case o.replace:
		return ownOnly
	default:
		return keepValid
	}
}

// signed is the result for one path.
type signed struct {
	text  []byte // to print; nil when edited in place
	files []output.Change
}

// sign makes all signatures before it writes anything.
func (c *cli) sign(paths []string, o signOptions) (err error) {
	if err := o.check(paths); err != nil {
		return err
	}
	j, err := o.judge.load(c)
	if err != nil {
		return err
	}
	given, err := o.givenTerms()
	if err != nil {
		return err
	}
	keys, closeAll, err := c.loadKeys(o.keys)
	defer closeAll(&err)
	if err != nil {
		return err
	}
	var all []signed
	var advice []string
	for _, path := range paths {
		s := &signing{c: c, keys: keys, terms: o.terms.over(given), termsFile: o.terms.file, others: o.othersMode(), fixCRLF: o.fixCRLF, judge: j, fragment: o.fragment}
		s.fragment.version, s.fragment.key, s.fragment.flag, s.scriptFlag = o.version, o.keys[0], o.fragmentFlag(), o.scriptFlag()
		one, err := s.path(path, o)
		if err != nil {
			return err
		}
		all = append(all, one)
		advice = append(advice, s.advice...)
	}
	if err := c.deliver(all, o); err != nil {
		return err
	}
	for _, text := range advice {
		c.say("warning", "%s", text)
	}
	return nil
}

// givenTerms are those of --warrant.
func (o signOptions) givenTerms() (terms, error) {
	if o.terms.file == "" {
		return terms{}, nil
	}
	return readTerms(o.terms.file)
}

func readTerms(path string) (terms, error) {
	text, err := readFile(path)
	if err != nil {
		return terms{}, undecided(fmt.Errorf("reading warrant terms: %v", err))
	}
	t, err := parseTerms(text)
	if err != nil {
		return terms{}, undecided(fmt.Errorf("%s: %v", path, err))
	}
	return t, nil
}

// loadKeys loads every key; what it gives back closes them, and is never nil.
func (c *cli) loadKeys(paths []string) (keys []ssh.Signer, closeAll func(*error), err error) {
	var closers []io.Closer
	closeAll = func(err *error) {
		for _, closer := range closers {
			closeKey(closer, err)
		}
	}
	for _, path := range paths {
		key, closer, err := c.keys.Load(path)
		if err != nil {
			return nil, closeAll, undecided(err)
		}
		closers = append(closers, closer)
		if err := c.usable(path, key); err != nil {
			return nil, closeAll, err
		}
		keys = append(keys, key)
	}
	return keys, closeAll, nil
}

func closeKey(closer io.Closer, err *error) {
	if cerr := closer.Close(); cerr != nil && *err == nil {
		*err = undecided(fmt.Errorf("closing the key: %v", cerr))
	}
}

func checkKey(path string, key ssh.Signer) error {
	// Signing would refuse it too; here it is said before anything is read.
	if err := sshsig.CheckKey(key.PublicKey()); err != nil {
		return undecided(fmt.Errorf("key %s: %w", path, err))
	}
	return nil
}

func (s *signing) path(path string, o signOptions) (signed, error) {
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return signed{}, undecided(err)
		}
		if info.IsDir() {
			if o.inPlace {
				return signed{}, usage("-i edits files; %s is a directory, whose signatures are always written beside the scripts", path)
			}
			if flag := o.given("class", "bundle", "embed-content"); flag != "" {
				return signed{}, usage("--%s is for fragments, and %s is a directory of phase scripts: give the files", flag, path)
			}
			text, files, err := s.directory(path, o)
			return signed{text, files}, err
		}
	}
	if o.dir != (dirOptions{}) {
		return signed{}, usage("--profile is for directories; in %s the object says it", path)
	}
	data, err := s.c.read(path)
	if err != nil {
		return signed{}, undecided(err)
	}
	text, err := s.signText(path, data)
	if err != nil || !o.inPlace {
		return signed{text: text}, err
	}
	return signed{files: []output.Change{{Path: path, Old: data, Data: text}}}, nil
}

// deliver writes what was signed: all files or none. The file that may be refused comes first.
func (c *cli) deliver(all []signed, o signOptions) error {
	var texts [][]byte
	var files []output.Change
	for _, one := range all {
		if one.text != nil {
			texts = append(texts, one.text)
		}
		files = append(files, one.files...)
	}
	if o.out != "" {
		out, err := newFile(o.out, bytes.Join(texts, nil), o.force)
		if err != nil {
			return err
		}
		files = append(files, out)
	}
	if err := output.All(files); err != nil {
		return writeFailed(err)
	}
	if o.out != "" || len(texts) == 0 {
		return nil
	}
	return c.print(joinDocuments(texts))
}

// writesTo tells whether -o is one of the files that a path stands for.
func (o signOptions) writesTo(path string) bool {
	if path == "" {
		return false
	}
	candidates := []string{path, filepath.Join(path, termsFile)}
	for _, phase := range script.Phases() {
		candidates = append(candidates, filepath.Join(path, scriptFile(phase)), filepath.Join(path, scriptFile(phase)+".sig"))
	}
	return slices.ContainsFunc(candidates, func(name string) bool { return sameFile(name, o.out) })
}

// sameFile compares what is there, and for what is not there yet the names.
func sameFile(a, b string) bool {
	was, err := os.Stat(a)
	if err != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	is, err := os.Stat(b)
	return err == nil && os.SameFile(was, is)
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
