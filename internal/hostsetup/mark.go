package hostsetup

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// markText is the one form of a mark: the serial, then the digests of the phases
// that were accepted at it.
var markText = regexp.MustCompile(`^serial (0|[1-9][0-9]{0,14})\n(install [0-9a-f]{64}\n)?(join [0-9a-f]{64}\n)?(leave [0-9a-f]{64}\n)?(uninstall [0-9a-f]{64}\n)?$`)

// profileName is what a profile, and so a mark, may be called.
var profileName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// markSerial reads the serial of a mark.
func markSerial(text []byte) (serial int64, ok bool) {
	m := markText.FindSubmatch(text)
	if m == nil {
		return 0, false
	}
	serial, err := strconv.ParseInt(string(m[1]), 10, 64)
	return serial, err == nil
}

// markOf is a mark that says nothing but its serial.
func markOf(serial int64) []byte { return fmt.Appendf(nil, "serial %d\n", serial) }

// floorOf gives the highest floor of a host that holds for a profile.
func floorOf(floors, profile string) (serial int64, found bool) {
	for line := range strings.Lines(floors) {
		pattern, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || pattern != profile && (!isPrefix || !strings.HasPrefix(profile, prefix)) {
			continue
		}
		serial, found = max(serial, n), true
	}
	return serial, found
}
