//go:build linux

package provision

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// userData are the parts of cloud-config that are rendered.
type userData struct {
	WriteFiles []struct {
		Path, Owner, Permissions, Encoding, Content string
	} `yaml:"write_files"`
	Runcmd [][]string
}

func TestCloudInitRunsTheScript(t *testing.T) {
	w := newWorld(t)
	data := w.provision(t, append(w.flags(t, w.dir), "--format", "cloud-init")...)
	script := w.provision(t, w.flags(t, w.dir)...)
	schema(t, data, true)
	schema(t, strings.Replace(data, "runcmd:\n- [/bin/sh", "runcmd: [7.5, /bin/sh", 1), false)

	var u userData
	if err := yaml.Unmarshal([]byte(data), &u); err != nil {
		t.Fatal(err)
	}
	if len(u.WriteFiles) != 1 || u.WriteFiles[0].Encoding != "gz+b64" || u.WriteFiles[0].Permissions != "0700" || len(u.Runcmd) != 1 || u.Runcmd[0][1] != u.WriteFiles[0].Path {
		t.Fatalf("user data %+v", u)
	}
	packed, err := base64.StdEncoding.DecodeString(u.WriteFiles[0].Content)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	if err != nil || string(unpacked) != script {
		t.Errorf("what it runs is not the script: %d bytes, %v", len(unpacked), err)
	}
	// What cloud-init does with it, without the rest of a boot.
	h := w.bare(t, nil)
	put(t, h, u.WriteFiles[0].Path, unpacked, 0o700)
	h.Must(t, strings.Join(u.Runcmd[0], " "))
	wantGreen(t, w.check(t, h))
}

// schema asks Debian's cloud-init.
func schema(t *testing.T, data string, good bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(testkit.Root(t), "hack", "cloud-init")).Output()
	if err != nil {
		testkit.Missing(t, "cloud-init cannot be had: %v", err)
	}
	file := testkit.WriteFile(t, t.TempDir(), "user-data", []byte(data))
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(out)), "schema", "--config-file", file)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	said, err := cmd.CombinedOutput()
	if (err == nil) != good || good != strings.Contains(string(said), "Valid cloud-config") {
		t.Errorf("cloud-init schema: %v: %s", err, said)
	}
}
