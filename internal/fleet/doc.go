// Package fleet says of the hosts of a cluster what each runs, what it is behind, and
// what expires soon, from the objects that kubectl prints. It verifies nothing and
// grants nothing: it is for people, and believes what the cluster's own programs
// wrote down. Specification: docs/operations/fleet.md.
package fleet
