package hostsetup

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Finding is one way in which a host is not as its policy says, and the command
// that mends it.
type Finding struct {
	Where string `json:"where"`
	Fault string `json:"fault"`
	Fix   string `json:"fix"`
}

// String is the line that people read.
func (f Finding) String() string { return f.Where + ": " + f.Fault + "; fix: " + f.Fix }

// setUpAgain is the fix for whatever the setup puts in place.
const setUpAgain = "set the host up again (hostwarrant host provision … -o setup.sh, then sh setup.sh there as root)"

// maxSkew is as much as Kerberos and most others allow two clocks to differ.
const maxSkew = 5 * time.Minute

// Check says in which ways a host is not as the setup says. Those that are no
// fault are notes. now is the caller's time, when the facts arrived.
func (s *Setup) Check(f *Facts, now time.Time) ([]Finding, []Note) {
	c := &checker{facts: f}
	c.programs()
	c.clock(now)
	for _, d := range s.Directories {
		c.directory(d)
	}
	for _, file := range s.Files {
		c.file(file)
	}
	for _, path := range s.Absent {
		if _, there := f.Entries[path]; there {
			c.find(path, "is there, and the policy says nothing for it", "rm "+path)
		}
	}
	c.account()
	c.sshd(s.pinned(), s.LoginAddress)
	c.sudo(s.file(sudoersPath).Content)
	c.work()
	c.state()
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Compare(a.Where, b.Where) })
	return c.findings, c.notes
}

type checker struct {
	facts    *Facts
	findings []Finding
	notes    []Note
}

func (c *checker) find(where, fault, fix string) {
	c.findings = append(c.findings, Finding{where, fault, fix})
}

var openSSH = regexp.MustCompile(`^OpenSSH_([0-9]+)\.([0-9]+)`)

func (c *checker) programs() {
	for _, tool := range c.facts.Missing {
		c.find(tool, "is not installed", "apt-get install openssh-server openssh-client sudo bash coreutils util-linux bsdutils")
	}
	m := openSSH.FindStringSubmatch(c.facts.OpenSSH)
	if m == nil {
		c.find("openssh", fmt.Sprintf("%.60q is no version of OpenSSH", c.facts.OpenSSH), "apt-get install openssh-client")
		return
	}
	major, err := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err != nil || err2 != nil || major < 8 || major == 8 && minor < 2 {
		c.find("openssh", m[0]+" is older than 8.2, the first that can verify", "apt-get install openssh-server openssh-client, from a newer release")
	}
}

const setClock = "timedatectl set-ntp true"

func (c *checker) clock(now time.Time) {
	skew := time.Unix(c.facts.Time, 0).Sub(now).Round(time.Second)
	switch {
	case skew > maxSkew:
		c.find("clock", fmt.Sprintf("is %v ahead of here: what is still good looks expired", skew), setClock)
	case skew < -maxSkew:
		c.find("clock", fmt.Sprintf("is %v behind here: what has expired looks good down to the time floor", -skew), setClock)
	}
	path := StateDir + "/time-floor"
	content, there := c.facts.Contents[path]
	if !there {
		return
	}
	floor, err := strconv.ParseInt(c.facts.text(path), 10, 64)
	if err != nil || !floorText.Match(content) {
		c.find(path, "is not a time", "hostwarrant host repair --time-floor")
		return
	}
	if c.facts.Time < floor {
		c.find("clock", fmt.Sprintf("is %v behind the time floor, what this host knows to have passed", time.Duration(floor-c.facts.Time)*time.Second), setClock)
	}
}

// rootsOwn looks at type, owner and mode of a path that is there.
func (c *checker) rootsOwn(path string, e Entry, isType bool, kind string, mode fs.FileMode) {
	if !isType {
		c.find(path, "is no "+kind, "rm -r "+path+", then "+setUpAgain)
		return
	}
	if e.owner != 0 {
		c.find(path, fmt.Sprintf("belongs to user %d, not to root", e.owner), "chown root:root "+path)
	}
	if e.permission() != uint32(mode) {
		c.find(path, fmt.Sprintf("has mode %04o, not %04o", e.permission(), mode), fmt.Sprintf("chmod %04o %s", mode, path))
	}
}

func (c *checker) directory(d Directory) {
	e, there := c.facts.Entries[d.Path]
	switch {
	case there:
		c.rootsOwn(d.Path, e, e.isDirectory(), "directory", d.Mode)
	case d.Path == StateDir:
		c.find(d.Path, "is missing: every run is refused with 22", "hostwarrant host repair --state")
	default:
		c.find(d.Path, "is missing", setUpAgain)
	}
}

func (c *checker) file(want File) {
	e, there := c.facts.Entries[want.Path]
	if !there {
		c.find(want.Path, "is missing", setUpAgain)
		return
	}
	if want.Seed {
		return // the host's own by now: state looks at it
	}
	if c.stated(want) {
		c.rootAlone(want.Path, e, e.isFile(), "plain file") // the shim gives it a mode of its own
		return
	}
	c.rootsOwn(want.Path, e, e.isFile(), "plain file", want.Mode)
	if !e.isFile() {
		return
	}
	if want.Path == ShimPath {
		if got := c.facts.ShimDigest; got != fmt.Sprintf("%x", sha256.Sum256(want.Content)) {
			c.find(want.Path, fmt.Sprintf("is another program: its sha256 is %.64s", got), setUpAgain)
		}
		return
	}
	got, read := c.facts.Contents[want.Path]
	if !read {
		c.find(want.Path, "is too large to be read", setUpAgain)
	} else if difference := compare(want.Content, got); difference != "" {
		c.find(want.Path, difference, setUpAgain)
	}
}

// compare names the first difference of two texts that helps to understand it.
func compare(want, got []byte) string {
	if string(want) == string(got) {
		return ""
	}
	if !plain(want) || !plain(got) {
		return fmt.Sprintf("holds other bytes than the policy gives (%d, not %d)", len(got), len(want))
	}
	wanted, gotten := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for _, line := range gotten {
		if !slices.Contains(wanted, line) {
			return fmt.Sprintf("has a line that is not of the policy: %.120q", line)
		}
	}
	for _, line := range wanted {
		if !slices.Contains(gotten, line) {
			return fmt.Sprintf("lacks a line: %.120q", line)
		}
	}
	return "has its lines twice, or in another order"
}
