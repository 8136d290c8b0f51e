package policydiff

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Scope says in words what a signer may vouch for.
func Scope(s trustpolicy.Signer) string {
	var parts []string
	if len(s.Profiles) > 0 {
		parts = append(parts, "profiles "+strings.Join(s.Profiles, ", "))
	}
	if len(s.Phases) > 0 {
		parts = append(parts, "phases "+joinPhases(s.Phases))
	}
	if len(s.Targets) > 0 {
		parts = append(parts, "targets "+strings.Join(s.Targets, ", "))
	}
	if len(parts) == 0 {
		return "everything"
	}
	return strings.Join(parts, "; ")
}

func joinPhases(phases []script.Phase) string {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

func texts(numbers []int) []string {
	var all []string
	for _, n := range numbers {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func listOrNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
