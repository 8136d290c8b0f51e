package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

func (c *cli) sigInspectCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "inspect [FILE]",
		Short: "Show what a signature says of itself, without judging",
		Long: `inspect shows the key, namespace and hash of each signature in a file, or on stdin, and the facts of its certificate
where it has one.

It has no message and no list of signers: nothing that it shows is verified, but that a certificate stands by itself
(in its term, signed by the authority it names).`,
		Example: `  hostwarrant sig inspect join.sh.sig
  hostwarrant sig inspect -o json < join.sh.sig`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usage("-o takes text or json, not %q", format)
			}
			path := "-"
			if len(args) == 1 {
				path = args[0]
			}
			return c.sigInspect(path, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return cmd
}

// signatureFacts is what a signature says of itself.
type signatureFacts struct {
	Type        string            `json:"type"`
	Key         string            `json:"key"`
	Namespace   string            `json:"namespace"`
	Hash        string            `json:"hash"`
	Touched     *bool             `json:"touched,omitempty"` // security keys only
	Certificate *certificateFacts `json:"certificate,omitempty"`
}

type certificateFacts struct {
	Type            string            `json:"type"` // user or host
	KeyID           string            `json:"keyID"`
	Serial          uint64            `json:"serial"`
	Principals      []string          `json:"principals"`
	ValidAfter      string            `json:"validAfter,omitempty"`
	ValidBefore     string            `json:"validBefore,omitempty"`
	CriticalOptions map[string]string `json:"criticalOptions,omitempty"`
	Extensions      map[string]string `json:"extensions,omitempty"`
	Authority       string            `json:"authority"`
	Algorithm       string            `json:"algorithm"`
	Problem         string            `json:"problem,omitempty"` // why it does not stand by itself
}

func (c *cli) sigInspect(path, format string) error {
	armored, err := c.read(path)
	if err != nil {
		return undecided(err)
	}
	if len(armored) == 0 {
		return undecided(fmt.Errorf("%s: there is nothing to inspect", path))
	}
	signatures, err := sshsig.ParseAllWithCertificates(armored)
	if err != nil {
		return refused(path, err)
	}
	var all []signatureFacts
	for _, s := range signatures {
		all = append(all, factsOf(s, c.now()))
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

func factsOf(s *sshsig.Signature, now time.Time) signatureFacts {
	f := signatureFacts{
		Type: s.PublicKey().Type(), Key: sshsig.Fingerprint(s.PublicKey()), Namespace: s.Namespace(), Hash: s.HashAlgorithm(),
	}
	if sshsig.IsSecurityKey(s.PublicKey()) {
		touched := s.CheckPurpose(s.Namespace()) == nil
		f.Touched = &touched
	}
	if c := s.Certificate(); c != nil {
		f.Certificate = certificateFactsOf(c, now)
	}
	return f
}

func certificateFactsOf(c *ssh.Certificate, now time.Time) *certificateFacts {
	f := &certificateFacts{
		Type: fmt.Sprint(c.CertType), KeyID: c.KeyId, Serial: c.Serial, Principals: c.ValidPrincipals,
		ValidAfter: certificateTime(c.ValidAfter), ValidBefore: certificateTime(c.ValidBefore),
		CriticalOptions: c.CriticalOptions, Extensions: c.Extensions,
		Authority: c.SignatureKey.Type() + " " + sshsig.Fingerprint(c.SignatureKey), Algorithm: c.Signature.Format,
	}
	switch c.CertType {
	case ssh.UserCert:
		f.Type = "user"
	case ssh.HostCert:
		f.Type = "host"
	}
	if err := sshsig.CheckCertificate(c, now); err != nil {
		f.Problem = err.Error()
	}
	return f
}

// certificateTime is empty for the ends of time: 0, and what lies after the year 9999.
func certificateTime(seconds uint64) string {
	const lastSecond = 253402300799
	if seconds == 0 || seconds > lastSecond {
		return ""
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}

func (f signatureFacts) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "%s %s\n  namespace: %s\n  hash: %s\n", f.Type, f.Key, shown(f.Namespace), f.Hash)
	if f.Touched != nil {
		fmt.Fprintf(b, "  touched: %s\n", yesNo(*f.Touched))
	}
	if f.Certificate != nil {
		f.Certificate.write(b)
	}
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (f *certificateFacts) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "  certificate: %s, key id %s, serial %d\n", f.Type, shown(f.KeyID), f.Serial)
	var principals []string
	for _, p := range f.Principals {
		principals = append(principals, shown(p))
	}
	fmt.Fprintf(b, "    principals: %s\n", orNone(strings.Join(principals, ", ")))
	fmt.Fprintf(b, "    valid: from %s to %s\n", orNone(f.ValidAfter), orNone(f.ValidBefore))
	fmt.Fprintf(b, "    authority: %s, with %s\n", f.Authority, shown(f.Algorithm))
	for _, name := range sortedKeys(f.CriticalOptions) {
		fmt.Fprintf(b, "    critical option: %s %s\n", shown(name), shown(f.CriticalOptions[name]))
	}
	for _, name := range sortedKeys(f.Extensions) {
		fmt.Fprintf(b, "    extension: %s %s\n", shown(name), shown(f.Extensions[name]))
	}
	if f.Problem != "" {
		fmt.Fprintf(b, "    problem: %s\n", shown(f.Problem))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
