//go:build linux

package harness

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// speaker is a backend that says its name to whoever connects.
func speaker(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := io.WriteString(conn, name+"\n"); err != nil {
				t.Error(err)
			}
		}
	}()
	return l.Addr().String()
}

// hears connects to the balancer and returns what is said.
func hears(t *testing.T, b *Balancer) (net.Conn, string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hangUp(conn) })
	line, err := bufio.NewReader(conn).ReadString('\n')
	return conn, line, err
}

func TestBalancer(t *testing.T) {
	b, err := NewBalancer(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	one, two := speaker(t, "one"), speaker(t, "two")
	b.Add(one)
	b.Add(two)
	b.Add(two)
	said := map[string]int{}
	for range 4 {
		_, line, err := hears(t, b)
		if err != nil {
			t.Fatal(err)
		}
		said[line]++
	}
	if said["one\n"] != 2 || said["two\n"] != 2 {
		t.Errorf("heard %v; want each in turn", said)
	}
	b.Remove(one)
	conn, line, err := hears(t, b)
	if line != "two\n" || err != nil {
		t.Errorf("after one was removed: %q, %v", line, err)
	}
	b.Cut()
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that was cut: %v", err)
	}
	b.Set()
	if _, line, err := hears(t, b); err == nil {
		t.Errorf("without a backend: %q", line)
	}
}

func TestJudge(t *testing.T) {
	for text, want := range map[string]Verdict{
		"": Admitted,
		`admission webhook "objects.hostwarrant.dev" denied the request: SSHJoinProfile/p: install: Unsigned: x`:           Refused,
		`admission webhook "other.example.com" denied the request: no`:                                                     Other,
		`Internal error occurred: failed calling webhook "objects.hostwarrant.dev": failed to call webhook: Post "x": EOF`: Connection,
		`the server could not find the requested resource`:                                                                 Other,
	} {
		var err error
		if text != "" {
			err = errors.New(text)
		}
		if got := Judge(err); got != want {
			t.Errorf("%q is %s; want %s", text, got, want)
		}
	}
}

func TestTally(t *testing.T) {
	var tally Tally
	for n := range 100 {
		tally.Add(nil, time.Duration(n+1)*time.Millisecond)
	}
	tally.Add(errors.New("what"), time.Second)
	if tally.Total() != 101 || tally.Count(Admitted) != 100 || tally.Count(Other) != 1 || len(tally.Said(Other)) != 1 {
		t.Error(&tally)
	}
	if p := tally.Percentile(0.5); p != 51*time.Millisecond {
		t.Errorf("p50 is %v", p)
	}
}

func TestMetricsAreRead(t *testing.T) {
	before := Metrics{`h_bucket{le="0.001"}`: 10, `h_bucket{le="0.002"}`: 10, `h_bucket{le="+Inf"}`: 10, "h_count": 10}
	after := Metrics{`h_bucket{le="0.001"}`: 60, `h_bucket{le="0.002"}`: 110, `h_bucket{le="+Inf"}`: 110, "h_count": 110}
	for q, want := range map[float64]float64{0.25: 0.0005, 0.5: 0.001, 0.75: 0.0015, 1: 0.002} {
		if got := Quantile(before, after, "h", q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v; want %v", q, got, want)
		}
	}
	m := Metrics{`d{kind="a",outcome="deny"}`: 1, `d{kind="a",outcome="allow"}`: 2, `d{kind="b",outcome="deny"}`: 4, "dd": 8}
	if got := m.Sum("d", `outcome="deny"`); got != 5 {
		t.Errorf("denied: %v", got)
	}
	if got := m.Sum("d"); got != 7 {
		t.Errorf("all: %v", got)
	}
}

func TestAuditLogIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	text := `{"verb":"create","objectRef":{"resource":"sshhosts","name":"h"},"annotations":{"objects.hostwarrant.dev/verdict":"deny"}}
{"verb":"delete","objectRef":{"resource":"sshhosts","name":"h"}}
{"verb":"cre`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := ReadAudit(file, func(e AuditEvent) bool { return e.Verb == "create" })
	if err != nil || len(events) != 1 || events[0].Annotation("/verdict") != "deny" || events[0].ObjectRef.Name != "h" {
		t.Errorf("%+v, %v", events, err)
	}
}
