package shimhost

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Tree is what stands below some directories: of a file its content, of a directory a
// nil content.
type Tree map[string]*Node

// Node is a file or a directory.
type Node struct {
	Mode    fs.FileMode
	Content []byte
	inode   uint64
}

// TakeTree reads what stands below places.
func TakeTree(places ...string) (Tree, error) {
	tree := Tree{}
	for _, place := range places {
		err := filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return tree.take(path)
		})
		if err != nil {
			return nil, err
		}
	}
	return tree, nil
}

func (t Tree) take(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	node := &Node{Mode: info.Mode()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		node.inode = stat.Ino
	}
	if info.Mode().IsRegular() {
		if node.Content, err = os.ReadFile(path); err != nil {
			return err
		}
		if node.Content == nil {
			node.Content = []byte{}
		}
	}
	t[path] = node
	return nil
}

// Restore makes what stands below places be the tree again.
func (t Tree) Restore(places ...string) error {
	for _, place := range places {
		entries, err := os.ReadDir(place)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := os.RemoveAll(filepath.Join(place, entry.Name())); err != nil {
				return err
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(t)) {
		node := t[path]
		switch {
		case slices.Contains(places, path):
			continue
		case node.Mode.IsDir():
			if err := os.Mkdir(path, node.Mode.Perm()); err != nil {
				return err
			}
		default:
			if err := os.WriteFile(path, node.Content, node.Mode.Perm()); err != nil {
				return err
			}
		}
		if err := os.Chmod(path, node.Mode.Perm()); err != nil {
			return err
		}
	}
	return nil
}

// String lists the tree, for comparing and for messages.
func (t Tree) String() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "%v %s %q\n", t[path].Mode, path, t[path].Content)
	}
	return b.String()
}

// Disk knows what of a tree would be there after the power was lost, on a file system that
// keeps nothing before it is synced: of a file its bytes at its last fsync, of a directory
// its names at its last.
type Disk struct {
	places   []string
	contents map[uint64]*Node             // by inode
	names    map[string]map[string]uint64 // by directory
}

// NewDisk takes all that is there now for synced.
func NewDisk(places ...string) (*Disk, error) {
	d := &Disk{places: places, contents: map[uint64]*Node{}, names: map[string]map[string]uint64{}}
	tree, err := TakeTree(places...)
	if err != nil {
		return nil, err
	}
	for path, node := range tree {
		d.contents[node.inode] = node
		if node.Mode.IsDir() {
			d.names[path] = tree.names(path)
		}
	}
	return d, nil
}

func (t Tree) names(dir string) map[string]uint64 {
	names := map[string]uint64{}
	for path, node := range t {
		if filepath.Dir(path) == dir && path != dir {
			names[filepath.Base(path)] = node.inode
		}
	}
	return names
}

// Synced notes that path was synced.
func (d *Disk) Synced(path string) error {
	tree, err := TakeTree(d.places...)
	if err != nil {
		return err
	}
	node := tree[path]
	switch {
	case node == nil: // it has been removed
	case node.Mode.IsDir():
		d.names[path] = tree.names(path)
		d.contents[node.inode] = node
	default:
		d.contents[node.inode] = node
	}
	return nil
}

// Lost are the trees that a loss of power may leave now: without the bytes that were not
// synced; without the names that were not; and without both.
func (d *Disk) Lost() ([]Tree, error) {
	now, err := TakeTree(d.places...)
	if err != nil {
		return nil, err
	}
	current := map[uint64]*Node{}
	names := map[string]map[string]uint64{}
	for path, node := range now {
		current[node.inode] = node
		if node.Mode.IsDir() {
			names[path] = now.names(path)
		}
	}
	durable := func(inode uint64) *Node {
		if node := d.contents[inode]; node != nil {
			return node
		}
		if node := current[inode]; node != nil { // never synced: there by name alone
			empty := &Node{Mode: node.Mode}
			if !node.Mode.IsDir() {
				empty.Content = []byte{}
			}
			return empty
		}
		return nil
	}
	newest := func(inode uint64) *Node {
		if node := current[inode]; node != nil {
			return node
		}
		return d.contents[inode]
	}
	var trees []Tree
	for _, way := range []struct {
		names map[string]map[string]uint64
		node  func(uint64) *Node
	}{{names, durable}, {d.names, newest}, {d.names, durable}} {
		tree := Tree{}
		for _, place := range d.places {
			tree[place] = now[place]
			tree.grow(place, way.names, way.node)
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func (t Tree) grow(dir string, names map[string]map[string]uint64, node func(uint64) *Node) {
	for name, inode := range names[dir] {
		path := filepath.Join(dir, name)
		found := node(inode)
		if found == nil {
			continue
		}
		t[path] = found
		if found.Mode.IsDir() {
			t.grow(path, names, node)
		}
	}
}
