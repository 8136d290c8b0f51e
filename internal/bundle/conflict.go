package bundle

import (
	"iter"
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
	// tell says what one member says: by key, or under "" where the part is one value.
	tell func(s *spec, say func(key string, value any))
}

func contestedParts() []contested {
	return []contested{
		{"seccompProfile", func(s *spec, say func(string, any)) {
			if isSet(&s.SeccompProfile) {
				say("", &s.SeccompProfile)
			}
		}},
		{"imageID", func(s *spec, say func(string, any)) { text(s.ImageID, say) }},
		{"imageTag", func(s *spec, say func(string, any)) { text(s.ImageTag, say) }},
		{"rulePolicies", func(s *spec, say func(string, any)) { entries(s.RulePolicies, say) }},
		{"labelSelector", func(s *spec, say func(string, any)) { entries(s.MatchLabels, say) }},
		{"ingress", func(s *spec, say func(string, any)) { neighbors(s.Ingress, say) }},
		{"egress", func(s *spec, say func(string, any)) { neighbors(s.Egress, say) }},
	}
}

func text(value string, say func(string, any)) {
	if value != "" {
		say("", value)
	}
}

func entries[V any](of map[string]V, say func(string, any)) {
	for key, value := range of {
		say(key, value)
	}
}

func neighbors(of []fragment.Neighbor, say func(string, any)) {
	for i := range of {
		say(of[i].Identifier, &of[i])
	}
}

// conflicts lists what members of equal strength contradict each other in, and says how many more there are.
func conflicts(sorted []ranked) (listed []Conflict, more int) {
	for equals := range byStrength(sorted) {
		parts := contestedParts()
		said := hear(parts, equals)
		for i, part := range parts {
			for _, key := range slices.Sorted(maps.Keys(said[i])) {
				switch d := said[i][key]; {
				case !d.settle().differ:
				case len(listed) == MaxConflicts:
					more++
				default:
					listed = append(listed, d.conflict(part.path, key))
				}
			}
		}
	}
	return listed, more
}

// byStrength gives the runs of members whose classes are equally strong.
func byStrength(sorted []ranked) iter.Seq[[]ranked] {
	return func(yield func([]ranked) bool) {
		for len(sorted) > 0 {
			run := 1
			for run < len(sorted) && sorted[run].class == sorted[0].class {
				run++
			}
			if !yield(sorted[:run]) {
				return
			}
			sorted = sorted[run:]
		}
	}
}

// hear gives, for each part, what members say of each key. It looks at each member once.
func hear(parts []contested, members []ranked) []map[string]*dispute {
	said, says := make([]map[string]*dispute, len(parts)), make([]func(string, any), len(parts))
	var now ranked
	for i := range parts {
		said[i] = map[string]*dispute{}
		says[i] = func(key string, value any) {
			d := said[i][key]
			if d == nil {
				d = &dispute{}
				said[i][key] = d
			}
			d.hear(now, value)
		}
	}
	for _, now = range members {
		for i := range parts {
			parts[i].tell(now.Profile, says[i])
		}
	}
	return said
}

// dispute is what members of one strength say of one key.
type dispute struct {
	first, last any // values
	differ      bool
	members     []string // at most MaxNamed
	count       int
	winner      ranked
}

// hear takes what a member says. Who says several things means the last of them.
func (d *dispute) hear(member ranked, value any) {
	if d.count == 0 || d.winner.Fragment != member.Fragment {
		d.settle()
		d.winner = member
		if d.count++; d.count <= MaxNamed {
			d.members = append(d.members, MemberName(member.Class, member.Name))
		}
	}
	d.last = value
}

// settle holds what the last member said in the end against what the first did.
func (d *dispute) settle() *dispute {
	if d.count == 1 {
		d.first = d.last
	}
	d.differ = d.differ || d.count > 1 && !reflect.DeepEqual(d.first, d.last)
	return d
}

func (d *dispute) conflict(path, key string) Conflict {
	return Conflict{
		Class: d.winner.Class, Path: path, Key: decision.OneLine(key, maxKey), Members: d.members, More: d.count - len(d.members),
		Winner: MemberName(d.winner.Class, d.winner.Name), ByPolicy: d.winner.member > 0,
	}
}

// named gives the first MaxNamed, and how many more there are.
func named(all []string) (names []string, more int) {
	n := min(len(all), MaxNamed)
	return all[:n:n], len(all) - n
}
