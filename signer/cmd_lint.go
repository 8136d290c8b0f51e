package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/lint"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/signer/sarif"
)

func (c *cli) lintCommand() *cobra.Command {
	var phase, format, severity string
	cmd := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Find what will bite in phase scripts and their warrants",
		Long: `lint reads phase scripts as bash would and points at what gives secrets away, runs code that nobody signed, or
fails only on the host. "hostwarrant help lint" lists the rules; "# hostwarrant:ignore RULE reason" in a script keeps one
from being reported.

PATH is a phase script, a YAML or JSON file of SSHJoinProfiles (lists too), "-" for stdin, or a directory: of such
files at any depth, or of phase scripts.

Exit status: 0 no finding at or above --severity, 1 there are some, 2 wrong usage, 3 nothing to lint, or it cannot
be read.`,
		Example: `  hostwarrant lint profile.yaml
  hostwarrant lint scripts/ --severity error -o sarif > lint.sarif
  hostwarrant lint - --phase join < join.sh`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			if !slices.Contains([]string{"text", "json", "sarif"}, format) {
				return usage("-o takes text, json or sarif, not %q", format)
			}
			if phase != "" && !script.Phase(phase).Known() {
				return usage("--phase takes install, join, leave or uninstall, not %q", phase)
			}
			threshold, err := parseSeverity(severity)
			if err != nil {
				return err
			}
			return c.lint(paths, script.Phase(phase), format, threshold)
		},
	}
	cmd.Flags().StringVar(&phase, "phase", "", "phase of a script whose file name does not say it")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, json or sarif")
	cmd.Flags().StringVar(&severity, "severity", "warning", "lowest severity that fails: note, warning or error")
	offer(cmd, "phase", phaseNames()...)
	offer(cmd, "severity", severityNames()...)
	return cmd
}

func phaseNames() []string {
	var names []string
	for _, p := range script.Phases() {
		names = append(names, string(p))
	}
	return names
}

func severityNames() []string {
	var names []string
	for _, s := range lint.Severities() {
		names = append(names, s.String())
	}
	return names
}

func parseSeverity(word string) (lint.Severity, error) {
	for _, s := range lint.Severities() {
		if s.String() == word {
			return s, nil
		}
	}
	return 0, usage("--severity takes note, warning or error, not %q", word)
}

func (c *cli) lint(paths []string, phase script.Phase, format string, threshold lint.Severity) error {
	units, err := c.lintUnits(paths, phase)
	if err != nil {
		return err
	}
	rows, failed := []lintRow{}, false
	for _, u := range units {
		report := lint.Check(u.text, u.phase)
		for _, f := range report.Findings {
			rows = append(rows, u.row(f, ""))
			failed = failed || f.Severity >= threshold
		}
		for _, i := range report.Ignored {
			rows = append(rows, u.row(i.Finding, i.Reason))
		}
	}
	if err := c.printLint(rows, format); err != nil {
		return err
	}
	if failed {
		return &failure{code: exitRefused}
	}
	return nil
}

// lintRow is a finding in JSON (docs/cli.md). Line and column are those of the file; where the script stands in it
// otherwise than line by line, they are those of its field.
type lintRow struct {
	Path       string `json:"path"`
	Document   string `json:"document,omitempty"`
	Profile    string `json:"profile,omitempty"`
	Phase      string `json:"phase"`
	Rule       string `json:"rule"`
	Severity   string `json:"severity"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	EndLine    int    `json:"endLine"`
	EndColumn  int    `json:"endColumn"`
	ScriptLine int    `json:"scriptLine"`
	Message    string `json:"message"`
	Hint       string `json:"hint,omitempty"`
	Ignored    string `json:"ignored,omitempty"`
}

func (c *cli) printLint(rows []lintRow, format string) error {
	switch format {
	case "json":
		return c.printJSON(rows)
	case "sarif":
		return c.printLintSARIF(rows)
	}
	ignored := 0
	for _, r := range rows {
		if r.Ignored != "" {
			ignored++
			continue
		}
		if err := c.print([]byte(r.text())); err != nil {
			return err
		}
	}
	if ignored > 0 {
		c.say("note", "%d findings are ignored by comments in the scripts; -o json shows them", ignored)
	}
	return nil
}

// text is a finding as compilers write it, and its hint.
func (r lintRow) text() string {
	where := ""
	if r.Profile != "" {
		where = fmt.Sprintf("%s, %s, line %d: ", shown(r.Profile), r.Phase, r.ScriptLine)
	}
	s := fmt.Sprintf("%s:%d:%d: %s: %s%s [%s]\n", place(r.Path, ""), r.Line, r.Column, r.Severity, where, r.Message, r.Rule)
	if r.Hint != "" {
		s += "  hint: " + r.Hint + "\n"
	}
	return s
}

// sarifTool is the one name under which code scanning lists what this program finds.
func sarifTool() sarif.Tool {
	return sarif.Tool{Name: "hostwarrant", Version: strings.Trim(programVersion(), "()")}
}

func (c *cli) printLintSARIF(rows []lintRow) error {
	tool := sarifTool()
	for _, r := range lint.Rules() {
		tool.Rules = append(tool.Rules, sarif.Rule{ID: r.ID, Level: sarif.Level(r.Level.String()), Summary: r.Summary})
	}
	var results []sarif.Result
	for _, r := range rows {
		results = append(results, sarif.Result{
			Rule: r.Rule, Level: sarif.Level(r.Severity), Message: r.Message, Hint: r.Hint, Path: relative(r.Path),
			Region: sarif.Region{Line: r.Line, Col: r.Column, EndLine: r.EndLine, EndCol: r.EndColumn}, Ignored: r.Ignored,
		})
	}
	log, err := sarif.Write(tool, results)
	if err != nil {
		return undecided(err)
	}
	return c.print(log)
}
