package hostsetup

import (
	"fmt"
	"strings"
)

func (c *checker) account() {
	const where = "account " + Account
	if c.facts.Passwd == "" {
		c.find(where, "is missing", setUpAgain)
		return
	}
	fields := strings.Split(c.facts.Passwd, ":")
	if len(fields) != 7 {
		c.find(where, fmt.Sprintf("has an entry of %d fields in passwd", len(fields)), "vipw")
		return
	}
	uid, home, shell := fields[2], fields[5], fields[6]
	if uid == "0" {
		c.find(where, "is root under another name", "sed -i /^"+Account+":/d /etc/passwd /etc/shadow, then "+setUpAgain)
	}
	if shell != "/bin/sh" {
		c.find(where, fmt.Sprintf("has the shell %.80q, which may read files before the shim starts", shell), "usermod --shell /bin/sh "+Account)
	}
	if home != "/opt/kpssh" {
		c.find(where, fmt.Sprintf("has the home %.80q", home), "usermod --home /opt/kpssh "+Account)
	}
	if c.facts.Password != "impossible" {
		c.find(where, map[string]string{
			"none": "has no password at all: anybody may be asked for none", "set": "has a password",
			"locked": "is locked (!), which an sshd without PAM takes for closed",
		}[c.facts.Password], "usermod --password '*' "+Account)
	}
	if len(c.facts.Groups) > 1 {
		c.find(where, "is in other groups than its own: "+strings.Join(c.facts.Groups, " "), "usermod --groups '' "+Account)
	}
}

// sshd compares what sshd itself says of the account with what pins it to the shim.
func (c *checker) sshd(pinned []string, address string) {
	const where = "sshd"
	if fault, failed := c.facts.Faults["sshd"]; failed {
		c.find(where, fmt.Sprintf("does not take its configuration: %.200s", fault), "sshd -t")
		return
	}
	for _, line := range pinned {
		key, want, _ := strings.Cut(line, " ")
		for _, got := range valuesOf(c.facts.SSHD, key) {
			if got != want {
				c.find(where, fmt.Sprintf("says %q for %s from %s, not %q", key+" "+got, Account, address, line),
					fmt.Sprintf("grep -rniE '^\\s*(match|include|%s)' /etc/ssh/sshd_config* shows who says it; the first that holds wins", key))
			}
		}
	}
	c.loaded()
}

func valuesOf(lines []string, key string) []string {
	var values []string
	for _, line := range lines {
		if word, value, _ := strings.Cut(line, " "); word == key {
			values = append(values, value)
		}
	}
	if values == nil {
		return []string{"nothing"}
	}
	return values
}

// sudo compares what sudo lets the account do with the one rule.
func (c *checker) sudo(sudoers []byte) {
	const where, fix = "sudo", "sudo -l -U " + Account + " shows it, visudo mends it; its rule is in " + sudoersPath
	if fault, failed := c.facts.Faults["visudo"]; failed {
		c.find(where, fmt.Sprintf("does not take its configuration: %.200s", fault), "visudo -c")
	}
	defaults, rule := defaultsAndRule(sudoers)
	rules := c.sudoRules()
	found := false
	for _, got := range rules {
		switch {
		case got == rule:
			found = true
		case got+` ""` == rule:
			c.find(where, "lets "+Account+` start the shim with any argument: its rule lacks the ""`, fix)
		default:
			c.find(where, fmt.Sprintf("lets %s do more than start the shim: %.120q", Account, got), fix)
		}
	}
	if !found {
		c.find(where, "does not let "+Account+" start the shim", setUpAgain)
	}
	c.sudoDefaults(defaults, fix)
}

// sudoRules are the commands that "sudo -l" lists.
func (c *checker) sudoRules() []string {
	var rules []string
	inside := false
	for _, line := range c.facts.Sudo {
		switch {
		case strings.HasSuffix(line, "may run the following commands on "+hostOf(line)):
			inside = true
		case inside && strings.HasPrefix(line, "    "):
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	return rules
}

func hostOf(line string) string { return line[strings.LastIndex(line, " ")+1:] }

// sudoDefaults looks at what holds for the shim: of two that say the same, the last.
func (c *checker) sudoDefaults(want []string, fix string) {
	last := map[string]string{}
	for _, line := range c.facts.Sudo {
		settings, found := strings.CutPrefix(strings.TrimSpace(line), "Defaults!"+ShimPath+" ")
		if !found {
			continue
		}
		for setting := range strings.SplitSeq(settings, ",") {
			setting = strings.TrimSpace(setting)
			last[strings.TrimPrefix(setting, "!")] = setting
		}
	}
	for _, setting := range want {
		switch got := last[strings.TrimPrefix(setting, "!")]; got {
		case setting:
		case "":
			c.find("sudo", fmt.Sprintf("lacks the default %q for the shim", setting), setUpAgain)
		default:
			c.find("sudo", fmt.Sprintf("says %q for the shim, not %q", got, setting), fix)
		}
	}
}
