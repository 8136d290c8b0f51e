package main

import (
	"github.com/spf13/cobra"
)

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
