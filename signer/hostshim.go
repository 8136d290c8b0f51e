package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
)

// shimOptions say which shim, and who vouches for it.
type shimOptions struct {
	file                       string
	checksums, signature, keys string
	unsigned                   bool
}

func (o *shimOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.file, "shim", "", "file of the shim (default: the one that this program carries)")
	f.StringVar(&o.checksums, "checksums", "", "SHA256SUMS of the release that the shim is of")
	f.StringVar(&o.signature, "checksums-signature", "", "its signature (default: the file of --checksums with .sig at its end)")
	f.StringVar(&o.keys, "release-key", "", `allowed_signers file with the release key, as it is published: release namespaces="hostwarrant-release" KEY`)
	f.BoolVar(&o.unsigned, "unsigned-shim", false, "take a shim that no signed checksums vouch for, to try things out")
}

// vouchedFor gives the shim, if the signed checksums of a release have it.
func (o *shimOptions) vouchedFor(c *cli, carried []byte) ([]byte, error) {
	program := carried
	if o.file != "" {
		var err error
		if program, err = readFile(o.file); err != nil {
			return nil, undecided(fmt.Errorf("reading --shim: %v", err))
		}
	}
	if o.unsigned {
		if o.checksums != "" || o.signature != "" || o.keys != "" {
			return nil, usage("--unsigned-shim looks at no checksums: leave it out, or them")
		}
		c.say("warning", "nobody vouches for the shim: --unsigned-shim is for trying things out")
		return program, nil
	}
	if o.checksums == "" || o.keys == "" {
		return nil, usage("the shim must be a release's: give its SHA256SUMS to --checksums and the release key to --release-key, or try things out with --unsigned-shim")
	}
	return program, o.verify(c, program)
}

// noRelease is for who has the program and not the files that were published with it.
const noRelease = "SHA256SUMS and SHA256SUMS.sig come with the release, or from `make release KEY=FILE`; to try things out without them, give --unsigned-shim in place of --checksums and --release-key"

func (o *shimOptions) verify(c *cli, program []byte) error {
	checksums, err := readFile(o.checksums)
	if err != nil {
		return &failure{code: exitUndecided, err: fmt.Errorf("reading --checksums: %v", err), hint: noRelease}
	}
	path := o.signature
	if path == "" {
		path = o.checksums + ".sig"
	}
	signature, err := readFile(path)
	if err != nil {
		return &failure{code: exitUndecided, err: fmt.Errorf("reading --checksums-signature: %v", err), hint: noRelease}
	}
	text, err := readPublic("--release-key", o.keys)
	if err != nil {
		return err
	}
	keys, err := allowedsigners.Parse(text)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", o.keys, err))
	}
	if err := hostsetup.CheckShim(program, checksums, signature, keys, c.now()); err != nil {
		return refused(o.checksums, err)
	}
	return nil
}
