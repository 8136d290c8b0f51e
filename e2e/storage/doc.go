// Package storage starts the other home of a ContainerProfile: an aggregated API server, as kubescape
// runs one, a stand-in built from k8s.io/apiserver in the module below server. e2e/kubescape is the
// first home.
//
// What is different from a CRD, and why tests are made in both homes:
//
//   - no webhook and no policy of admission is asked, not even for the namespace's existence;
//   - List, Watch and a deletion of a collection ignore label and field selectors;
//   - List and Watch deliver metadata, the spec is in Get alone;
//   - a Watch begins now, whatever resource version it names, and replays nothing;
//   - what is stored is the spec's normal form: unknown keys gone, empty lists null, sets sorted;
//   - managedFields are dropped, so an apply takes nothing away, and a checksum annotation is added.
//
// It says of every request what it was and who made it, and fails where a test wants that.
//
// The threat it stops is a product that works only behind its webhook, or only on objects that come
// back as they were written.
package storage
