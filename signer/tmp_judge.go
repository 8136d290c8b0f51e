package main

import (
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

func judgeFragment(s verify.Snapshot, o *fragment.Object) (*fragment.Fragment, decision.Decision) {
	f, err := fragment.Verify(o)
	if err != nil {
		return nil, decision.From(err).Denied(o.Kind, o.Name)
	}
	signers := s.Policy.FragmentClasses[f.Class].Signers
	if f.Rules != nil {
		signers = s.Policy.RuleClasses[f.Class].Signers
	}
	if !slices.Contains(signers, f.Signer) {
		return f, decision.Errorf(decision.SignerUnknown, "no").Denied(o.Kind, o.Name)
	}
	return f, decision.Admit(o.Kind, o.Name, "x")
}
