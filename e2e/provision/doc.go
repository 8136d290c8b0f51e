// Package provision shows, on hosts that nobody set up, that what "hostwarrant host
// provision" renders makes a pool host of each, whichever of its three forms is
// taken; that "host check" then finds nothing, and names fault and fix on each host
// that was broken on purpose; and that "host repair" resets what a host remembers.
//
// The hosts are overlay roots in namespaces, with Debian's own sshd and sudo.
package provision
