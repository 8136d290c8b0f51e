package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/docs"
)

func (c *cli) helpCommand(topics map[string]string, err error) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]...",
		Short: "Explain a command or a format",
		Long: `help explains a command as its --help does, and a topic: a format in full, or what all commands share.
A word that is both gets both.

Topics: ` + wrap(strings.Join(topicNames(topics), ", "), "", 100),
		Example: `  hostwarrant help sign
  hostwarrant help sshsig`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(commandNames(cmd.Root()), topicNames(topics)...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			if err != nil {
				return undecided(err)
			}
			return c.help(cmd, words, topics)
		},
	}
}

func (c *cli) help(cmd *cobra.Command, words []string, topics map[string]string) error {
	root := cmd.Root()
	found, rest, err := root.Find(words)
	known := err == nil && len(rest) == 0
	if known {
		if err := found.Help(); err != nil {
			return undecided(fmt.Errorf("writing to stdout: %v", err))
		}
	}
	if len(words) == 1 {
		if page, ok := topics[words[0]]; ok {
			if known {
				page = "\n" + page
			}
			return c.print([]byte(plainText(page)))
		}
	}
	if known {
		return nil
	}
	mistake := usage("there is no command and no topic %q", strings.Join(words, " "))
	return didYouMean(mistake, cmd, cmd.CommandPath()+" ", words[len(words)-1], append(commandNames(root), topicNames(topics)...))
}

// readTopics are the pages of docs/spec, under their names, and what docs/cli.md says to all commands.
func readTopics() (map[string]string, error) {
	topics := map[string]string{}
	names, err := fs.Glob(docs.Pages(), "spec/*.md")
	if err != nil {
		return nil, fmt.Errorf("listing help pages: %v", err)
	}
	for _, name := range append(names, "cli.md") {
		page, err := fs.ReadFile(docs.Pages(), name)
		if err != nil {
			return nil, fmt.Errorf("reading help page: %v", err)
		}
		topics[strings.TrimSuffix(strings.TrimPrefix(name, "spec/"), ".md")] = string(page)
	}
	for topic, heading := range map[string]string{"exit-codes": "Exit codes", "keys": "Keys", "files": "What files may look like"} {
		_, rest, _ := strings.Cut(topics["cli"], "\n## "+heading+"\n")
		section, _, _ := strings.Cut(rest, "\n## ")
		topics[topic] = "# " + heading + "\n" + section
	}
	topics["policy"] = topics["trust-policy"]
	delete(topics, "cli")
	return topics, nil
}

func topicNames(topics map[string]string) []string {
	names := sortedKeys(topics)
	return slices.DeleteFunc(names, func(name string) bool { return name == "policy" }) // an alias
}
