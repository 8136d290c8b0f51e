package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// once is a flag that takes one value: pflag alone would silently take the last one given.
type once struct {
	pflag.Value
	given bool
}

func (o *once) Set(text string) error {
	if o.given {
		return errors.New("it is given twice, and takes one value")
	}
	o.given = true
	return o.Value.Set(text)
}

// mindFlags wants each flag of a command once, but those that may be repeated, and switches, where saying
// the same again changes nothing.
func mindFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, many := f.Value.(pflag.SliceValue); !many && f.NoOptDefVal == "" {
			f.Value = &once{Value: f.Value}
		}
	})
}
