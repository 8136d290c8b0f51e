package hostsetup

import (
	"bytes"
	_ "embed" // of the script
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

//go:embed sh/facts.sh
var factsPart string

// FactsScript is the POSIX sh script that prints what is so on a host. It changes
// nothing there. The address is one that the account logs in from.
func FactsScript(loginAddress string) []byte {
	return []byte("#!/bin/sh\nlogin_address=" + loginAddress + "\n" + factsPart)
}

// FactsScript asks for what Check judges.
func (s *Setup) FactsScript() []byte { return FactsScript(s.LoginAddress) }

// AnyAddress stands for the one that the account logs in from where it is not known.
func AnyAddress() string { return loginAddress(nil) }

const (
	factsHead = "hostwarrant-facts: v1"
	factsEnd  = "end"
	// MaxFacts bounds what is read of a host: its trust files and 50 records, in base64.
	MaxFacts = 16 << 20
)

// Entry is what stat says of a path.
type Entry struct {
	mode  uint32 // with the file's type
	owner int
}

// File types of stat(2).
const (
	typeMask      = 0o170000
	typeFile      = 0o100000
	typeDirectory = 0o040000
)

func (e Entry) permission() uint32 { return e.mode & 0o7777 }
func (e Entry) isFile() bool       { return e.mode&typeMask == typeFile }
func (e Entry) isDirectory() bool  { return e.mode&typeMask == typeDirectory }

// Facts are what a host said of itself.
type Facts struct {
	Time int64
	Boot string
	// Runner is the start time of the process that the run lock names, if it lives.
	Runner  string
	OpenSSH string
	// Missing are programs that are not there.
	Missing []string
	Passwd  string
	// Password is impossible, none, locked or set.
	Password string
	Groups   []string
	// SSHD and Sudo are the lines that the programs print, Faults what they said where they failed.
	SSHD, Sudo []string
	Faults     map[string]string
	// Loaded is when the running sshd has read its configuration, PIDFile where it says so; zero where none
	// says. Changed is when each part of that configuration changed.
	Loaded     time.Time
	PIDFile    string
	Changed    map[string]time.Time
	Entries    map[string]Entry
	Contents   map[string][]byte
	ShimDigest string
	RunSystem  string
	// Odd are directories with names in them that nothing of ours makes.
	Odd []string
}

// IsSetUp reports whether the machine has what provision puts on a host. One whose state alone is left has not.
func (f *Facts) IsSetUp() bool { return f.Entries[TrustDir].isDirectory() }

// ParseFacts reads what FactsScript printed, whole.
func ParseFacts(text []byte) (*Facts, error) {
	if len(text) > MaxFacts {
		return nil, oddFacts("more than %d bytes", MaxFacts)
	}
	lines := strings.Split(string(text), "\n")
	n := len(lines)
	// check: Malformed: half of what a host says must not pass for a host without faults
	if n < 3 || lines[0] != factsHead || lines[n-2] != factsEnd || lines[n-1] != "" {
		return nil, oddFacts("it does not run from %q to %q", factsHead, factsEnd)
	}
	f := &Facts{Faults: map[string]string{}, Changed: map[string]time.Time{}, Entries: map[string]Entry{}, Contents: map[string][]byte{}}
	for i, line := range lines[1 : n-2] {
		word, rest, _ := strings.Cut(line, " ")
		if err := f.take(word, rest); err != nil {
			return nil, oddFacts("line %d: %v", i+2, err)
		}
	}
	return f, nil
}

func oddFacts(format string, args ...any) error {
	return decision.Errorf(decision.Malformed, "what the host says of itself cannot be read: "+format, args...).
		Try("run it again; output of the login shell's start files gets in the way")
}

// plainPath is all that a path, or the name of a program, can be that the script tells of: it is repeated in
// commands that people copy.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

// namesPath gives the word of a fact that is a path or a program.
func namesPath(word, rest string) (path string, found bool) {
	switch word {
	case "missing", "odd":
		return rest, true
	case "content":
		path, _, _ = strings.Cut(rest, " ")
		return path, true
	case "entry", "loaded", "changed":
		_, path, _ = strings.Cut(rest, "/")
		return "/" + path, true
	}
	return "", false
}

func (f *Facts) take(word, rest string) (err error) {
	// check: Malformed: a host that was taken over names a file so that the fix is a command of its choice
	if path, found := namesPath(word, rest); found && !plainPath.MatchString(path) {
		return fmt.Errorf("%.80q is no path of ours", path)
	}
	switch word {
	case "time":
		f.Time, err = strconv.ParseInt(rest, 10, 64)
	case "boot":
		f.Boot = rest
	case "runner":
		f.Runner = rest
	case "openssh":
		f.OpenSSH = rest
	case "missing":
		f.Missing = append(f.Missing, rest)
	case "passwd":
		f.Passwd = rest
	case "password":
		f.Password = rest
	case "groups":
		f.Groups = strings.Fields(rest)
	case "sshd":
		f.SSHD = append(f.SSHD, rest)
	case "sudo":
		f.Sudo = append(f.Sudo, rest)
	case "visudo":
	case "sshd-fault", "sudo-fault", "visudo-fault":
		f.Faults[strings.TrimSuffix(word, "-fault")] = strings.TrimSpace(rest)
	case "loaded":
		f.Loaded, f.PIDFile, err = timeOf(rest)
	case "changed":
		at, path, err := timeOf(rest)
		if at.After(f.Changed[path]) {
			f.Changed[path] = at
		}
		return err
	case "entry":
		return f.entry(rest)
	case "content":
		path, encoded, _ := strings.Cut(rest, " ")
		f.Contents[path], err = base64.StdEncoding.DecodeString(encoded)
	case "digest":
		f.ShimDigest, _, _ = strings.Cut(rest, " ")
	case "run":
		f.RunSystem = rest
	case "odd":
		f.Odd = append(f.Odd, rest)
	default:
		err = fmt.Errorf("%.40q is not known", word)
	}
	return err
}

// timeOf reads a time as stat prints it with nine digits, and the path behind it.
func timeOf(rest string) (at time.Time, path string, err error) {
	text, path, _ := strings.Cut(rest, " ")
	seconds, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	ns, err2 := strconv.ParseInt(fraction, 10, 64)
	if err != nil || err2 != nil || len(fraction) != 9 || path == "" {
		return time.Time{}, "", fmt.Errorf("%.80q is no time of a file", rest)
	}
	return time.Unix(s, ns), path, nil
}

func (f *Facts) entry(rest string) error {
	words := strings.SplitN(rest, " ", 4)
	if len(words) != 4 {
		return fmt.Errorf("%.80q is no entry", rest)
	}
	mode, err := strconv.ParseUint(words[0], 16, 32)
	if err != nil {
		return fmt.Errorf("%.20q is no mode", words[0])
	}
	owner, err := strconv.Atoi(words[1])
	if err != nil {
		return fmt.Errorf("%.20q is no owner", words[1])
	}
	f.Entries[words[3]] = Entry{mode: uint32(mode), owner: owner}
	return nil
}

// below gives the paths of what a directory holds, without those of directories below it.
func (f *Facts) below(dir string) []string {
	var paths []string
	for path := range f.Entries {
		if name, found := strings.CutPrefix(path, dir+"/"); found && !strings.Contains(name, "/") {
			paths = append(paths, path)
		}
	}
	return paths
}

func (f *Facts) text(path string) string {
	return string(bytes.TrimSuffix(f.Contents[path], []byte("\n")))
}
