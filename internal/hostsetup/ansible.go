package hostsetup

import (
	"bytes"
	_ "embed" // of the role's parts
	"fmt"
	"path"
	"strings"
)

// The parts of a role that are the same for every host.
var (
	//go:embed ansible/setup.yml
	setupTasks []byte
	//go:embed ansible/remove.yml
	removeTasks []byte
	//go:embed ansible/handlers.yml
	roleHandlers []byte
	//go:embed ansible/meta.yml
	roleMeta []byte
)

// RoleFile is one file of an Ansible role, by its path in the role's directory.
type RoleFile struct {
	Path    string
	Content []byte
}

// Ansible renders the setup as a role.
func (s *Setup) Ansible() []RoleFile {
	role := []RoleFile{{"files/reload-sshd.sh", reloadScript()}, {"files/sshd-unread.sh", unreadScript()}}
	var before bytes.Buffer // of the pinning
	vars := bytes.NewBufferString("---\n# " + fmt.Sprintf("trust policy %d (%s)", s.PolicyVersion, s.PolicyDigest) + "\nhostwarrant_directories:\n")
	for _, d := range s.Directories {
		fmt.Fprintf(vars, "- {path: %q, mode: \"0%o\"}\n", d.Path, d.Mode)
	}
	for _, f := range s.Files {
		source := strings.ReplaceAll(strings.Trim(f.Path, "/"), "/", "_")
		role = append(role, RoleFile{path.Join("files", source), f.Content})
		entry := fmt.Sprintf("{path: %q, src: %q, mode: \"0%o\", statement: %q, seed: %t, validate: %q}\n",
			f.Path, source, f.Mode, string(f.Statement), f.Seed, validator(f.Path))
		switch f.Path {
		case sshdPath:
			vars.WriteString("hostwarrant_sshd: " + entry)
		case keysPath:
			vars.WriteString("hostwarrant_keys: " + entry)
		default:
			before.WriteString("- " + entry)
		}
	}
	vars.WriteString("hostwarrant_files:\n" + before.String())
	writeList(vars, "hostwarrant_absent", s.Absent)
	fmt.Fprintf(vars, "hostwarrant_login_address: %q\n", s.LoginAddress)
	writeList(vars, "hostwarrant_pinned", s.pinned())
	return append(role, RoleFile{"vars/main.yml", vars.Bytes()}, RoleFile{"tasks/main.yml", setupTasks},
		RoleFile{"handlers/main.yml", roleHandlers}, RoleFile{"meta/main.yml", roleMeta})
}

func validator(path string) string {
	if path == sudoersPath {
		return "/usr/sbin/visudo -cf %s"
	}
	return ""
}

func writeList(b *bytes.Buffer, name string, list []string) {
	if len(list) == 0 {
		fmt.Fprintf(b, "%s: []\n", name)
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	for _, item := range list {
		fmt.Fprintf(b, "- %q\n", item)
	}
}

// reloadScript is the scripts' own way to reload sshd.
func reloadScript() []byte {
	return []byte("#!/bin/sh\n" + commonPart + "\ncheck_caller\nreload_sshd\n")
}

// unreadScript says "unread" where the sshd that runs goes by older files than those that are there.
func unreadScript() []byte {
	return []byte("#!/bin/sh\n" + commonPart + "\ncheck_caller\nif unread_sshd; then\n\techo unread\nfi\n")
}

// RemovalAnsible renders the role that undoes a setup.
func RemovalAnsible(purge bool) []RoleFile {
	vars := bytes.NewBufferString("---\n")
	fmt.Fprintf(vars, "hostwarrant_purge: %t\n", purge)
	writeList(vars, "hostwarrant_files", removed())
	return []RoleFile{
		{"files/reload-sshd.sh", reloadScript()},
		{"vars/main.yml", vars.Bytes()},
		{"tasks/main.yml", removeTasks},
		{"handlers/main.yml", roleHandlers},
		{"meta/main.yml", roleMeta},
	}
}
