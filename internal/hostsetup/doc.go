// Package hostsetup says what a pool host must hold, renders that in three forms,
// and judges what a host does hold.
//
// There is one model: a Setup, made of a trust policy that is in force, the files
// that ship with the shim, and what only the operator knows of the host. The shell
// script, the cloud-init user data and the Ansible role are renderings of it, and a
// host is checked against it, so that none of them can say something else.
//
// It runs nothing, and touches no host: the caller gathers facts with the script of
// FactsScript and carries out the actions of Repairs. It stops a host that trusts
// other keys, another cluster or another shim than its policy says from being made
// by a slip, and names the difference where somebody made it on purpose.
// docs/operations/hosts.md is the page for operators.
package hostsetup
