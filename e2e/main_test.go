//go:build linux

// Package e2e plays the product on real parts: an API server, the programs with
// the rights that the manifests give them, and hosts with Debian's sshd.
package e2e

import (
	"os"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
