package trustpolicy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	clusterID = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	// pattern is a profile name or a prefix followed by "*". Nothing else is ever
	// rendered into a host's allowed_signers.
	pattern = regexp.MustCompile(`^[a-z0-9.-]*\*$|^[a-z0-9.-]+$`)
	// label is a Kubernetes label value that is not empty, as host classes are.
	label = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	// dnsName is a Kubernetes object name.
	dnsName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
)

// ValidClusterID reports whether a cluster may be called so.
func ValidClusterID(id string) bool { return clusterID.MatchString(id) }

// ValidObjectName reports whether an object, and so a bundle, may be called so.
func ValidObjectName(name string) bool { return dnsName.MatchString(name) }

// policy turns the document into a Policy, or says which field is wrong.
func (d *document) policy() (*Policy, error) {
	p := &Policy{Version: d.Version, RootVersion: d.RootVersion, RequireWarrant: true}
	if d.JoinProfiles.RequireWarrant != nil {
		p.RequireWarrant = *d.JoinProfiles.RequireWarrant
	}
	// check: PolicyMalformed: versions order policies; zero is "not given"
	if d.Version < 1 || d.RootVersion < 1 {
		return nil, malformed("version and rootVersion must be given, from 1")
	}
	// check: PolicyMalformed: no policy could ever follow the largest number, and other readers hold no more than 15 digits
	if int64(d.Version) > maxSerial || int64(d.RootVersion) > maxSerial {
		return nil, malformed("version and rootVersion are at most %d", int64(maxSerial))
	}
	parts := []func(*Policy) error{
		d.times, d.mode, d.clusters, d.signers, d.thresholds, d.unguarded, d.hosts, d.classes, d.learners, d.bundles,
		d.revocations, d.floors, d.resets, d.waivers,
	}
	for _, part := range parts {
		if err := part(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// patterns wants a list that grants something: profile names, or prefixes with "*".
func patterns(field string, list []string) error {
	// check: PolicyMalformed: an empty list is not "everything", and must not be taken for it
	if len(list) == 0 {
		return malformed("%s: an empty list grants nothing; leave the field out", field)
	}
	// check: PolicyMalformed: a pattern that is read in two ways widens a scope
	if i := slices.IndexFunc(list, func(s string) bool { return !pattern.MatchString(s) }); i >= 0 {
		return malformed("%s: %.80q is not a name or a prefix with *", field, list[i])
	}
	return nil
}

// layout is RFC 3339 in UTC only: a zone is a second spelling.
const layout = "2006-01-02T15:04:05Z"

// parseTime takes a time in whole seconds.
func parseTime(field, text string) (time.Time, error) {
	t, err := time.Parse(layout, text)
	// check: PolicyMalformed: Go takes fractions that the layout does not have; other readers would see another time, or none
	if err != nil || t.Format(layout) != text {
		if text == "" {
			return time.Time{}, malformed("%s is missing: a time like %q", field, "2026-11-29T00:00:00Z")
		}
		return time.Time{}, malformed("%s: %.40q is not a time like %q", field, text, "2026-11-29T00:00:00Z")
	}
	return t, nil
}

// dayCount is a number of days in its one spelling.
var dayCount = regexp.MustCompile(`^[1-9][0-9]{0,3}d$`)

// parseDays takes "90d"; days are 24 hours.
func parseDays(text string) (time.Duration, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	// check: PolicyMalformed: +90d and 090d are second spellings, and no limit is none
	if err != nil || !dayCount.MatchString(text) || n > 3650 {
		return 0, malformed("joinProfiles.maxValidity: %.20q is not a number of days like %q", text, "90d")
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// matches reports whether name is pattern, or starts with what stands before its "*".
func matches(pattern, name string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return name == pattern || wild && strings.HasPrefix(name, prefix)
}

// index names an item of a list in messages.
func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
