// Package cabundle keeps the caBundle of the product's webhook configurations equal to the CA that
// the webhook's serving certificates are signed with. For a day after a change it keeps the former CA
// beside the new one, for replicas change one after the other and none may be refused meanwhile.
//
// It writes that one field and nothing else, and it creates nothing: a configuration that somebody
// deleted stays deleted. The threat it stops is an outage that invites people to switch the checks
// off: an API server that no longer trusts the webhook refuses every write.
package cabundle
