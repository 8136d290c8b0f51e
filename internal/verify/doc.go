// Package verify is the engine: it judges one object against a snapshot of what
// is trusted, and answers with a Decision. Admission webhook, relay and the
// offline CLI all ask it, so all give the same answer in the same words.
//
// It always judges as mode enforce; what admission makes of a refusal in mode
// warn is admission's business. It knows no cluster, keeps nothing, and takes
// the time as a value.
package verify
