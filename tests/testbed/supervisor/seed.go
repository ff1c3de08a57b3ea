package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// seedFolder, beside the components, holds what etcd has once kube-apiserver has made its roles, namespaces and
// priority levels, which takes a third of the CPU of a start.
const seedFolder = "seed"

// sow begins with the seed, where there is one.
func (p *plane) sow() error {
	seed := filepath.Join(p.o.bin, seedFolder)
	if _, err := os.Stat(seed); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return copySparse(seed, p.path("etcd"))
}

func mainSeed(args []string) int {
	if len(args) != 1 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	if err := seed(context.Background(), args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
		return 1
	}
	return 0
}

// seed starts etcd and kube-apiserver, ends them in order when everything is made, and keeps what etcd wrote.
func seed(ctx context.Context, into string) error {
	o, err := parse([]string{"--quiet"})
	if err != nil {
		return err
	}
	plane := newPlane(o)
	plane.seeding = true
	defer func() {
		plane.killAll()
		_ = os.RemoveAll(o.dir)
	}()
	if err := plane.start(ctx); err != nil {
		return err
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if err := plane.halt(name, syscall.SIGTERM); err != nil {
			return err
		}
	}
	return copySparse(plane.path("etcd"), into)
}

// copySparse copies a folder; blocks of zeros, of which etcd writes 64 MB ahead, become holes.
func copySparse(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, relative), 0o700)
		}
		return copySparseFile(path, filepath.Join(to, relative))
	})
}

func copySparseFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	block := make([]byte, 64<<10)
	zeros := make([]byte, len(block))
	var at int64
	for {
		n, err := io.ReadFull(source, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := target.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return target.Truncate(at)
		}
		if err != nil {
			return err
		}
	}
}
