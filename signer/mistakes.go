package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// needsCommand answers where a command that only holds others was called without one that it knows.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("%q needs a command: %s", cmd.CommandPath(), strings.Join(commandNames(cmd), ", "))
	}
	err := usage("unknown command %q for %q", args[0], cmd.CommandPath())
	return didYouMean(err, cmd, cmd.CommandPath()+" ", args[0], commandNames(cmd))
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

// flagMistake says which flag a misspelt one may have been.
func flagMistake(cmd *cobra.Command, err error) error {
	mistake := usage("%v", err)
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return mistake
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return didYouMean(mistake, cmd, "--", unknown.GetSpecifiedName(), names)
}

// didYouMean adds a hint at the names that are nearly word.
func didYouMean(err error, cmd *cobra.Command, prefix, word string, names []string) error {
	f, ok := errors.AsType[*failure](err)
	near := similar(word, names)
	if !ok || len(near) == 0 {
		return err
	}
	for i, name := range near {
		near[i] = prefix + name
	}
	f.hint = fmt.Sprintf("did you mean %s? See %s --help", strings.Join(near, " or "), cmd.CommandPath())
	return f
}

// mindArguments lets a command say in its own words which argument is missing or too many, and which
// required flag. Cobra counts ("requires at least 1 arg(s)") and does not know what they are called.
func mindArguments(cmd *cobra.Command) {
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check != nil {
			if err := check(cmd, args); err != nil {
				return argumentMistake(cmd, args, err)
			}
		}
		return missingFlags(cmd)
	}
}

func argumentMistake(cmd *cobra.Command, args []string, err error) error {
	wanted := strings.Fields(cmd.Use)[1:]
	needed := slices.DeleteFunc(slices.Clone(wanted), func(word string) bool { return strings.HasPrefix(word, "[") })
	switch {
	case len(args) < len(needed):
		return usage("%s needs %s: %s", commandWords(cmd), withArticle(strings.TrimSuffix(needed[len(args)], "...")), cmd.UseLine())
	case len(wanted) == 0:
		return usage("%s takes no argument, and got %q", commandWords(cmd), args[0])
	case len(args) > len(wanted):
		return usage("%s takes %s and no more, and got also %q", commandWords(cmd), strings.Join(wanted, " "), args[len(wanted)])
	}
	return usage("%s: %v", commandWords(cmd), err)
}

// missingFlags names the required flags that are not set, and what they are for if only one is missing.
func missingFlags(cmd *cobra.Command) error {
	var missing []string
	var purpose string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if required := f.Annotations[cobra.BashCompOneRequiredFlag]; len(required) > 0 && required[0] == "true" && !f.Changed {
			missing = append(missing, "--"+f.Name)
			purpose = strings.TrimSuffix(f.Usage, " (required)")
		}
	})
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return usage("%s needs %s: %s", commandWords(cmd), missing[0], purpose)
	}
	last := len(missing) - 1
	return usage("%s needs %s and %s", commandWords(cmd), strings.Join(missing[:last], ", "), missing[last])
}

// commandWords is the path of a command without the program.
func commandWords(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" ")
}

func withArticle(word string) string {
	if strings.ContainsRune("AEIO", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}
