package trustpolicy

import (
	"maps"
	"regexp"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/fragment/specpath"
)

// FragmentClass says who may sign fragments of a class, and what those may set.
type FragmentClass struct {
	// Signers are fingerprints "key:…" (docs/spec/trust-policy.md).
	Signers          []string            `yaml:"signers"`
	AllowedSpecPaths []string            `yaml:"allowedSpecPaths"`
	Values           map[string][]string `yaml:"values"`
}

// RuleClass says who may sign rules of a class, and which.
type RuleClass struct {
	Signers        []string `yaml:"signers"`
	AllowedRuleIDs []string `yaml:"allowedRuleIDs"`
	MayDisable     bool     `yaml:"mayDisable"`
}

// BindingClass says who may sign rule bindings of a class.
type BindingClass struct {
	Signers []string `yaml:"signers"`
}

var (
	className     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	fragmentPrint = regexp.MustCompile(`^key:[0-9a-f]{64}$`)
	ruleID        = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)
)

func (d *document) classes(p *Policy) error {
	p.FragmentClasses, p.RuleClasses, p.BindingClasses = d.FragmentClasses, d.RuleClasses, d.BindingClasses
	for name, c := range d.FragmentClasses {
		if err := c.check("fragmentClasses", name); err != nil {
			return err
		}
	}
	for name, c := range d.RuleClasses {
		if err := c.check("ruleClasses", name); err != nil {
			return err
		}
	}
	for name, c := range d.BindingClasses {
		if err := class("bindingClasses", name, c.Signers); err != nil {
			return err
		}
	}
	return nil
}

// class checks what the three sorts have in common.
func class(sort, name string, signers []string) error {
	// check: PolicyMalformed: a class that no label can name leaves the real one without a rule
	if !className.MatchString(name) {
		return malformed("%s: %.80q is not a class name ([a-z0-9-], up to 63)", sort, name)
	}
	for i, signer := range signers {
		// check: PolicyMalformed: a signer is compared byte for byte; a wildcard or another hash matches nothing, or too much
		if !fragmentPrint.MatchString(signer) {
			return malformed("%s.%s.signers: %.80q is not key: and 64 lower-case hex digits", sort, name, signer)
		}
		// check: PolicyMalformed: a fact said twice is a slip
		if slices.Contains(signers[:i], signer) {
			return malformed("%s.%s.signers: %s stands there twice", sort, name, signer)
		}
	}
	return nil
}

func (c FragmentClass) check(sort, name string) error {
	if err := class(sort, name, c.Signers); err != nil {
		return err
	}
	known := func(path string) bool { return slices.Contains(specpath.Names(), path) }
	// check: PolicyMalformed: a path that does not exist is a slip that would leave the real one closed, or open
	if i := slices.IndexFunc(c.AllowedSpecPaths, func(path string) bool { return path != "*" && !known(path) }); i >= 0 {
		return malformed("%s.%s.allowedSpecPaths: %.80q is not a part of a ContainerProfile", sort, name, c.AllowedSpecPaths[i])
	}
	for _, path := range slices.Sorted(maps.Keys(c.Values)) {
		allowed := slices.Contains(c.AllowedSpecPaths, path) || slices.Contains(c.AllowedSpecPaths, "*") && known(path)
		// check: PolicyMalformed: a limit on a path that is misspelt limits nothing
		if !allowed {
			return malformed("%s.%s.values: %.80q is not among its allowedSpecPaths", sort, name, path)
		}
		// check: PolicyMalformed: an empty list is not "every value", and must not be taken for it
		if len(c.Values[path]) == 0 {
			return malformed("%s.%s.values.%s: an empty list allows nothing; leave the field out", sort, name, path)
		}
		// check: PolicyMalformed: a limit on what has no text to be matched limits nothing
		if !slices.Contains(valued(), path) {
			return malformed("%s.%s.values: %s has no values that can be matched; allow the path or do not", sort, name, path)
		}
		// check: PolicyMalformed: a pattern that is read in two ways lets through what nobody meant
		if i := slices.IndexFunc(c.Values[path], func(pattern string) bool { return !valuePattern(pattern) }); i >= 0 {
			return malformed("%s.%s.values.%s: %.80q is not a text with at most one *, at its beginning or end", sort, name, path, c.Values[path][i])
		}
	}
	return nil
}

func (c RuleClass) check(sort, name string) error {
	if err := class(sort, name, c.Signers); err != nil {
		return err
	}
	// check: PolicyMalformed: a rule id that cannot be is a slip
	if i := slices.IndexFunc(c.AllowedRuleIDs, func(id string) bool { return id != "*" && !ruleID.MatchString(id) }); i >= 0 {
		return malformed("%s.%s.allowedRuleIDs: %.80q is not a rule id", sort, name, c.AllowedRuleIDs[i])
	}
	return nil
}

func (d *document) learners(p *Policy) error {
	p.Learners = d.Learners
	// check: PolicyMalformed: what a learner writes is not judged: it is one account, by its whole name
	if i := slices.IndexFunc(d.Learners, func(name string) bool { return !account.MatchString(name) }); i >= 0 {
		return malformed("learners: %.80q is not the whole name of an account, as in system:serviceaccount:NAMESPACE:NAME", d.Learners[i])
	}
	return nil
}

// account is a user name as the API server knows it, without wildcards.
var account = regexp.MustCompile(`^[A-Za-z0-9:._@/-]{1,253}$`)
