package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

func (c *cli) inspectCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Show signers, digests and expiry, without judging",
		Long: `inspect shows who claims to have signed what: for each phase the SHA-256 of the script, and for each signature the
key, its namespace, and whether it covers the script as it stands; what its warrant says, with each parameter that it
takes; for a trust policy its version, term and signers; for a
fragment what was signed: class, bundle, version, signer, digest, and which parts of a profile, or which rules, it sets.
The content digest is what a waiver of a trust policy names, the profile digest what a reset names.

It trusts nothing and refuses nothing: "covers: yes" says that some key signed these bytes, not that it may.`,
		Example: `  hostwarrant inspect profile.yaml
  hostwarrant inspect keys/trust-policy.yaml -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usage("-o takes text or json, not %q", format)
			}
			return c.inspect(args[0], format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return cmd
}

// finding is what inspect shows of one object.
type finding struct {
	Path     string        `json:"path"`
	Document string        `json:"document,omitempty"`
	Kind     string        `json:"kind"`
	Name     string        `json:"name"`
	Facts    []fact        `json:"facts,omitempty"`
	Parts    []signedBytes `json:"parts,omitempty"`
	Problem  string        `json:"problem,omitempty"`
}

type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// signedBytes is a script or a document with its signatures.
type signedBytes struct {
	Name       string          `json:"name"`
	SHA256     string          `json:"sha256"`
	Bytes      int             `json:"bytes"`
	Warrant    *warrantFact    `json:"warrant,omitempty"`
	Problem    string          `json:"problem,omitempty"`
	Signatures []signatureFact `json:"signatures"`
}

type signatureFact struct {
	Key       string `json:"key,omitempty"`
	Type      string `json:"type,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Hash      string `json:"hash,omitempty"`
	Covers    bool   `json:"covers"`
	Problem   string `json:"problem,omitempty"`
}

