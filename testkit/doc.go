// Package testkit holds what the tests of several packages share: keys made at
// run time, signatures that are also put to ssh-keygen, trust policies, and
// public test data. Nothing but tests imports it.
package testkit
