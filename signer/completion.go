package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// offer completes a flag that takes one of a few words.
func offer(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(fmt.Sprintf("%s --%s: %v", cmd.CommandPath(), flag, err)) // no such flag, which a test of any command finds
	}
}

// offerFormats completes -o where it is a format, which is text by default: the words are those of its help.
func offerFormats(cmd *cobra.Command) {
	f := cmd.Flags().Lookup("output")
	if f == nil || f.DefValue != "text" {
		return
	}
	isWord := func(r rune) bool { return r < 'a' || r > 'z' }
	words := strings.FieldsFunc(f.Usage, isWord)
	offer(cmd, f.Name, slices.DeleteFunc(words, func(w string) bool { return w == "or" })...)
}

// addCompletion adds cobra's completion command, with examples, and an error for an unknown shell.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, needsCommand
		cmd.Example = `  hostwarrant completion bash > /etc/bash_completion.d/hostwarrant`
		for _, shell := range cmd.Commands() {
			shell.Example = installExample(shell.Name())
		}
	}
}

func installExample(shell string) string {
	switch shell {
	case "zsh":
		return `  hostwarrant completion zsh > "${fpath[1]}/_hostwarrant"`
	case "fish":
		return `  hostwarrant completion fish > ~/.config/fish/completions/hostwarrant.fish`
	case "powershell":
		return `  hostwarrant completion powershell | Out-String | Invoke-Expression`
	}
	return `  hostwarrant completion bash > /etc/bash_completion.d/hostwarrant`
}