func (c *cli) inspect(path, format string) error {
	inputs, err := c.gather([]string{path})
	if err != nil {
		return err
	}
	all := []finding{}
	for _, in := range inputs {
		found, err := c.findings(in)
		if err != nil {
			return undecided(fmt.Errorf("%s: %v", in.path, err))
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return stuck("inspect takes objects of the kinds that are guarded, policies, statements and directories of scripts; hostwarrant sig inspect FILE shows a signature alone", "%s: there is nothing to inspect", path)
	}
	if format == "json" {
		return c.printJSON(all)
	}
	var b bytes.Buffer
	for _, f := range all {
		f.write(&b)
	}
	return c.print(b.Bytes())
}

func (c *cli) findings(in input) ([]finding, error) {
	if in.dir != nil {
		f := finding{Path: in.path, Kind: object.KindJoinProfile, Name: in.dir.name}
		p := object.JoinProfile{Scripts: map[script.Phase]string{}}
		for _, phase := range script.Phases() {
			if text, there := in.dir.scripts[phase]; there {
				p.Scripts[phase] = string(text)
				f.Parts = append(f.Parts, describeScript(phase, text, string(in.dir.signatures[phase])))
			}
		}
		f.Facts = append(f.Facts, fact{"profile digest", p.Digest()})
		return []finding{f}, nil
	}
	if statement.Is(in.data) {
		f, err := describeStatementFile(in)
		return []finding{f}, err
	}
	if isDetached(in.data) {
		t, err := c.readPolicyBytes(in.path, in.data)
		if err != nil {
			return nil, err
		}
		return []finding{describePolicy(finding{Path: in.path, Kind: t.Kind, Name: filepath.Base(in.path)}, t)}, nil
	}
	file, err := manifest.Read(in.data)
	if err != nil {
		return nil, err
	}
	objects, err := file.Objects()
	if err != nil {
		return nil, err
	}
	var all []finding
	for _, o := range objects {
		if !isGuarded(o) {
			c.say("note", "%s: %s is of no kind that is guarded, skipped", place(in.path, o.Where), objectName(o))
			continue
		}
		f := finding{Path: in.path, Document: o.Where, Kind: o.Kind, Name: o.Name}
		all = append(all, describeObject(f, o))
	}
	return all, nil
}

func describeObject(f finding, o manifest.Object) finding {
	raw, err := o.Node.JSON()
	if err == nil {
		err = o.Node.Check()
	}
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	if digest, err := object.ContentDigest(raw); err == nil && o.Kind != object.KindTrustPolicy {
		f.Facts = append(f.Facts, fact{"content digest", digest})
	}
	switch o.Kind {
	case object.KindJoinProfile:
		p, err := object.ParseJoinProfile(raw)
		if err != nil {
			f.Problem = err.Error()
			return f
		}
		f.Facts = append(f.Facts, fact{"profile digest", p.Digest()}, fact{"version", p.Version})
		for _, phase := range p.Phases() {
			f.Parts = append(f.Parts, describeScript(phase, []byte(p.Scripts[phase]), p.Signatures[phase]))
		}
	case object.KindHost:
		h, err := object.ParseHost(raw)
		if err != nil {
			f.Problem = err.Error()
			return f
		}
		f.Facts = append(f.Facts, fact{"execMode", h.ExecMode}, fact{"user", h.User}, fact{"class", h.Class()}, fact{"address", h.Address})
		for _, line := range h.TrustedSigners {
			f.Facts = append(f.Facts, fact{"trusted signer", keyName(line)})
		}
	case object.KindNodeClass:
		return describeNodeClass(f, raw)
	case object.KindHostRun:
		return describeRun(f, raw)
	case object.KindHostStatement:
		h, err := object.ParseHostStatement(raw)
		if err != nil {
			f.Problem = err.Error()
			return f
		}
		return describeStatement(f, []byte(h.Statement), h.Signatures)
	case object.KindTrustPolicy:
		t, err := object.ParseTrustPolicy(raw)
		if err != nil {
			f.Problem = err.Error()
			return f
		}
		return describePolicy(f, t)
	case fragment.KindContainerProfile, fragment.KindRules, fragment.KindRuleBinding, fragment.KindSeccompProfile:
		return describeFragment(f, raw)
	}
	return f
}

func describeNodeClass(f finding, raw []byte) finding {
	class, err := object.ParseNodeClass(raw)
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	f.Facts = append(f.Facts, fact{"profile", class.Profile}, fact{"vars", strings.Join(sortedKeys(class.Vars), ", ")})
	if class.HasCluster {
		f.Facts = append(f.Facts, fact{"cluster endpoint", class.Endpoint}, fact{"cluster CA", trustpolicy.Digest(class.CABundle)})
	}
	return f
}

func describeRun(f finding, raw []byte) finding {
	run, err := object.ParseHostRun(raw)
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	what := run.Phase + " of " + run.Profile
	if run.Probes() {
		what = run.Phase
	}
	f.Facts = append(f.Facts, fact{"runs", what + " on " + run.Host})
	for _, more := range []fact{{"node name", run.NodeName}, {"vars", strings.Join(sortedKeys(run.Vars), ", ")}, {"secret", run.Secret}} {
		if more.Value != "" {
			f.Facts = append(f.Facts, more)
		}
	}
	return f
}

// describeStatementFile shows a root statement and the signatures in FILE.sig.
func describeStatementFile(in input) (finding, error) {
	f := finding{Path: in.path, Kind: "Statement", Name: filepath.Base(in.path)}
	signatures, err := readFile(in.path + ".sig")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return describeStatement(f, in.data, blocks(string(signatures))), nil
}

func describeStatement(f finding, text []byte, signatures []string) finding {
	s, err := statement.Parse(text)
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	f.Facts = append(f.Facts,
		fact{"kind", string(s.Kind)},
		fact{"serial", strconv.FormatInt(s.Serial, 10)},
		fact{"issued", stamp(time.Unix(s.Issued, 0))},
		fact{"for", strings.Join(placesOf(s), ", ")})
	f.Parts = append(f.Parts, describePart("statement", statement.Namespace, text, signatures))
	return f
}

func placesOf(s *statement.Statement) []string {
	if s.Cluster == "" {
		return s.Targets
	}
	return append([]string{"cluster " + s.Cluster}, s.Targets...)
}

// describePolicy shows a policy that nobody verified; so it reads no more than what people compare.
func describePolicy(f finding, t *object.TrustPolicy) finding {
	d, err := readOutline(t.Document)
	if err != nil {
		f.Problem = err.Error()
	}
	f.Facts = append(f.Facts, fact{"version", fmt.Sprint(d.Version)}, fact{"rootVersion", fmt.Sprintf("%d, %s in the object", d.RootVersion, plural(len(t.RootChain), "root link"))}, fact{"mode", d.Mode}, fact{"issued", d.Issued}, fact{"expires", d.Expires})
	for _, id := range sortedKeys(d.Clusters) {
		f.Facts = append(f.Facts, fact{"cluster", id})
	}
	for _, s := range d.JoinProfiles.Signers {
		f.Facts = append(f.Facts, fact{"signer", s.Name + " " + keyName(s.Key)})
	}
	f.Parts = append(f.Parts, describePart("document", trustpolicy.Namespace, []byte(t.Document), t.Signatures))
	return f
}

func keyName(line string) string {
	key, _, err := sshsig.ParsePublicKey(line)
	if err != nil {
		return err.Error()
	}
	return key.Type() + " " + sshsig.Fingerprint(key)
}

// describeScript shows a phase script, its warrant and its signatures.
func describeScript(phase script.Phase, text []byte, signatures string) signedBytes {
	p := describePart(string(phase), script.Namespace, text, blocks(signatures))
	p.Warrant, p.Problem = describeWarrant(text)
	return p
}

func describePart(name, namespace string, text []byte, signatures []string) signedBytes {
	p := signedBytes{Name: name, SHA256: trustpolicy.Digest(text)[len("sha256:"):], Bytes: len(text), Signatures: []signatureFact{}}
	for _, armored := range signatures {
		sig, err := parseOne(armored)
		if err != nil {
			p.Signatures = append(p.Signatures, signatureFact{Problem: err.Error()})
			continue
		}
		s := signatureFact{
			Key: sshsig.Fingerprint(sig.PublicKey()), Type: sig.PublicKey().Type(), Namespace: sig.Namespace(), Hash: sig.HashAlgorithm(),
		}
		if err := sig.Verify(namespace, text); err != nil {
			s.Problem = err.Error()
		} else {
			s.Covers = true
		}
		p.Signatures = append(p.Signatures, s)
	}
	return p
}

// parseOne reads one block, also one by a certificate.
func parseOne(armored string) (*sshsig.Signature, error) {
	all, err := sshsig.ParseAllWithCertificates([]byte(armored))
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (f finding) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "%s: %s/%s\n", place(f.Path, f.Document), shown(f.Kind), shown(f.Name))
	if f.Problem != "" {
		fmt.Fprintf(b, "  problem: %.300q\n", f.Problem)
	}
	for _, x := range f.Facts {
		fmt.Fprintf(b, "  %s: %s\n", x.Name, shown(x.Value))
	}
	for _, p := range f.Parts {
		fmt.Fprintf(b, "  %s: sha256 %s, %d bytes\n", p.Name, p.SHA256, p.Bytes)
		if p.Warrant != nil {
			p.Warrant.write(b, p.Name)
		}
		if p.Problem != "" {
			fmt.Fprintf(b, "  %s: warrant: unreadable: %s\n", p.Name, shown(p.Problem))
		}
		if len(p.Signatures) == 0 {
			fmt.Fprintf(b, "    no signature\n")
		}
		for _, s := range p.Signatures {
			switch {
			case s.Key == "":
				fmt.Fprintf(b, "    signature: unreadable: %s\n", shown(s.Problem))
			case s.Covers:
				fmt.Fprintf(b, "    signature: %s %s, namespace %s, %s, covers: yes\n", s.Type, s.Key, shown(s.Namespace), s.Hash)
			default:
				fmt.Fprintf(b, "    signature: %s %s, namespace %s, %s, covers: no (%s)\n", s.Type, s.Key, shown(s.Namespace), s.Hash, shown(s.Problem))
			}
		}
	}
}
