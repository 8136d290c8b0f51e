package main

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/shim"
)

// hostOptions say what a host must hold: the same for setting it up and for checking it.
type hostOptions struct {
	policy  string
	trust   trust
	render  renderOptions
	warrant string
	logins  []string
	from    []string
	shim    shimOptions

	kubeletKey               string
	maxSerialStep, outputMax number
}

func (o *hostOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.policy, "policy", "", "TrustPolicy object, or its document with signatures in FILE.sig (required)")
	f.StringVar(&o.trust.roots, "root", "", "file of the root public keys (OpenSSH lines or PEM), or a roots statement (required)")
	f.StringVar(&o.trust.cluster, "cluster", "", "id of the cluster that the hosts are for, as its anchor names it (required)")
	f.StringVar(&o.render.class, "class", "", "class of the hosts (required)")
	f.StringArrayVar(&o.render.hosts, "host", nil, "fingerprint of a key of the one host that this is for (may be repeated); without it, signers limited to hosts are left out")
	f.BoolVar(&o.render.forUpstreamShim, "for-upstream-shim", false, "give every signer the principal kpssh, for hosts that may get karpenter-provider-ssh's shim again")
	f.StringVar(&o.warrant, "warrant", "required", "required: only scripts with a warrant run; optional: those without one run too")
	f.StringArrayVar(&o.logins, "login-key", nil, "file of the public key that the relay logs in with (may be repeated)")
	f.StringArrayVar(&o.from, "from", nil, "address, or network as ADDRESS/BITS, that it logs in from (may be repeated)")
	f.StringVar(&o.kubeletKey, "kubelet-key", hostsetup.KubeletKey, "file on the host with the kubelet's pending key, for proofs of possession; empty for none")
	f.Var(&o.maxSerialStep, "max-serial-step", "how far a serial may rise at once (default the shim's: 1000)")
	f.Var(&o.outputMax, "output-max", "bytes kept of a script's output (default the shim's: 16 MiB)")
	o.shim.flags(cmd)
}

// check wants the flags that name a host, and values that a host can hold.
func (o *hostOptions) check() error {
	for _, need := range [][2]string{{"policy", o.policy}, {"root", o.trust.roots}, {"cluster", o.trust.cluster}, {"class", o.render.class}} {
		if need[1] == "" {
			return usage("--%s says what the host must hold, and is missing", need[0])
		}
	}
	if o.warrant != "required" && o.warrant != "optional" {
		return usage("--warrant takes required or optional, not %.40q", o.warrant)
	}
	if !trustpolicy.ValidClusterID(o.trust.cluster) || o.trust.cluster == trustpolicy.AnyCluster {
		return usage("--cluster is the id of one cluster, not %.80q", o.trust.cluster)
	}
	if o.kubeletKey != "" && !absolutePath.MatchString(o.kubeletKey) {
		return usage("--kubelet-key is an absolute path without blanks, not %.80q", o.kubeletKey)
	}
	if o.outputMax != 0 && (o.outputMax < minOutput || o.outputMax > maxOutput) {
		return usage("--output-max is %d to %d", minOutput, maxOutput)
	}
	if (len(o.logins) == 0) != (len(o.from) == 0) {
		return usage("--login-key and --from go together: who logs in, and where from (0.0.0.0/0 and ::/0 are everywhere)")
	}
	return o.render.check()
}

// What the shim takes for output-max (docs/spec/shim.md).
const (
	minOutput = 512
	maxOutput = 1 << 30
)

var absolutePath = regexp.MustCompile(`^/[A-Za-z0-9._/-]+$`)

// setup makes the model of the host from the policy in force, and tells what there is to know about it.
func (o *hostOptions) setup(c *cli) (*hostsetup.Setup, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	options := hostsetup.Options{
		Place:           o.render.place(o.trust.cluster),
		WarrantRequired: o.warrant == "required", KubeletKey: o.kubeletKey,
		MaxSerialStep: int64(o.maxSerialStep), OutputMax: int64(o.outputMax),
	}
	var err error
	if options.From, err = addresses(o.from); err != nil {
		return nil, err
	}
	if options.LoginKeys, err = loginKeys(o.logins); err != nil {
		return nil, err
	}
	shipped, err := shippedFiles()
	if err != nil {
		return nil, err
	}
	if shipped.Shim, err = o.shim.vouchedFor(c, shipped.Shim); err != nil {
		return nil, err
	}
	snapshot, link, err := c.policyWithRootLink(o.policy, o.trust)
	if err != nil {
		return nil, err
	}
	options.RootLink = link
	s, notes, err := hostsetup.New(snapshot.Policy, snapshot.Now, shipped, options)
	if err != nil {
		return nil, refused(o.policy, err)
	}
	c.tell(notes)
	return s, nil
}

func (c *cli) tell(notes []hostsetup.Note) {
	for _, n := range notes {
		c.say(n.Level, "%s", n.Text)
	}
}

// addresses wants each in its one spelling: sshd refuses a network with bits below its mask.
func addresses(texts []string) ([]string, error) {
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err == nil && address.String() == text && address.Zone() == "" {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil || network.Masked().String() != text {
			return nil, usage("--from is an address, or a network like 192.0.2.0/24, not %.80q", text)
		}
	}
	return texts, nil
}

func loginKeys(paths []string) ([]ssh.PublicKey, error) {
	var keys []ssh.PublicKey
	for _, path := range paths {
		text, err := readPublic("--login-key", path)
		if err != nil {
			return nil, err
		}
		key, _, err := sshsig.ParsePublicKey(strings.TrimRight(string(text), "\r\n"))
		if err != nil {
			return nil, undecided(fmt.Errorf("--login-key %s: %w", path, err))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// shippedFiles are those of the shim that this program carries.
func shippedFiles() (hostsetup.Shipped, error) {
	var s hostsetup.Shipped
	var all error
	for path, content := range map[string]*[]byte{
		"kpssh-shim": &s.Shim, "etc/sshd_config.d/kpssh.conf": &s.SSHD, "etc/sudoers.d/kpssh": &s.Sudoers, "etc/authorized_keys": &s.AuthorizedKeys,
	} {
		var err error
		*content, err = shim.Files().ReadFile(path)
		all = errors.Join(all, err)
	}
	if all != nil {
		return s, undecided(fmt.Errorf("reading the shim's files in this program: %v", all))
	}
	return s, nil
}
