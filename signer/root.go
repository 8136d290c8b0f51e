package main

import (
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func (c *cli) rootCommand() *cobra.Command {
	topics, err := readTopics()
	root := &cobra.Command{
		Version: programVersion(),
		Use:     "hostwarrant",
		Short:   "Sign what runs on pool hosts, and check it offline",
		Long: `hostwarrant signs the phase scripts of SSHJoinProfiles, parts of runtime profiles, and the trust policy that says who
may sign, and says offline what the cluster would say about an object.

It never touches the network, but for host check --ssh. Data goes to stdout, messages to stderr. Formats are explained by "help TOPIC".
Exit status: 0 done or verified, 1 refused, 2 wrong usage, 3 could not decide (I/O, key, nothing to verify).

Topics of help: ` + wrap(strings.Join(topicNames(topics), ", "), "", 100) + ".",
		Example: `  hostwarrant init keys
  hostwarrant sign -i profile.yaml --key keys/signer
  hostwarrant verify profile.yaml --policy keys/trust-policy.yaml --root keys/root.pub`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          needsCommand,
	}
	root.AddCommand(
		c.initCommand(), c.signCommand(), c.verifyCommand(), c.inspectCommand(),
		c.lintCommand(), c.bundleCommand(), c.keypairCommand(), c.policyCommand(), c.statementCommand(), c.fleetCommand(), c.hostCommand(), c.sigCommand(), c.versionCommand(),
	)
	root.Flags().Bool("version", false, "print the version, as the version command does")
	root.SetVersionTemplate(versionText())
	help := c.helpCommand(topics, err)
	root.AddCommand(help)
	root.SetHelpCommand(help)
	addCompletion(root)
	root.SetFlagErrorFunc(flagMistake)
	for _, cmd := range allCommands(root) {
		mindArguments(cmd)
		mindFlags(cmd)
		offerFormats(cmd)
	}
	nameAfter(c.program, root)
	return root
}

// allCommands are root and every command below it.
func allCommands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, child := range root.Commands() {
		all = append(all, allCommands(child)...)
	}
	return all
}

// group makes a command that only holds others. Cobra alone would answer an unknown one with help and 0.
func group(use, short, example string, children ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Long: short + ".", Example: example, Args: cobra.ArbitraryArgs, RunE: needsCommand}
	g.AddCommand(children...)
	return g
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    `version prints what git called the source when this program was built.`,
		Example: `  hostwarrant version`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.print([]byte(versionText()))
		},
	}
}

func versionText() string { return "hostwarrant " + programVersion() + "\n" }

// version is what git said when the program was built; the linker fills it in (Makefile).
var version string

// programVersion falls back to the version of the module, which `go install` knows.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
