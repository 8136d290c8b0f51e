package hostsetup

import (
	"fmt"
	"path"
	"regexp"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
)

// work looks at where secrets of a run are for its time.
func (c *checker) work() {
	if e, there := c.facts.Entries[RunDir]; there {
		c.rootsOwn(RunDir, e, e.isDirectory(), "directory", 0o700)
	}
	if c.facts.RunSystem != "tmpfs" {
		c.find(RunDir, fmt.Sprintf("is on %.20s, not on a tmpfs: secrets of a run would stay on a disk", c.facts.RunSystem),
			"umount "+RunDir+"; mount -t tmpfs tmpfs /run, and again at each boot")
	}
}

// state looks at what the host remembers, which no setup gives it.
func (c *checker) state() {
	for _, dir := range c.facts.Odd {
		c.find(dir, "has names in it that nothing of ours makes", "ls -lab "+dir)
	}
	for _, name := range []string{"marks", "statements", "installed", "runs"} {
		dir := path.Join(StateDir, name)
		e, there := c.facts.Entries[dir]
		if !there {
			continue
		}
		if !c.rootAlone(dir, e, e.isDirectory(), "directory") {
			continue
		}
		paths := c.facts.below(dir)
		slices.Sort(paths)
		for _, p := range paths {
			c.rootAlone(p, c.facts.Entries[p], c.facts.Entries[p].isFile(), "plain file")
		}
	}
	for _, name := range []string{"time-floor", "running"} {
		p := path.Join(StateDir, name)
		if e, there := c.facts.Entries[p]; there {
			c.rootAlone(p, e, e.isFile(), "plain file")
		}
	}
	c.statements()
	c.marks()
	c.lock()
	c.records()
	c.readable()
}

// rootAlone wants what root alone may write.
func (c *checker) rootAlone(p string, e Entry, isType bool, kind string) bool {
	before := len(c.findings)
	if !isType {
		c.find(p, "is no "+kind, "look into it, then rm -r "+p)
	}
	if e.owner != 0 {
		c.find(p, fmt.Sprintf("belongs to user %d, not to root", e.owner), "look into it, then chown root:root "+p)
	}
	if e.permission()&0o022 != 0 {
		c.find(p, fmt.Sprintf("has mode %04o: others than root may write it", e.permission()), "look into it, then chmod go-w "+p)
	}
	return len(c.findings) == before
}

func (c *checker) marks() {
	dir := StateDir + "/marks"
	paths := c.facts.below(dir)
	slices.Sort(paths)
	for _, p := range paths {
		profile := path.Base(p)
		if !profileName.MatchString(profile) {
			c.find(p, "is not the mark of any profile", "ls -lab "+dir)
			continue
		}
		if _, ok := markSerial(c.facts.Contents[p]); !ok && c.facts.Entries[p].isFile() {
			c.find(p, "is no mark: every run of "+profile+" is refused with 22", "hostwarrant host repair --mark "+profile)
		}
	}
	floor := StateDir + "/time-floor"
	if _, there := c.facts.Entries[floor]; !there && len(paths) > 0 {
		c.find(floor, "is missing although there are marks: every run is refused with 22", "hostwarrant host repair --time-floor")
	}
}

// lockText is what the run lock holds: nothing, or who runs.
var lockText = regexp.MustCompile(`^([1-9][0-9]* [0-9]+ [0-9a-f-]{36} (-|[0-9a-f]{32})\n)?$`)

func (c *checker) lock() {
	p := StateDir + "/running"
	if text, there := c.facts.Contents[p]; there && !lockText.Match(text) {
		c.find(p, "is no run lock", "hostwarrant host repair --lock")
	}
}

// runText is what a run record holds: its start, and its outcome once there is one.
var runText = regexp.MustCompile(`^start [a-z]+ [0-9]+ [0-9]+ [0-9a-f-]{36}\n(kpssh-outcome: v1 .+\n)?$`)

// records says which runs are answered with "ended, and nothing more is known".
func (c *checker) records() {
	for _, p := range c.facts.below(StateDir + "/runs") {
		if !runText.Match(c.facts.Contents[p]) {
			c.notes = append(c.notes, note("%s is torn: its run is never run again (hostwarrant host repair --run %s forgets it)", p, path.Base(p)))
		}
	}
}

// readable wants the two lists to be such as ssh-keygen reads whole, whoever wrote them.
func (c *checker) readable() {
	p := TrustDir + "/revoked_keys"
	if text, there := c.facts.Contents[p]; there {
		if _, err := krl.Parse(text); err != nil {
			c.find(p, "is no list of revoked keys: "+decision.From(err).What+"; every run is refused with 23", setUpAgain)
		}
	}
	p = TrustDir + "/allowed_signers"
	if text, there := c.facts.Contents[p]; there {
		if _, err := allowedsigners.Parse(text); err != nil {
			c.find(p, "is no list of signers: "+decision.From(err).What, setUpAgain)
		}
	}
}
