// Package certgate holds back a new serving certificate until the API server trusts it.
//
// A certificate and the caBundle by which the API server checks it are written by different programs,
// one after the other. Whoever serves a new certificate first is not trusted for that long, and every
// guarded write fails: an outage that invites people to switch the checks off, which is the threat
// this package stops. It reads the caBundle of both webhook configurations as they are stored, goes on
// serving the former certificate until the new one verifies by all of them, and then for a little
// longer, until every API server has seen that. It never serves an expired certificate for it, and it
// decides nothing about objects.
package certgate
