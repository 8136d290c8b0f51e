package hostsetup

import (
	"fmt"
	"maps"
	"slices"
)

// loaded wants the running sshd to have read its configuration since that changed: what sshd -T says is what
// the files say, and the files of a host may be right while its sshd goes by older ones.
func (c *checker) loaded() {
	const where = "sshd"
	if c.facts.Loaded.IsZero() {
		c.notes = append(c.notes, note("no pid file names a running sshd: whether it has read its configuration since that changed is not known"))
		return
	}
	newest := ""
	for _, path := range slices.Sorted(maps.Keys(c.facts.Changed)) {
		// Of a file and its directory that changed together, the file is named.
		if newest == "" || !c.facts.Changed[path].Before(c.facts.Changed[newest]) {
			newest = path
		}
	}
	if newest != "" && c.facts.Changed[newest].After(c.facts.Loaded) {
		c.find(where, fmt.Sprintf("has not read %s since that changed, and goes by what was there before", newest),
			"systemctl reload ssh || kill -HUP $(cat "+c.facts.PIDFile+")")
	}
}
