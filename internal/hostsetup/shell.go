package hostsetup

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // of the scripts' parts
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The parts of the scripts that are the same for every host.
var (
	//go:embed sh/common.sh
	commonPart string
	//go:embed sh/provision.sh
	provisionPart string
	//go:embed sh/remove.sh
	removePart string
)

const provisionHead = `#!/bin/sh
# Sets up a host so that the user kpssh reaches kpssh-shim and nothing else, or
# brings one back to that. Run it as root. It says what it does, checks what it
# is about to put in place before it changes anything, and changes nothing that
# is right already. What the host remembers, in /var/lib/hostwarrant, stays.
# Rendered by "hostwarrant host provision"; docs/operations/hosts.md explains it.

# --- what this host gets ----------------------------------------------------

`

// endOfFile ends the text of a file in the script.
const endOfFile = "END_OF_FILE"

// Shell renders the setup as a POSIX sh script that root runs on the host.
func (s *Setup) Shell() []byte {
	var b bytes.Buffer
	b.WriteString(provisionHead)
	fmt.Fprintf(&b, "policy='trust policy %d (%s)'\nlogin_address=%s\n\n", s.PolicyVersion, s.PolicyDigest, s.LoginAddress)
	b.WriteString("directories() {\n")
	for _, d := range s.Directories {
		fmt.Fprintf(&b, "\tdirectory %s %o\n", d.Path, d.Mode)
	}
	b.WriteString("}\n\n# files stages each file: PATH MODE SHA256 STATEMENT, its content on stdin. Where the host has\n" +
		"# accepted a statement of that kind, the file stays as it is. A seed is for a host that has none.\nfiles() {\n")
	for _, f := range s.Files {
		f.stage(&b)
	}
	b.WriteString("}\n\nabsent() {\n\t:\n")
	for _, path := range s.Absent {
		fmt.Fprintf(&b, "\tprintf '%%s\\n' %s\n", path)
	}
	b.WriteString("}\n\n# pinned is what sshd must say for the account.\npinned() {\n\tcat <<'" + endOfFile + "'\n")
	b.Write(Lines(s.pinned()))
	b.WriteString(endOfFile + "\n}\n\n")
	b.WriteString(commonPart + "\n" + provisionPart)
	return b.Bytes()
}

// stage writes the call that stages one file: text as it is, for people to read,
// anything else in base64.
func (f File) stage(b *bytes.Buffer) {
	kind := cmp.Or(string(f.Statement), "-")
	if f.Seed {
		kind = "seed"
	}
	word, content := "stage", string(f.Content)
	if !plain(f.Content) {
		word, content = "stage_base64", wrapped(base64.StdEncoding.EncodeToString(f.Content))
	}
	fmt.Fprintf(b, "\t%s %s %o %x %s <<'%s'\n%s%s\n", word, f.Path, f.Mode, sha256.Sum256(f.Content), kind, endOfFile, content, endOfFile)
}

// plain tells a text that stands in a script unharmed.
func plain(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	return utf8.Valid(text) && text[len(text)-1] == '\n' && !bytes.ContainsAny(text, "\x00\r") &&
		!bytes.Contains(text, []byte(endOfFile))
}

func wrapped(text string) string {
	const width = 76
	var b strings.Builder
	for text != "" {
		n := min(width, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return b.String()
}

// pinned are the lines that sshd -T must print, by the file of this setup.
func (s *Setup) pinned() []string { return Pinned(s.file(sshdPath).Content) }

func (s *Setup) file(path string) File {
	for _, f := range s.Files {
		if f.Path == path {
			return f
		}
	}
	return File{}
}

const removeHead = `#!/bin/sh
# Undoes what the setup of a host by "hostwarrant host provision" did. Run it as
# root. It says what it does and what it keeps, and leaves sshd and sudo sound at
# each step. Rendered by "hostwarrant host provision --remove".

`

// RemovalShell renders the script that undoes a setup. What the host remembers
// stays, unless it is to be purged.
func RemovalShell(purge bool) []byte {
	answer := "no"
	if purge {
		answer = "yes"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%spurge=%s\n\nfiles() {\n\tcat <<'%s'\n", removeHead, answer, endOfFile)
	b.Write(Lines(removed()))
	b.WriteString(endOfFile + "\n}\n\n" + commonPart + "\n" + removePart)
	return b.Bytes()
}

// removed are the files of a setup in the order in which they go: what lets
// somebody in goes first.
func removed() []string {
	trust := []string{"authorized_keys", "allowed_signers", "root_signers", "revoked_keys", "cluster", "floors", "shim.conf"}
	paths := []string{sudoersPath, sshdPath, ShimPath}
	for _, name := range trust {
		paths = append(paths, TrustDir+"/"+name)
	}
	return paths
}
