package hostsetup

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
)

// cloudScript is where the script stands on a new machine, in memory.
const cloudScript = "/run/hostwarrant-provision.sh"

// CloudInit renders the setup as cloud-init user data: the script of Shell, and
// the order to run it once the machine has its host keys. It is compressed, as
// user data is short of room.
func (s *Setup) CloudInit() ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compressing: %v", err)
	}
	if _, err := z.Write(s.Shell()); err != nil {
		return nil, fmt.Errorf("compressing: %v", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing: %v", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `#cloud-config
# Rendered by "hostwarrant host provision". What it runs can be read with
#   sed -n 's/^  content: //p' THIS-FILE | base64 -d | gunzip
write_files:
- path: %s
  owner: root:root
  permissions: '0700'
  encoding: gz+b64
  content: %s
runcmd:
- [/bin/sh, %s]
`, cloudScript, base64.StdEncoding.EncodeToString(packed.Bytes()), cloudScript)
	return b.Bytes(), nil
}
