package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/signer/sarif"
)

// warningRule is the rule of what is admitted and still worth a word.
const warningRule = "Warning"

// printSARIF writes what was refused or warned of, for code scanning. What verified is not in it.
func (c *cli) printSARIF(all []verdict) error {
	var results []sarif.Result
	for _, v := range all {
		d := v.Decision
		at := sarif.Result{Path: v.Path, Region: sarif.Region{Line: v.Line}}
		for _, warning := range d.Warnings {
			w := at
			w.Rule, w.Level, w.Message = warningRule, sarif.Warning, fmt.Sprintf("%s/%s: %s", d.Kind, d.Name, warning)
			results = append(results, w)
		}
		if d.Allowed() {
			continue
		}
		at.Rule, at.Level = string(d.Reason), sarif.Error
		at.Message = strings.Join(append([]string{d.Message()}, v.Details...), "; ")
		results = append(results, at)
	}
	tool := sarifTool()
	for _, r := range results {
		rule := sarif.Rule{ID: r.Rule, Level: r.Level, Summary: "refused: " + r.Rule}
		if r.Rule == warningRule {
			rule.Summary = "admitted, with a warning"
		}
		if !slices.ContainsFunc(tool.Rules, func(known sarif.Rule) bool { return known.ID == rule.ID }) {
			tool.Rules = append(tool.Rules, rule)
		}
	}
	text, err := sarif.Write(tool, results)
	if err != nil {
		return undecided(err)
	}
	return c.print(text)
}
