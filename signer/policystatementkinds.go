package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

func (c *cli) statementRootsCommand() *cobra.Command {
	var n newStatement
	var keys string
	var threshold number
	cmd := &cobra.Command{
		Use:   "roots",
		Short: "Name the next generation of root keys",
		Long: `roots makes the statement that names the root keys from now on: a link of the policy's root chain, and what hosts take
to replace their own. Its serial is the root version, one above the last. It takes effect once the old generation's
threshold and the new one's have signed.`,
		Example: `  hostwarrant statement sign roots --keys new-roots.pub --threshold 2 --serial 2 --cluster prod-1 --key root-1 -o roots-2.statement`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := readPublic("--keys", keys)
			if err != nil {
				return err
			}
			list, err := trustpolicy.ParseRoots(text)
			if err != nil {
				return undecided(fmt.Errorf("%s: %w", keys, err))
			}
			s := n.statement(c, statement.KindRoots)
			s.Roots = &statement.Roots{Threshold: int(threshold), Keys: list.Keys}
			return c.makeStatement(n, s)
		},
	}
	n.register(cmd)
	cmd.Flags().StringVar(&keys, "keys", "", "file of the new root public keys, OpenSSH lines or PEM (required)")
	cmd.Flags().Var(&threshold, "threshold", "how many of them must sign, 1 to 8 (required)")
	required(cmd, "keys")
	required(cmd, "threshold")
	return cmd
}

// fromPolicy are the flags of the kinds that say what a policy says.
type fromPolicy struct {
	policy string
	trust  trust
}

func (f *fromPolicy) register(cmd *cobra.Command, must string) {
	cmd.Flags().StringVar(&f.policy, "policy", "", "trust policy that says it, verified with --root"+must)
	cmd.Flags().StringVar(&f.trust.roots, "root", "", "file of the root public keys, or a roots statement, to verify --policy with")
}

// load verifies the policy for the statement's cluster.
func (f *fromPolicy) load(c *cli, cluster string) (verify.Snapshot, error) {
	if f.trust.roots == "" {
		return verify.Snapshot{}, usage("--policy needs --root, to verify it with")
	}
	f.trust.cluster = cluster
	if cluster == "" {
		f.trust.cluster = trustpolicy.AnyCluster
	}
	return c.policyInForce(f.policy, f.trust)
}

func (c *cli) statementSignersCommand() *cobra.Command {
	var n newStatement
	var from fromPolicy
	cmd := &cobra.Command{
		Use:   "signers",
		Short: "Tell hosts who may sign, as a trust policy has it",
		Long: `signers makes the statement that replaces a host's allowed_signers, thresholds, largest validity and their expiry by
those of a verified trust policy. The lines are those of policy render allowed_signers, for the class or the host of
--target.`,
		Example: `  hostwarrant statement sign signers --policy trust-policy.yaml --root roots.pub --serial 7 --cluster prod-1 --target "class bm-amd64" --key root-1 -o signers-7.statement`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			in, err := from.load(c, n.cluster)
			if err != nil {
				return err
			}
			n.known = in.Policy.Roots()
			o, err := hostsOf(n.targets)
			if err != nil {
				return err
			}
			lines, err := c.allowedSigners(in, from.trust.cluster, o)
			if err != nil {
				return refused(from.policy, err)
			}
			p, s := in.Policy, n.statement(c, statement.KindSigners)
			s.Signers = &statement.Signers{Expires: p.Expires.Unix(), MaxValidityDays: int(p.MaxValidity.Hours() / 24), Lines: lines}
			for i, phase := range script.Phases() {
				s.Signers.Thresholds[i] = p.Thresholds[phase]
			}
			return c.makeStatement(n, s)
		},
	}
	n.register(cmd)
	from.register(cmd, " (required)")
	required(cmd, "policy")
	return cmd
}

// hostsOf says which hosts the targets name: those of one class, one host, or all.
func hostsOf(targets []string) (renderOptions, error) {
	var o renderOptions
	classes := 0
	for _, target := range targets {
		switch kind, value, _ := strings.Cut(target, " "); kind {
		case "class":
			o.class = value
			classes++
		case "host":
			o.hosts = append(o.hosts, value)
		}
	}
	if classes > 1 || len(o.hosts) > 1 {
		return renderOptions{}, usage("signers are those of one class or of one host: make a statement for each")
	}
	return o, nil
}

