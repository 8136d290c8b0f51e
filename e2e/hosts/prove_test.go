//go:build linux

package hosts

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

const (
	nonce  = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	runUID = "5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b"
)

func proveText(params string) string {
	return "kpssh-envelope: 1\nphase: prove\nparams-b64: " + b64(params) + "\n"
}

// TestAProofHoldsFactsAndNothingOfTheCallers: the host key signs what the shim found, a nonce and a UID, and no other
// text of a caller's.
func TestAProofHoldsFactsAndNothingOfTheCallers(t *testing.T) {
	w := newWorld(t)
	w.judge(t, w.version(t, "tls-a", serial, neverLeaves).join, verdict{})
	honest := "KPSSH_NONCE=" + nonce + "\nKPSSH_RUN_UID=" + runUID + "\n"
	for name, params := range map[string]string{
		"no parameters":             "",
		"no nonce":                  "KPSSH_RUN_UID=" + runUID + "\n",
		"no UID":                    "KPSSH_NONCE=" + nonce + "\n",
		"a short nonce":             strings.Replace(honest, "0011", "", 1),
		"a nonce in capitals":       strings.Replace(honest, nonce, strings.ToUpper(nonce), 1),
		"a nonce that is text":      strings.Replace(honest, nonce, "kubelet-key SHA256:x", 1),
		"a UID with a line":         strings.Replace(honest, runUID, runUID+"\nKPSSH_X=mark tls-a 1", 1),
		"a UID with a fact":         strings.Replace(honest, runUID, runUID+" mark tls-a 1", 1),
		"a UID that is none":        strings.Replace(honest, runUID, "x", 1),
		"a UID in capitals":         strings.Replace(honest, runUID, strings.ToUpper(runUID), 1),
		"more":                      honest + "KPSSH_NODE_NAME=x\n",
		"the nonce twice":           "KPSSH_NONCE=" + nonce + "\n" + honest,
		"two nonces instead of one": "KPSSH_NONCE=" + nonce + "\nKPSSH_NONCE_=" + nonce + "\n",
	} {
		t.Run(name, func(t *testing.T) { w.refuses(t, proveText(params), 3, "params: ") })
	}
	before := w.image(t)
	got := w.send(t, proveText(honest))
	w.unchanged(t, before)
	text, signature, found := strings.Cut(got.stdout, "-----BEGIN SSH SIGNATURE-----\n")
	if got.code != 0 || !found {
		t.Fatalf("answered %+v", got)
	}
	parsed, err := sshsig.Parse([]byte("-----BEGIN SSH SIGNATURE-----\n" + signature))
	must(t, err)
	must(t, parsed.Verify("hostwarrant-proof", []byte(text)))
	if by := sshsig.Fingerprint(parsed.PublicKey()); by != sshsig.Fingerprint(w.host.HostKey) {
		t.Errorf("it is signed by %s", by)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, prefix := range []string{"hostwarrant-proof: v1", "cluster lab", "run-uid " + runUID, "nonce " + nonce, "mark tls-a 42", "boot-id ", "time ", "kubelet-key none", "end"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], prefix) {
			t.Fatalf("line %d of %q does not begin with %q", i+1, lines, prefix)
		}
	}
}

// journal listens where the host's programs log to. It returns what tells the shim's lines: all, once there are as many
// as wanted.
func (w *world) journal(t *testing.T) (lines func(wanted int) []string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: w.host.Path("/dev/log"), Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	w.root(t, "chmod 666 /dev/log")
	came := make(chan string, 1000)
	go func() { // all the time: sudo and PAM wait for whoever reads
		buffer := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if line := string(buffer[:n]); strings.Contains(line, " kpssh-shim") {
				came <- line
			}
		}
	}()
	var all []string
	return func(wanted int) []string {
		limit := time.After(20 * time.Second)
		for len(all) < wanted {
			select {
			case line := <-came:
				all = append(all, line)
			case <-limit:
				t.Fatalf("the journal has %q, want %d lines", all, wanted)
			}
		}
		return all
	}
}

// TestTheJournalNamesRunsAndNoValues: what a host keeps of each request, also of those it refuses.
func TestTheJournalNamesRunsAndNoValues(t *testing.T) {
	w := newWorld(t)
	lines := w.journal(t)
	o := w.join(t, "").with("KPSSH_BOOTSTRAP_TOKEN=" + token + "\nKPSSH_VAR_text=" + token + "\n")
	o.runID = newRunID(t)
	w.judge(t, o, verdict{})
	if got := lines(2); !strings.Contains(got[0], "accepted") || !strings.Contains(got[1], "code=0") {
		t.Errorf("of a run the journal has %q, want that it was accepted and how it ended", got)
	}
	foreign, forged := w.join(t, "", w.mallory), w.join(t, "").with("KPSSH_VAR_text=a\tb"+token+"\n")
	w.judge(t, foreign, verdict{2, ""})
	w.judge(t, forged, verdict{3, ""})
	w.refuses(t, "kpssh-envelope: 1\nphase: x; code=0 "+token+"\n", 4, "")
	got := lines(5)
	for _, want := range []string{"code=2", "code=3", "code=4"} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("no line says %s: %q", want, got)
		}
	}
	for _, want := range []string{"phase=join", "profile=tls-1", "serial=42", "run-id=" + string(o.runID), "signers=" + w.alice.Fingerprint} {
		if !strings.Contains(got[0], want) {
			t.Errorf("the first line does not say %s: %q", want, got[0])
		}
	}
	for _, line := range got {
		if strings.Contains(line, token[:6]) {
			t.Errorf("a line shows a value: %q", line)
		}
	}
}
