package shim

import "embed"

//go:embed kpssh-shim etc
var files embed.FS

// Files are the shim and the configuration that goes with it, for whoever sets up a host.
func Files() embed.FS { return files }
