// Command demo plays hostwarrant's story on a real API server and real hosts:
//
//	demo up     starts everything, plays each step and checks its answer, and leaves it running
//	demo down   takes everything down again
//
// With KUBECONFIG set it plays in that cluster, the hosts being local either way, and down leaves there what was
// installed. `make demo` passes it on only where the call names it: make demo KUBECONFIG=….
package main
