package trustpolicy

func (p *Policy) Floor(string) (int64, bool) { return 0, false }

func (s Signer) CoversTargets([]string) bool { return true }

func (s Signer) Scoped() bool { return len(s.Profiles)+len(s.Phases)+len(s.Targets) > 0 }
