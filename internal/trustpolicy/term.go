package trustpolicy

import "time"

// maxWarn bounds mode: warn, so that a trial cannot become the rule.
const maxWarn = 30 * 24 * time.Hour

// defaultMaxValidity is the default of joinProfiles.maxValidity.
const defaultMaxValidity = 90 * 24 * time.Hour

func (d *document) times(p *Policy) error {
	var err error
	if p.Issued, err = parseTime("issued", d.Issued); err != nil {
		return err
	}
	if p.Expires, err = parseTime("expires", d.Expires); err != nil {
		return err
	}
	// check: PolicyMalformed: dates the wrong way round are a slip
	if !p.Issued.Before(p.Expires) {
		return malformed("expires must be after issued")
	}
	p.MaxValidity = defaultMaxValidity
	if d.JoinProfiles.MaxValidity == "" {
		return nil
	}
	p.MaxValidity, err = parseDays(d.JoinProfiles.MaxValidity)
	return err
}

func (d *document) mode(p *Policy) error {
	p.mode = Mode(d.Mode)
	// check: PolicyMalformed: an unknown mode must not be read as one of the two
	if p.mode != Enforce && p.mode != Warn {
		return malformed("mode must be enforce or warn, not %.20q", d.Mode)
	}
	// check: PolicyMalformed: an end without a beginning is a slip
	if p.mode == Enforce && d.WarnUntil != "" {
		return malformed("warnUntil goes with mode: warn")
	}
	if p.mode == Enforce {
		return nil
	}
	var err error
	if p.warnUntil, err = parseTime("warnUntil", d.WarnUntil); err != nil {
		return err
	}
	// check: PolicyMalformed: a trial without an end would never enforce
	if p.warnUntil.After(p.Issued.Add(maxWarn)) {
		return malformed("warnUntil may be at most 30 days after issued, which is %s", p.Issued.Format(layout))
	}
	return nil
}
