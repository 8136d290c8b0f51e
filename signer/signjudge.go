package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// judgeFlags name the policy by which a result is judged before it is written.
type judgeFlags struct {
	trust
	policy string
	flags  *pflag.FlagSet
}

func (f *judgeFlags) optional(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "", "judge the result by this TrustPolicy before it is written")
	f.register(cmd, ", with --policy")
	f.flags = cmd.Flags()
}

func (f *judgeFlags) check() error {
	if (f.policy == "") != (f.roots == "") {
		return usage("--policy and --root go together")
	}
	if f.policy == "" && f.flags.Changed("cluster") {
		return usage("--cluster goes with --policy")
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
		if err := s.eachCounts(p, phase); err != nil {
			return err
		}
		d := verify.Phase(s.judge.snapshot, p, phase)
		if d.Reason == decision.ThresholdNotMet {
			s.c.say("note", "%s: %s: %s; next: hostwarrant sign --add, by another signer", s.subject, phase, d.What)
			continue
		}
		// check: SignerScope,SignerUnknown,Expired: what the cluster refuses is better found before it is signed
		if !d.Allowed() {
			return asError(d)
		}
		for _, w := range d.Warnings {
			s.advise("%s: %s", s.subject, w)
		}
	}
	return nil
}

// eachCounts wants every signature that was just made to count by itself: behind those of others, one
// that counts for nothing would not be noticed.
func (s *signing) eachCounts(p *object.JoinProfile, phase script.Phase) error {
	for _, text := range blocks(p.Signatures[phase]) {
		made, err := sshsig.ParseAllWithCertificates([]byte(text))
		if err != nil || !s.holds(made[0].PublicKey()) {
			continue
		}
		alone := *p
		alone.Signatures = map[script.Phase]string{phase: text}
		d := verify.Phase(s.judge.snapshot, &alone, phase)
		// check: SignerUnknown,SignerScope: a second signer who thinks that theirs was the one that was missing
		if !d.Allowed() && d.Reason != decision.ThresholdNotMet {
			return asError(d)
		}
	}
	return nil
}

func asError(d decision.Decision) error {
	return decision.Errorf(d.Reason, "%s", d.What).At(d.Where).Try(d.Hint)
}
