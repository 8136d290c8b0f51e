//go:build linux

package lab_test

import (
	"net"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// A bridge that changes its address cuts all hosts off for seconds, which shows as tests that are slow now and then.
func TestTheBridgeKeepsItsAddress(t *testing.T) {
	address := func() string {
		link, err := net.InterfaceByName("hw" + shared.Lab(t).ID()[:8] + "br")
		if err != nil {
			t.Fatal(err)
		}
		return link.HardwareAddr.String()
	}
	before := address()
	for _, name := range []string{"host-k", "host-l"} {
		h := shared.Host(t, lab.HostOptions{Name: name, ShimDir: shimDir(t)})
		if now := address(); now != before {
			t.Errorf("with %s the bridge has %s, before %s", name, now, before)
		}
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	}
	if now := address(); now != before {
		t.Errorf("without the hosts the bridge has %s, before %s", now, before)
	}
}
