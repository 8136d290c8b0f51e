package main

import (
	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// judgeFlags name the policy by which a result is judged before it is written.
type judgeFlags struct {
	trust
	policy string
}

func (f *judgeFlags) optional(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "", "judge the result by this TrustPolicy before it is written")
	f.register(cmd, ", with --policy")
}

func (f *judgeFlags) check() error {
	if (f.policy == "") != (f.roots == "") {
		return usage("--policy and --root go together")
	}
	return nil
}

// load gives the judge, nil where none is wanted.
func (f *judgeFlags) load(c *cli) (*judge, error) {
	if f.policy == "" {
		return nil, nil
	}
	anchor, err := f.anchor()
	if err != nil {
		return nil, err
	}
	snapshot, err := c.snapshot(f.policy, anchor)
	if err != nil {
		return nil, err
	}
	return &judge{c: c, anchor: anchor, snapshot: snapshot}, nil
}

// judged refuses what the cluster would refuse, but for signatures that others have yet to add.
func (s *signing) judged(p *object.JoinProfile) error {
	if s.judge == nil {
		return nil
	}
	for _, phase := range p.Phases() {
		d := verify.Phase(s.judge.snapshot, p, phase)
		if d.Reason == decision.ThresholdNotMet {
			s.c.say("note", "%s/%s: %s: %s; next: hostwarrant sign --add, by another signer", p.Kind, shown(p.Name), phase, d.What)
			continue
		}
		// check: SignerScope,SignerUnknown,Expired: what the cluster refuses is better found before it is signed
		if !d.Allowed() {
			return decision.Errorf(d.Reason, "%s", d.What).At(d.Where).Try(d.Hint)
		}
		for _, w := range d.Warnings {
			s.c.say("warning", "%s/%s: %s", p.Kind, shown(p.Name), w)
		}
	}
	return nil
}
