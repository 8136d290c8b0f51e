//go:build linux

package storage

import (
	"os"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