func (c *cli) statementRevokeCommand() *cobra.Command {
	var n newStatement
	var from fromPolicy
	var fingerprints []string
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "Tell hosts which keys are revoked",
		Long: `revoke makes the statement of all keys that hosts must refuse from now on. It replaces the one before: give those that
were revoked earlier too. They come from --fingerprint, or from revoked.signers of a verified --policy.`,
		Example: `  hostwarrant statement sign revoke --policy trust-policy.yaml --root roots.pub --serial 5 --cluster prod-1 --key root-1 -o revoke-5.statement`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all := fingerprints
			if from.policy != "" {
				in, err := from.load(c, n.cluster)
				if err != nil {
					return err
				}
				n.known = in.Policy.Roots()
				all = append(all, in.Policy.RevokedSigners()...)
			}
			if len(all) == 0 {
				return usage("nothing is revoked: give --fingerprint, or a --policy that revokes a signer")
			}
			s := n.statement(c, statement.KindRevoke)
			s.Revoke = slices.Compact(slices.Sorted(slices.Values(all)))
			return c.makeStatement(n, s)
		},
	}
	n.register(cmd)
	from.register(cmd, "")
	cmd.Flags().StringArrayVar(&fingerprints, "fingerprint", nil, "SHA256:… of a revoked key (may be repeated)")
	return cmd
}

func (c *cli) statementFloorCommand() *cobra.Command {
	var n newStatement
	var from fromPolicy
	var floors []string
	cmd := &cobra.Command{
		Use:   "floor",
		Short: "Tell hosts the lowest serials they may take",
		Long: `floor makes the statement of all floors of hosts. It replaces the set before it; marks are not lowered. The floors
come from --floor, or from those of a verified --policy.`,
		Example: `  hostwarrant statement sign floor --floor tls-bootstrap=40 --floor 'web-*=1' --serial 3 --cluster prod-1 --key root-1 -o floor-3.statement`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all := map[string]int64{}
			if from.policy != "" {
				in, err := from.load(c, n.cluster)
				if err != nil {
					return err
				}
				n.known = in.Policy.Roots()
				maps.Copy(all, in.Policy.Floors)
			}
			given := map[string]int{}
			for _, floor := range floors {
				profile, text, _ := strings.Cut(floor, "=")
				serial, err := parseNumber(text)
				if err != nil {
					return usage("--floor is PROFILE=SERIAL, not %.80q: %v", floor, err)
				}
				given[profile]++
				if given[profile] > 1 {
					return usage("--floor is given twice for %.80q", profile)
				}
				all[profile] = serial
			}
			if len(all) == 0 {
				return usage("there is no floor: give --floor, or a --policy that has some")
			}
			s := n.statement(c, statement.KindFloor)
			for _, profile := range sortedKeys(all) {
				s.Floors = append(s.Floors, statement.Floor{Profile: profile, Serial: all[profile]})
			}
			return c.makeStatement(n, s)
		},
	}
	n.register(cmd)
	from.register(cmd, "")
	cmd.Flags().StringArrayVar(&floors, "floor", nil, "PROFILE=SERIAL or PREFIX*=SERIAL (may be repeated)")
	return cmd
}

func (c *cli) statementResetCommand() *cobra.Command {
	var n newStatement
	var digests []string
	var mark number
	r := &statement.Reset{}
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Set the mark of one profile back, once",
		Long: `reset makes the statement that sets what hosts remember of one profile to an exact serial, with the digests of the
scripts at it: the way back from a serial that was used up by a slip.`,
		Example: `  hostwarrant statement sign reset --profile tls-bootstrap --mark 41 --digest join=3b4c… --serial 1 --cluster prod-1 --key root-1 -o reset-1.statement`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, d := range digests {
				phase, digest, _ := strings.Cut(d, "=")
				at := slices.Index(script.Phases(), script.Phase(phase))
				if at < 0 || r.SHA256[at] != "" {
					return usage("--digest is PHASE=HEX, each phase once, not %.80q", d)
				}
				r.SHA256[at] = digest
			}
			if len(digests) == 0 {
				return usage("give the --digest of each phase's script at the serial of --mark")
			}
			s := n.statement(c, statement.KindReset)
			r.Mark = int64(mark)
			s.Reset = r
			return c.makeStatement(n, s)
		},
	}
	n.register(cmd)
	cmd.Flags().StringVar(&r.Profile, "profile", "", "name of the profile (required)")
	cmd.Flags().Var(&mark, "mark", "serial to set its mark to (required)")
	cmd.Flags().StringArrayVar(&digests, "digest", nil, "PHASE=HEX, digest of a phase's script at that serial (may be repeated)")
	required(cmd, "profile")
	required(cmd, "mark")
	return cmd
}
