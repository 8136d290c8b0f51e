package lint

// Rule is what people and tools may know of a rule. Each has a section of its name in docs/spec/lint.md.
type Rule struct {
	ID      string
	Level   Severity // of its gravest finding
	Summary string
}

// rule looks for one kind of mistake.
type rule struct {
	id      string
	level   Severity
	summary string
	tree    bool // works on the syntax tree, and is left out where there is none
	fixed   bool // cannot be ignored
	find    func(*source) []hit
}

// Rules lists the rules in the order of docs/spec/lint.md.
func Rules() []Rule {
	var all []Rule
	for _, r := range rules() {
		all = append(all, Rule{r.id, r.level, r.summary})
	}
	return append(all, Rule{ruleIgnore, Warning, "A hostwarrant:ignore comment has no reason, names no rule, or ignores nothing"})
}

// ruleIgnore is found by what reads the comments, after all others.
const ruleIgnore = "ignore-comment"

func rules() []rule {
	return []rule{
		{"parse-error", Error, "The shell cannot read the script", false, true, parseError},
		{"unsignable", Error, "No verifier takes these bytes", false, true, unsignable},
		{"warrant-malformed", Error, "The warrant block cannot be read", false, true, warrantMalformed},
		{"carriage-return", Error, "Lines end in CR LF, which bash takes as part of words", false, false, carriageReturn},
		{"foreign-shebang", Error, "The first line names another interpreter; phase scripts run under bash", false, false, foreignShebang},
		{"missing-strict-mode", Warning, "No set -euo pipefail before the first command", true, false, missingStrictMode},
		{"eval", Warning, "eval runs text as code", true, false, evalUsed},
		{"pipe-to-shell", Error, "Downloaded text runs as code that nobody signed", true, false, pipeToShell},
		{"unchecked-download", Warning, "A downloaded file is used without comparing a digest", true, false, uncheckedDownload},
		{"unquoted-parameter", Warning, "A parameter is split into words and expanded as a pattern", true, false, unquotedParameter},
		{"arithmetic-parameter", Warning, "A parameter is evaluated as arithmetic, which can run commands", true, false, arithmeticParameter},
		{"trace-secrets", Error, "set -x prints secrets into logs", true, false, traceSecrets},
		{"world-readable-secret", Error, "A secret is written to a file that everybody may read", true, false, worldReadableSecret},
		{"secret-argument", Warning, "A secret is an argument of a program, which every user can read", true, false, secretArgument},
		{"fixed-tmp-name", Warning, "A fixed name in a directory where everybody may write", true, false, fixedTmpName},
		{"undeclared-parameter", Error, "A KPSSH_ name that the script will not be given", true, false, undeclaredParameter},
		{"unused-parameter", Warning, "The warrant declares a parameter that the script does not use", true, false, unusedParameter},
		{"absent-parameter", Error, "The phase is not given a parameter that the script needs", true, false, absentParameter},
		{"cluster-not-pinned", Note, "Nothing in the script pins the cluster's endpoint and CA", true, false, clusterNotPinned},
		{"held-stdout", Warning, "A background child keeps the run open", true, false, heldStdout},
		{"own-directory", Error, "The script changes what guards the host", true, false, ownDirectory},
	}
}
