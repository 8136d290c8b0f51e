//go:build linux && amd64

package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/testkit/shimhost"
)

// disk is a file system that fails in one kind of call, for as long as it is told to.
type disk struct {
	fault atomic.Pointer[fault]
}

type fault struct {
	call  string
	errno syscall.Errno
}

func (d *disk) fails(call string) syscall.Errno {
	if f := d.fault.Load(); f != nil && f.call == call {
		return f.errno
	}
	return 0
}

// diskNode passes all on to a directory in memory, but what the disk fails in.
type diskNode struct {
	*fs.LoopbackNode
	disk *disk
}

func (n *diskNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	if node, ok := child.(*fs.LoopbackNode); ok {
		return &diskNode{node, n.disk}
	}
	return child
}

func (n *diskNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.disk.fails("create"); errno != 0 {
		return nil, nil, 0, errno
	}
	inode, file, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, n.wrap(file), fuseFlags, errno
}

func (n *diskNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	file, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	return n.wrap(file), fuseFlags, errno
}

func (n *diskNode) wrap(file fs.FileHandle) fs.FileHandle {
	if opened, ok := file.(*fs.LoopbackFile); ok {
		return &diskFile{opened, n.disk}
	}
	return file
}

// diskFile is an open file, whose bytes the kernel may not write past us.
type diskFile struct {
	*fs.LoopbackFile
	disk *disk
}

func (f *diskFile) PassthroughFd() (int, bool) { return 0, false }

func (f *diskFile) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if errno := f.disk.fails("write"); errno != 0 {
		return 0, errno
	}
	return f.LoopbackFile.Write(ctx, data, off)
}

func (n *diskNode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if errno := n.disk.fails("mkdir"); errno != 0 {
		return nil, errno
	}
	return n.LoopbackNode.Mkdir(ctx, name, mode, out)
}

func (n *diskNode) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if errno := n.disk.fails("rename"); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Rename(ctx, name, parent, newName, flags)
}

// Fsync is asked for files and, since these have no handle, for directories.
func (n *diskNode) Fsync(ctx context.Context, file fs.FileHandle, flags uint32) syscall.Errno {
	if errno := n.disk.fails("fsync"); errno != 0 {
		return errno
	}
	if opened, ok := file.(*diskFile); ok {
		return opened.LoopbackFile.Fsync(ctx, flags)
	}
	return 0
}

// OpendirHandle gives no handle, so that Fsync is asked for directories as well.
func (n *diskNode) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

// mountDisk puts a disk under the state of the host.
func mountDisk(t *testing.T) *disk {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); errors.Is(err, os.ErrNotExist) {
		testkit.Missing(t, "/dev/fuse is missing: modprobe fuse")
	}
	d := &disk{}
	const under = "/mnt/disk"
	if err := os.Mkdir(under, 0o700); err != nil {
		t.Fatal(err)
	}
	root := &fs.LoopbackRoot{Path: under}
	node := &diskNode{&fs.LoopbackNode{RootData: root}, d}
	root.RootNode = node
	server, err := fs.Mount(shimhost.State, node, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "disk"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestADiskThatFails: whatever call of the file system fails, and for whatever reason, the
// answer is 22, nothing runs and no mark gets older; with the disk mended the host goes on.
func TestADiskThatFails(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	d := mountDisk(t)
	fails := func(call string, errno syscall.Errno, r run) {
		t.Helper()
		mark := w.mark()
		w.forget()
		d.fault.Store(&fault{call, errno})
		answer := w.send(r.sent)
		d.fault.Store(nil)
		if answer.Code != envelope.ExitState || !saysDisk(answer.Stderr) {
			t.Errorf("%s gives %v: %s of serial %d answers %d: %s", call, errno, r.phase, r.serial, answer.Code, answer.Stderr)
		}
		// a mark without a run does no harm, an older one would
		raised := strings.HasPrefix(w.mark(), fmt.Sprintf("serial %d\n", r.serial))
		if ran := w.hasRun(); len(ran) > 0 || w.mark() != mark && !raised {
			t.Errorf("%s gives %v: %q ran, and the mark went from %q to %q", call, errno, ran, mark, w.mark())
		}
	}
	calls := []string{"create", "write", "fsync", "rename", "mkdir"}
	for _, call := range calls { // a host on which nothing ran yet
		fails(call, syscall.EIO, w.script(script.Join, 5))
	}
	w.mustSend(w.script(script.Join, 5).sent, envelope.ExitOK)
	for _, call := range calls[:4] { // no directory is missing any more
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
			fails(call, errno, w.script(script.Join, 6))
			fails(call, errno, w.script(script.Leave, 6))
		}
	}
	for _, call := range []string{"create", "write", "fsync"} { // an unchanged mark is not renamed
		fails(call, syscall.EIO, w.script(script.Join, 5))
	}
	w.mustSend(w.script(script.Join, 6).sent, envelope.ExitOK)
	w.mustSend(w.script(script.Leave, 6).sent, envelope.ExitOK)
}
