//go:build linux

package lab

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// network is the lab's bridge and its /24.
type network struct {
	bridge string
	prefix netip.Prefix
	addr   netip.Addr // of the bridge: .1
}

// linkStem begins the name of each link of the lab. IFNAMSIZ leaves 15 bytes: "hw", 8 of the id, 5 for the rest.
func linkStem(id string) string { return "hw" + id[:8] }

// tries is how many subnets are looked at; there are 30,000, and a machine uses a handful.
const tries = 64

// createNetwork makes the bridge on a /24 that no address and no route of this machine touches.
func createNetwork(ctx context.Context, s *state, id string) (*network, error) {
	n := &network{bridge: linkStem(id) + "br"}
	if err := s.record(entry{Kind: kindLink, Name: n.bridge}); err != nil {
		return nil, err
	}
	// With an address of its own: else a bridge takes the lowest of its ports', so another one whenever a host comes or
	// goes, and all others send into the void until they ask again.
	if err := ip(ctx, "link add "+n.bridge+" address "+hardwareAddress(id)+" type bridge"); err != nil {
		return nil, err
	}
	for range tries {
		prefix, err := randomSubnet()
		if err != nil {
			return nil, err
		}
		used, err := inUse(prefix, n.bridge)
		if err != nil {
			return nil, err
		}
		if used {
			continue
		}
		n.prefix, n.addr = prefix, prefix.Addr().Next()
		cidr := n.addr.String() + "/24 dev " + n.bridge
		if err := ip(ctx, "addr add "+cidr, "link set "+n.bridge+" up"); err != nil {
			return nil, err
		}
		// Another lab may have taken the same one between the look and the claim.
		if used, err = inUse(prefix, n.bridge); err != nil {
			return nil, err
		}
		if !used {
			return n, nil
		}
		if err := ip(ctx, "addr del "+cidr); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("making the lab's bridge: no free /24 found in 10.128.0.0/9")
}

// hardwareAddress is one that is locally administered, from the lab's id.
func hardwareAddress(id string) string {
	return fmt.Sprintf("02:00:%s:%s:%s:%s", id[:2], id[2:4], id[4:6], id[6:8])
}

// randomSubnet picks from 10.128.0.0/9, clear of the usual 10.0 home and 10.96 and 10.244 cluster ranges.
func randomSubnet() (netip.Prefix, error) {
	var b [2]byte
	if _, err := rand.Read(b[:]); err != nil {
		return netip.Prefix{}, err
	}
	second := 128 | b[0]
	if second == 244 {
		second = 245
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second, b[1], 0}), 24), nil
}

// inUse tells whether an interface other than ours, or a route other than ours or the default one, meets the subnet.
func inUse(p netip.Prefix, ours string) (bool, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return false, fmt.Errorf("listing interfaces: %w", err)
	}
	for _, i := range ifs {
		if i.Name == ours {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface has gone since
		}
		for _, a := range addrs {
			if q, err := netip.ParsePrefix(a.String()); err == nil && q.Overlaps(p) {
				return true, nil
			}
		}
	}
	routes, err := routes(ours)
	if err != nil {
		return false, err
	}
	for _, r := range routes {
		if r.Bits() > 0 && r.Overlaps(p) {
			return true, nil
		}
	}
	return false, nil
}

// routes reads /proc/net/route: interface, destination and mask in hexadecimal of the machine's byte order.
func routes(except string) ([]netip.Prefix, error) {
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("reading routes: %w", err)
	}
	var all []netip.Prefix
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		c := strings.Fields(sc.Text())
		if len(c) < 8 || c[0] == except {
			continue
		}
		dst, err1 := strconv.ParseUint(c[1], 16, 32)
		mask, err2 := strconv.ParseUint(c[7], 16, 32)
		if err1 != nil || err2 != nil {
			continue // the heading
		}
		var a [4]byte
		binary.NativeEndian.PutUint32(a[:], uint32(dst))
		all = append(all, netip.PrefixFrom(netip.AddrFrom4(a), bits.OnesCount32(uint32(mask))))
	}
	return all, errors.Join(sc.Err(), f.Close())
}

// ip runs iproute2 with one command a line.
func ip(ctx context.Context, commands ...string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running ip -batch (%s): %w: %s", strings.Join(commands, "; "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// deleteLink removes a link if it is there.
func deleteLink(ctx context.Context, name string) error {
	if _, err := os.Stat("/sys/class/net/" + name); err != nil {
		if _, err := net.InterfaceByName(name); err != nil {
			return nil //nolint:nilerr // there is no such link: that is what was wanted
		}
	}
	err := ip(ctx, "link del "+name)
	if _, gone := net.InterfaceByName(name); gone != nil {
		return nil //nolint:nilerr // it went with its other end meanwhile
	}
	return err
}

func newID() (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
