// Package object reads the Kubernetes objects we judge from their JSON bytes,
// as far as judgement needs them.
//
// It reads field names exactly as written: encoding/json's case folding would
// let "Spec" stand in for "spec" here and be dropped by the API server. It
// imports no Kubernetes code, so the offline CLI, webhook and relay read alike;
// the API types in api/ are for clients and CRDs.
package object
