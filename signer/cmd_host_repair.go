package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
)

type repairOptions struct {
	hostsetup.Repair
	serial number
	yes    bool
}

func (c *cli) hostRepairCommand() *cobra.Command {
	var o repairOptions
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Reset what a host remembers, where it is broken",
		Long: `repair mends the state of the host that it runs on, as root: /var/lib/hostwarrant missing or not root's alone, a mark, the
time floor, the run lock or an accepted statement that is damaged, the record of a run that was cut short. Without flags it says what it would
do, and does nothing. --yes does that; naming a thing does that alone. Each action is printed, and logged with logger.

What was wrong is set aside in /var/lib/hostwarrant/repaired, not deleted. A mark that is sound is never lowered here: a
reset statement does that, which the roots sign. Files that provision puts on a host are mended by running it again.

Exit status: 0 nothing is broken, or all of it was mended; 1 something is still broken, or it was refused; 3 the host could
not be asked, or was never set up.`,
		Example: `  hostwarrant host repair
  hostwarrant host repair --yes
  hostwarrant host repair --mark tls-bootstrap --serial 42`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Serial = -1
			if cmd.Flags().Changed("serial") {
				o.Serial = int64(o.serial)
			}
			return c.hostRepair(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.State, "state", false, "make the directory of the state, root's alone")
	f.StringVar(&o.Mark, "mark", "", "profile whose mark is broken")
	f.Var(&o.serial, "serial", "what the mark is to say: the serial that this host has seen last (default: the floor is what holds)")
	f.BoolVar(&o.TimeFloor, "time-floor", false, "set the time floor to the clock's time")
	f.BoolVar(&o.Lock, "lock", false, "set the run lock aside, if no script runs")
	f.StringVar(&o.Run, "run", "", "id of a run whose record was cut short: set it aside, so that the run may run again")
	f.StringVar(&o.Statement, "statement", "", "kind of an accepted statement that was damaged: set it aside")
	f.BoolVar(&o.yes, "yes", false, "mend all that is broken")
	return cmd
}

func (c *cli) hostRepair(ctx context.Context, o repairOptions) error {
	if o.Serial >= 0 && o.Mark == "" {
		return usage("--serial goes with --mark")
	}
	facts, err := remote{}.facts(ctx, hostsetup.FactsScript(hostsetup.AnyAddress()))
	if err != nil {
		return err
	}
	return c.repair(ctx, o, facts, hostState{root: "/"})
}

// repair mends a host of which all is known.
func (c *cli) repair(ctx context.Context, o repairOptions, facts *hostsetup.Facts, state hostState) error {
	// Nothing is broken on a machine that has nothing, and state alone makes no host of it.
	if !facts.IsSetUp() {
		return &failure{code: exitUndecided, err: errors.New("this is no host that was set up: there is no directory " + hostsetup.TrustDir), hint: "hostwarrant host provision renders what sets one up"}
	}
	actions, unmended, err := o.Plan(facts)
	if err != nil {
		return refused("this host", err)
	}
	return c.mend(ctx, actions, unmended, o.yes || o.Named(), state)
}

// mend carries the actions out, or only tells them.
func (c *cli) mend(ctx context.Context, actions []hostsetup.Action, unmended []string, really bool, state hostState) error {
	for _, a := range actions {
		if !really {
			if err := c.print([]byte("would " + a.Say + "\n")); err != nil {
				return err
			}
			continue
		}
		c.log(ctx, a.Say)
		if err := state.carryOut(a); err != nil {
			return undecided(fmt.Errorf("%s: %v", a.Say, err))
		}
		if err := c.print([]byte("done: " + a.Say + "\n")); err != nil {
			return err
		}
	}
	for _, text := range unmended {
		c.say("error", "%s", text)
	}
	switch {
	case len(unmended) > 0:
		return &failure{code: exitRefused}
	case len(actions) > 0 && !really:
		return &failure{code: exitRefused, err: fmt.Errorf("%s to mend, and nothing was done", plural(len(actions), "thing")), hint: "hostwarrant host repair --yes does it"}
	case len(actions) == 0:
		return c.print([]byte("nothing is broken\n"))
	}
	return nil
}

// log writes to the host's journal what is about to happen.
func (c *cli) log(ctx context.Context, text string) {
	if out, err := exec.CommandContext(ctx, "/usr/bin/logger", "-t", "hostwarrant", "-p", "authpriv.notice", "--", "host repair: "+text).CombinedOutput(); err != nil {
		c.say("warning", "this is not in the journal: %v: %s", err, out)
	}
}
