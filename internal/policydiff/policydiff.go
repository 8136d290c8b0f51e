package policydiff

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Effect says whether a change lets more or less through. What is not known to let less through widens:
// who signs a policy must look at it. Only versions, dates of issue, names and text merely change.
type Effect string

const (
	Widens  Effect = "WIDENS"
	Reduces Effect = "REDUCES"
	Changes Effect = "changes"
)

// Change is one difference between two policies.
type Change struct {
	Effect Effect `json:"effect"`
	What   string `json:"what"`
}

// differ collects the changes from one policy to another.
type differ struct{ all []Change }

func (d *differ) add(e Effect, format string, args ...any) {
	d.all = append(d.all, Change{e, fmt.Sprintf(format, args...)})
}

// list compares lists whose entries allow something; where restricts, they forbid it.
func (d *differ) list(field string, was, is []string, restricts bool) {
	more, less := Widens, Reduces
	if restricts {
		more, less = Reduces, Widens
	}
	for _, entry := range is {
		if !slices.Contains(was, entry) {
			d.add(more, "%s: adds %s", field, entry)
		}
	}
	for _, entry := range was {
		if !slices.Contains(is, entry) {
			d.add(less, "%s: removes %s", field, entry)
		}
	}
}

// scope compares lists of which an absent one means everything.
func (d *differ) scope(field string, was, is []string) {
	switch {
	case len(was) == 0 && len(is) > 0:
		d.add(Reduces, "%s: everything, now only %s", field, strings.Join(is, ", "))
	case len(was) > 0 && len(is) == 0:
		d.add(Widens, "%s: only %s, now everything", field, strings.Join(was, ", "))
	default:
		d.list(field, was, is, false)
	}
}

// number compares limits: a higher one lets more through, or less where it demands something.
func (d *differ) number(field string, was, is int64, demands bool) {
	if was == is {
		return
	}
	e := Reduces
	if is > was != demands {
		e = Widens
	}
	d.add(e, "%s: %d, now %d", field, was, is)
}

// term compares ends of something that lets through until then.
func (d *differ) term(field string, was, is time.Time) {
	switch {
	case is.After(was):
		d.add(Widens, "%s: %s, now %s", field, stamp(was), stamp(is))
	case was.After(is):
		d.add(Reduces, "%s: %s, now %s", field, stamp(was), stamp(is))
	}
}

// exceptions compares what is let through until a date.
func (d *differ) exceptions(field string, was, is map[string]time.Time) {
	for _, name := range sortedKeys(is) {
		if before, known := was[name]; known {
			d.term(field+": "+name+", until", before, is[name])
			continue
		}
		d.add(Widens, "%s: adds %s until %s", field, name, stamp(is[name]))
	}
	for _, name := range sortedKeys(was) {
		if _, kept := is[name]; !kept {
			d.add(Reduces, "%s: removes %s until %s", field, name, stamp(was[name]))
		}
	}
}

// marks compares numbers below which something is refused.
func (d *differ) marks(field string, was, is map[string]int64) {
	for _, name := range sortedKeys(is) {
		if _, known := was[name]; !known {
			d.add(Reduces, "%s: adds %s %d", field, name, is[name])
			continue
		}
		d.number(field+"."+name, was[name], is[name], true)
	}
	for _, name := range sortedKeys(was) {
		if _, kept := is[name]; !kept {
			d.add(Widens, "%s: removes %s %d", field, name, was[name])
		}
	}
}

// ordered compares lists whose order counts.
func (d *differ) ordered(field string, was, is []string) {
	if !slices.Equal(was, is) {
		d.add(Widens, "%s: %s, now %s", field, listOrNone(was), listOrNone(is))
	}
}

// Compare lists what changes from was to is: what lets more through first.
func Compare(was, is *trustpolicy.Policy) []Change {
	d := &differ{}
	d.head(was, is)
	d.clusters(was, is)
	d.signers(was, is)
	d.hosts(was, is)
	d.marks("floors", was.Floors, is.Floors)
	d.classes(was, is)
	d.rest(was, is)
	if len(d.all) == 0 && was.Digest != is.Digest {
		d.add(Changes, "only the text: comments, order or spelling")
	}
	order := []Effect{Widens, Reduces, Changes}
	slices.SortStableFunc(d.all, func(a, b Change) int { return slices.Index(order, a.Effect) - slices.Index(order, b.Effect) })
	return d.all
}

// version compares numbers that only rise.
func (d *differ) version(field string, was, is int) {
	switch {
	case is > was:
		d.add(Changes, "%s: %d, now %d", field, was, is)
	case is < was:
		d.add(Widens, "%s: %d, now %d", field, was, is)
	}
}

func (d *differ) head(was, is *trustpolicy.Policy) {
	d.version("version", was.Version, is.Version)
	d.version("rootVersion", was.RootVersion, is.RootVersion)
	if !was.Issued.Equal(is.Issued) {
		d.add(Changes, "issued: %s, now %s", stamp(was.Issued), stamp(is.Issued))
	}
	d.term("expires", was.Expires, is.Expires)
	switch a, b := was.WarnUntil(), is.WarnUntil(); {
	case a.IsZero() && !b.IsZero():
		d.add(Widens, "mode: enforce, now warn until %s: admission only warns", stamp(b))
	case !a.IsZero() && b.IsZero():
		d.add(Reduces, "mode: warn, now enforce")
	default:
		d.term("warnUntil", a, b)
	}
	if was.RequireWarrant && !is.RequireWarrant {
		d.add(Widens, "requireWarrant: scripts without a warrant are taken")
	}
	if !was.RequireWarrant && is.RequireWarrant {
		d.add(Reduces, "requireWarrant: scripts without a warrant are refused")
	}
	d.number("maxValidity in days", int64(was.MaxValidity.Hours()/24), int64(is.MaxValidity.Hours()/24), false)
	for _, phase := range script.Phases() {
		d.number("thresholds."+string(phase), int64(was.Thresholds[phase]), int64(is.Thresholds[phase]), true)
	}
}

// Reductions are the sentences of what next lets less through than was.
func Reductions(was, next *trustpolicy.Policy) []string {
	var all []string
	for _, change := range Compare(was, next) {
		if change.Effect == Reduces {
			all = append(all, change.What)
		}
	}
	return all
}
