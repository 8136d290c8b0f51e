// Package fleet changes whom the hosts of a running fleet trust, by root statements
// that go through a relay's connections and nothing else: the tests reach a host as
// the user kpssh over ssh, and judge what it knows by what it answers. No control
// plane is needed.
package fleet
