package hostsetup

import "strings"

// Pinned are the lines that sshd -T must print for the account: the directives of
// the shipped Match block, and the one global setting that a block cannot hold.
func Pinned(sshd []byte) []string {
	var lines []string
	inside := false
	for line := range strings.Lines(string(sshd)) {
		words := strings.Fields(line)
		switch {
		case len(words) < 2 || strings.HasPrefix(words[0], "#"):
		case words[0] == "Match":
			inside = words[1] == "User"
		case inside:
			lines = append(lines, strings.ToLower(words[0])+" "+strings.Join(words[1:], " "))
		}
	}
	return append(lines, "permituserenvironment no")
}

// defaultsAndRule takes the shipped sudoers apart: what is said of the shim, in the
// order of the words, and the one rule as "sudo -l" prints it.
func defaultsAndRule(sudoers []byte) (defaults []string, rule string) {
	for line := range strings.Lines(string(sudoers)) {
		line = strings.TrimSpace(line)
		if settings, found := strings.CutPrefix(line, "Defaults!"+ShimPath+" "); found {
			for setting := range strings.SplitSeq(settings, ",") {
				defaults = append(defaults, strings.TrimSpace(setting))
			}
		}
		if command, found := strings.CutPrefix(line, Account+" ALL="); found {
			rule = command
		}
	}
	return defaults, rule
}
