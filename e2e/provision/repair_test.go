//go:build linux

package provision

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const state = "/var/lib/hostwarrant"

func TestRepairResetsStateAndSaysSoInTheJournal(t *testing.T) {
	w := newWorld(t)
	h := w.setUp(t)
	journal, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: h.Path("/dev/log"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	})
	logged := func() string {
		t.Helper()
		b := make([]byte, 4096)
		n, err := journal.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	repair := func(args, want string, code int) result {
		t.Helper()
		r := on(t, h, "hostwarrant host repair "+args)
		if diff := cmp.Diff(want, r.out); diff != "" || r.code != code {
			t.Errorf("repair %s: exit %d, stderr %q, stdout (-want +got):\n%s", args, r.code, r.err, diff)
		}
		return r
	}
	repair("", "nothing is broken\n", 0)

	h.Must(t, "echo 1700000000 >"+state+"/time-floor && mkdir -m 700 "+state+"/marks && echo x >"+state+"/marks/tls-bootstrap && echo y >"+state+"/marks/other && echo 17 >"+state+"/running")
	now := strings.TrimSpace(h.Must(t, "/usr/bin/date +%s"))
	frozen := "mv /usr/bin/date /usr/bin/date.real && printf '#!/bin/sh\\necho " + now + "\\n' >/usr/bin/date && chmod 755 /usr/bin/date"
	h.Must(t, frozen)
	lock := "set " + state + "/running aside as " + state + "/repaired/running." + now + ": no script that it names is running\n"
	mark := "set " + state + "/marks/tls-bootstrap aside as " + state + "/repaired/tls-bootstrap." + now + ": the floor 40 is what holds for tls-bootstrap\n"
	before := h.Must(t, listing)
	r := repair("", "would "+lock+"would "+mark, 1)
	if !strings.Contains(r.err, "somebody must say its serial: hostwarrant host repair --mark other --serial N") {
		t.Errorf("stderr %q", r.err)
	}
	if after := h.Must(t, listing); after != before {
		t.Errorf("a plan alone changed something:\n%s\n%s", before, after)
	}
	repair("--yes", "done: "+lock+"done: "+mark, 1)
	for _, want := range []string{lock, mark} {
		if got := logged(); !strings.HasPrefix(got, "<85>") || !strings.Contains(got, "hostwarrant") || !strings.HasSuffix(got, ": host repair: "+strings.TrimSuffix(want, "\n")) {
			t.Errorf("the journal got %q, want %q", got, want)
		}
	}
	repair("--mark other --serial 42", "done: set "+state+"/marks/other aside as "+state+"/repaired/other."+now+": it is to be replaced\ndone: write "+state+"/marks/other: serial 42\n", 0)
	if got := h.Must(t, "cat "+state+"/marks/other; cat "+state+"/repaired/other."+now+"; stat -c '%a %u' "+state+"/marks/other"); got != "serial 42\ny\n600 0\n" {
		t.Errorf("the mark and what was set aside: %q", got)
	}
	repair("--mark other --serial 43", "done: set "+state+"/marks/other aside as "+state+"/repaired/other."+now+".1: it is to be replaced\ndone: write "+state+"/marks/other: serial 43\n", 0)
	if r := repair("--mark other --serial 41", "", 1); !strings.Contains(r.err, "SerialRollback") {
		t.Errorf("lowering a mark: %s", r.err)
	}
	repair("", "nothing is broken\n", 0)
	h.Must(t, "mv /usr/bin/date.real /usr/bin/date")
	wantGreen(t, w.check(t, h))

	h.Must(t, "rm -r "+state)
	repair("--state", "done: make "+state+": what this host had seen is lost, floors are what holds\n", 0)
	wantGreen(t, w.check(t, h))
	if r := on(t, h, "setpriv --reuid nobody hostwarrant host repair"); r.code != 3 || !strings.Contains(r.err, "this needs root") {
		t.Errorf("as another user: %+v", r)
	}
}
