package bundle

import (
	"maps"
	"reflect"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// Bounds of a report: of conflicts, of the members one of them names, and of its key.
const (
	MaxConflicts = 100
	MaxNamed     = 16
	maxKey       = 256
)

// Conflict is something that members of equal strength say differently. It is decided,
// not refused; but where no priority of the policy decides it, hashes do.
type Conflict struct {
	// Class is the winner's.
	Class string `json:"class"`
	// Path is the part of the spec, Key the entry in it; empty where the part is one value.
	Path string `json:"path"`
	Key  string `json:"key,omitempty"`
	// Members set it, as class/name, in the order of assembly; at most MaxNamed, and More that are not named.
	Members []string `json:"members"`
	More    int      `json:"more,omitempty"`
	// Winner is the member whose value counts, unless a stronger class sets it too.
	Winner string `json:"winner"`
	// ByPolicy says that the policy's priority chose the winner.
	ByPolicy bool `json:"byPolicy,omitempty"`
}

// contested is a part of the spec of which members may say different things.
type contested struct {
	path string
	// says gives what one member says: by key, or under "" where the part is one value.
	says func(*spec) map[string]any
}

func contestedParts() []contested {
	return []contested{
		{"seccompProfile", func(s *spec) map[string]any { return scalar(seccomp(s)) }},
		{"imageID", func(s *spec) map[string]any { return scalar(s.ImageID, s.ImageID != "") }},
		{"imageTag", func(s *spec) map[string]any { return scalar(s.ImageTag, s.ImageTag != "") }},
		{"rulePolicies", func(s *spec) map[string]any { return entries(s.RulePolicies) }},
		{"labelSelector", func(s *spec) map[string]any { return entries(s.MatchLabels) }},
		{"ingress", func(s *spec) map[string]any { return neighbors(s.Ingress) }},
		{"egress", func(s *spec) map[string]any { return neighbors(s.Egress) }},
	}
}

func scalar(value any, set bool) map[string]any {
	if !set {
		return nil
	}
	return map[string]any{"": value}
}

func entries[V any](of map[string]V) map[string]any {
	all := make(map[string]any, len(of))
	for key, value := range of {
		all[key] = value
	}
	return all
}

func neighbors(of []fragment.Neighbor) map[string]any {
	all := make(map[string]any, len(of))
	for _, n := range of {
		all[n.Identifier] = n
	}
	return all
}

// dispute is what members of one strength say of one key.
type dispute struct {
	members []ranked
	value   any // of the last of them
	differ  bool
}

// conflicts lists what members of equal strength contradict each other in, part by part,
// and says how many more there are.
func conflicts(sorted []ranked) (listed []Conflict, more int) {
	for _, part := range contestedParts() {
		for equals := range byStrength(sorted) {
			disputes := disputesOf(part, equals)
			for _, key := range slices.Sorted(maps.Keys(disputes)) {
				switch {
				case !disputes[key].differ:
				case len(listed) == MaxConflicts:
					more++
				default:
					listed = append(listed, disputes[key].conflict(part.path, key))
				}
			}
		}
	}
	return listed, more
}

// byStrength gives the runs of members whose classes are equally strong.
func byStrength(sorted []ranked) func(yield func([]ranked) bool) {
	return func(yield func([]ranked) bool) {
		for start, end := 0, 0; start < len(sorted); start = end {
			for end = start; end < len(sorted) && sorted[end].class == sorted[start].class; end++ {
			}
			if !yield(sorted[start:end]) {
				return
			}
		}
	}
}

func disputesOf(part contested, equals []ranked) map[string]*dispute {
	all := map[string]*dispute{}
	for _, f := range equals {
		for key, value := range part.says(f.Profile) {
			d := all[key]
			if d == nil {
				d = &dispute{value: value}
				all[key] = d
			}
			d.differ = d.differ || !reflect.DeepEqual(d.value, value)
			d.members, d.value = append(d.members, f), value
		}
	}
	return all
}

func (d *dispute) conflict(path, key string) Conflict {
	winner := d.members[len(d.members)-1]
	c := Conflict{Class: winner.Class, Path: path, Key: decision.OneLine(key, maxKey), Winner: MemberName(winner.Class, winner.Name), ByPolicy: winner.member > 0}
	names := make([]string, len(d.members))
	for i, f := range d.members {
		names[i] = MemberName(f.Class, f.Name)
	}
	c.Members, c.More = named(names)
	return c
}

// named gives the first MaxNamed, and how many more there are.
func named(all []string) (names []string, more int) {
	n := min(len(all), MaxNamed)
	return all[:n:n], len(all) - n
}
