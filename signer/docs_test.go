package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// docs/cli.md and the commands must say the same.
func TestDocsMatchTheCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		sections[title] = body
	}
	root := (&cli{}).rootCommand()
	root.InitDefaultCompletionCmd()
	var seen []string
	for _, cmd := range commands(root) {
		seen = append(seen, cmd.CommandPath())
		body, there := sections[cmd.CommandPath()]
		if !there {
			t.Errorf("docs/cli.md has no section %q", cmd.CommandPath())
			continue
		}
		checkSection(t, cmd, body)
	}
	for title := range sections {
		if !slices.Contains(seen, title) {
			t.Errorf("docs/cli.md describes %q, which is no command", title)
		}
	}
}

// commands lists the commands below c; the shells of completion are cobra's own.
func commands(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, child := range c.Commands() {
		all = append(all, child)
		if child.Name() != "completion" {
			all = append(all, commands(child)...)
		}
	}
	return all
}

var (
	flagName  = regexp.MustCompile("(^|[ `(])--([a-z-]+)")
	flagUsage = regexp.MustCompile(`(?m)^ +(?:-[a-zA-Z], )?--([a-z-]+)`)
)

func checkSection(t *testing.T, cmd *cobra.Command, body string) {
	t.Helper()
	if cmd.Short == "" || cmd.Name() != "completion" && cmd.Example == "" {
		t.Errorf("%s needs a summary and an example in its help", cmd.CommandPath())
	}
	for _, line := range strings.Split(cmd.Example, "\n") {
		if !strings.Contains(body, "\n"+strings.TrimPrefix(line, "  ")+"\n") {
			t.Errorf("docs/cli.md: %s lacks the example %q", cmd.CommandPath(), line)
		}
	}
	for _, m := range flagUsage.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
		if m[1] != "help" && !strings.Contains(body, "`--"+m[1]+"`") {
			t.Errorf("docs/cli.md: %s does not explain --%s", cmd.CommandPath(), m[1])
		}
	}
	prose, _, _ := strings.Cut(body, "```")
	for _, m := range flagName.FindAllStringSubmatch(prose, -1) {
		if m[2] != "help" && cmd.Flags().Lookup(m[2]) == nil {
			t.Errorf("docs/cli.md: %s has no flag --%s", cmd.CommandPath(), m[2])
		}
	}
}
