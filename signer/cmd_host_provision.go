package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

// userDataLimit is the least that clouds give user data room for (EC2: 16 KiB before base64).
const userDataLimit = 16 << 10

type provisionOptions struct {
	host          hostOptions
	format, out   string
	force         bool
	remove, purge bool
}

func (c *cli) hostProvisionCommand() *cobra.Command {
	var o provisionOptions
	cmd := &cobra.Command{
		Use:   "provision",
		Short: "Render what sets up the hosts of one class",
		Long: `provision renders the whole setup of a pool host from a trust policy that is in force: the shim, its account, sudo's rule,
sshd's Match block, who may log in, who may sign, revocations, the roots, floors, the cluster, and the shim's settings. It
is a shell script, cloud-init user data or an Ansible role, and each says the same. It runs nothing itself.

The script and the role check what they are about to put in place with visudo and sshd before they change anything, change
nothing that is right already, let nobody in before sshd pins the account, and reload sshd only where its file changed. What
a host remembers stays as it is, and a file that an accepted statement says is left alone.

The shim must be that of a release: its SHA-256 stands in the SHA256SUMS of --checksums, which the key of --release-key
signed. --remove renders what undoes a setup, and needs none of the flags that describe a host.`,
		Example: `  hostwarrant host provision --policy trust-policy.yaml --root roots.pub --cluster prod-1 --class bm-amd64 --login-key relay.pub --from 192.0.2.5 --checksums SHA256SUMS --release-key release.pub -o setup.sh
  hostwarrant host provision --policy trust-policy.yaml --root roots.pub --cluster prod-1 --class bm-amd64 --checksums SHA256SUMS --release-key release.pub --format ansible -o roles/hostwarrant_host
  hostwarrant host provision --remove -o remove.sh`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.hostProvision(o) },
	}
	o.host.flags(cmd)
	cmd.Flags().StringVar(&o.format, "format", "sh", "sh, cloud-init or ansible")
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "file to write, for ansible the role's directory (default stdout; required for ansible)")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace the file, or the files, of -o")
	cmd.Flags().BoolVar(&o.remove, "remove", false, "render what undoes a setup")
	cmd.Flags().BoolVar(&o.purge, "purge", false, "with --remove: forget what the host has seen, too")
	return cmd
}

func (c *cli) hostProvision(o provisionOptions) error {
	if err := outputFile(o.out); err != nil {
		return err
	}
	if o.purge && !o.remove {
		return usage("--purge goes with --remove")
	}
	switch o.format {
	case "ansible":
		if o.out == "" {
			return usage("a role is a directory: name it with -o")
		}
	case "sh":
	case "cloud-init":
		if o.remove {
			return usage("cloud-init sets machines up at their first boot, and removes nothing: take --format sh or ansible")
		}
	default:
		return usage("--format takes sh, cloud-init or ansible, not %.40q", o.format)
	}
	if o.remove {
		return c.renderRemoval(o)
	}
	s, err := o.host.setup(c)
	if err != nil {
		return err
	}
	return c.renderSetup(s, o)
}

func (c *cli) renderRemoval(o provisionOptions) error {
	if o.format == "ansible" {
		return writeRole(o.out, hostsetup.RemovalAnsible(o.purge), o.force)
	}
	return c.writeScript(hostsetup.RemovalShell(o.purge), o)
}

func (c *cli) renderSetup(s *hostsetup.Setup, o provisionOptions) error {
	switch o.format {
	case "ansible":
		return writeRole(o.out, s.Ansible(), o.force)
	case "cloud-init":
		data, err := s.CloudInit()
		if err != nil {
			return undecided(err)
		}
		if len(data) > userDataLimit {
			c.say("note", "the user data has %d bytes; clouds that take %d at most need the script in the image instead", len(data), userDataLimit)
		}
		if o.out == "" {
			return c.print(data)
		}
		return writeOut(o.out, data, o.force)
	default:
		return c.writeScript(s.Shell(), o)
	}
}

func (c *cli) writeScript(script []byte, o provisionOptions) error {
	if o.out == "" {
		return c.print(script)
	}
	change, err := newFile(o.out, script, o.force)
	if err != nil {
		return err
	}
	change.Mode = 0o755
	if err := output.All([]output.Change{change}); err != nil {
		return writeFailed(err)
	}
	return nil
}

// writeRole writes the files of a role into a new or empty directory, or over an older role.
func writeRole(dir string, role []hostsetup.RoleFile, force bool) error {
	_, err := os.Lstat(dir)
	isNew := errors.Is(err, fs.ErrNotExist)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 && !force {
		return &failure{code: exitUsage, err: fmt.Errorf("%q is not empty", dir), hint: "give a new directory to -o, or --force to write over an older role"}
	}
	var changes []output.Change
	for _, f := range role {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		old, err := existing(path, force)
		if err != nil {
			return err
		}
		changes = append(changes, output.Change{Path: path, Old: old, Data: f.Content})
	}
	err = nil
	for _, change := range changes {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(change.Path), 0o755))
	}
	if err == nil {
		err = output.All(changes)
	}
	if err != nil && isNew {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return undecided(err)
	}
	return nil
}
