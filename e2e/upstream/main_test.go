//go:build linux

package upstream

import (
	"os"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
