package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// The names under which kubectl finds a plugin `kubectl hostwarrant`, and what completes its arguments.
const (
	pluginName   = "kubectl-hostwarrant"
	completeName = "kubectl_complete-hostwarrant"
)

// programName is the name that the program was called by, without directory and .exe.
func programName(arg0 string) string {
	return strings.TrimSuffix(filepath.Base(arg0), ".exe")
}

// nameAfter lets usage texts show the program as it was called.
func nameAfter(program string, root *cobra.Command) {
	if program != pluginName {
		return
	}
	const called = "kubectl hostwarrant"
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: called}
	word := regexp.MustCompile(`(?m)(^  |\| )hostwarrant `)
	for _, cmd := range allCommands(root) {
		cmd.Example = word.ReplaceAllString(cmd.Example, "${1}"+called+" ")
	}
}

// arguments are those of the command line. kubectl calls a second name of the program for completions.
func arguments(program string, args []string) []string {
	if program == completeName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}
