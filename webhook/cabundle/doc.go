// Package cabundle keeps the caBundle of the product's webhook configurations equal to the CA that
// the webhook's serving certificates are signed with.
//
// It writes that one field and nothing else, and it creates nothing: a configuration that somebody
// deleted stays deleted. The threat it stops is an outage that invites people to switch the checks
// off: an API server that no longer trusts the webhook refuses every write.
package cabundle
