package lint

import (
	"regexp"
	"slices"
	"strings"
)

// exemption is a comment that asks not to report a rule: # hostwarrant:ignore RULE reason.
type exemption struct {
	start, end int
	line       int  // of the comment
	own        bool // the comment stands on a line of its own, and is about the next line too
	rule       string
	reason     string
	used       bool
}

const ignoreWord = "hostwarrant:ignore"

// exemptions reads the comments of a script.
func (s *source) exemptions() []*exemption {
	if s.facts == nil {
		return nil
	}
	var all []*exemption
	form := regexp.MustCompile(`^` + ignoreWord + `(?:[ \t]+(\S+)(?:[ \t]+(.*))?)?$`)
	for _, c := range s.facts.comments {
		m := form.FindStringSubmatch(strings.TrimSpace(c.Text))
		if m == nil {
			continue
		}
		e := &exemption{rule: m[1], reason: strings.TrimSpace(m[2])}
		e.start, e.end = at(&c)
		e.line, _ = s.places.at(e.start)
		from, _ := s.line(e.start)
		e.own = strings.TrimSpace(string(s.text[from:e.start])) == ""
		all = append(all, e)
	}
	return all
}

// settle takes out what the script asks to ignore, and finds exemptions that are wrong.
func (s *source) settle(hits []hit) Report {
	exempt := s.exemptions()
	sortHits(hits)
	var r Report
	var kept []hit
	for _, h := range hits {
		if e := s.exempted(h, exempt); e != nil {
			r.Ignored = append(r.Ignored, Ignored{s.places.finding(h), e.reason})
			continue
		}
		kept = append(kept, h)
	}
	for _, e := range exempt {
		if h, wrong := e.fault(); wrong {
			kept = append(kept, h)
		}
	}
	sortHits(kept)
	for _, h := range kept {
		r.Findings = append(r.Findings, s.places.finding(h))
	}
	return r
}

// exempted gives the exemption that a hit falls under: on the line where it starts, or alone on the line above.
func (s *source) exempted(h hit, all []*exemption) *exemption {
	if isFixed(h.rule) {
		return nil
	}
	line, _ := s.places.at(h.start)
	for _, e := range all {
		if e.rule == h.rule && e.reason != "" && (e.line == line || e.own && e.line == line-1) {
			e.used = true
			return e
		}
	}
	return nil
}

func isFixed(id string) bool {
	return id == ruleIgnore || slices.ContainsFunc(rules(), func(r rule) bool { return r.fixed && r.id == id })
}

// fault says what is wrong with an exemption.
func (e *exemption) fault() (hit, bool) {
	h := hit{rule: ruleIgnore, level: Warning, start: e.start, end: e.end, hint: "# " + ignoreWord + " RULE reason"}
	switch {
	case e.rule == "":
		h.message = "the comment names no rule"
	case !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == e.rule }):
		h.message, h.hint = "there is no rule of the name that the comment gives", "hostwarrant help lint lists the rules"
	case isFixed(e.rule):
		h.message, h.hint = e.rule+" cannot be ignored", "mend what it points at"
	case e.reason == "":
		h.message = "the comment gives no reason for ignoring " + e.rule
	case !e.used:
		h.message, h.hint = "the comment ignores nothing: "+e.rule+" finds nothing on its line or the next", "delete it"
	default:
		return hit{}, false
	}
	return h, true
}
