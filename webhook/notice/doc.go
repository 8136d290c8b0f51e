// Package notice tells people what the controller found: events on objects, and conditions of the
// trust policy.
//
// Both are for people. No program of the product decides by either. Events are written by ourselves
// rather than through client-go's broadcaster, which drops what does not fit its queue: a thousand
// objects that stop verifying at once are a thousand events. The threat this stops: an alarm that
// nobody ever sees.
package notice
