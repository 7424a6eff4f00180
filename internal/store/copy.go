package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// copyTries is the number of attempts to copy while concurrent writes damage the copy.
const copyTries = 3

// Copy copies a directory of records that a store, of this process or another, may be writing to. The copy contains
// everything acknowledged before Copy was called, and has been verified by reading all of it. to must not exist. The
// error for a directory without records is fs.ErrNotExist.
func Copy(ctx context.Context, from, to string) error {
	var err error
	for range copyTries {
		if err = copyOnce(ctx, from, to); err == nil || ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNewer) {
			break
		}
		if removed := os.RemoveAll(to); removed != nil {
			return errors.Join(err, removed)
		}
	}
	if err != nil {
		return fmt.Errorf("copy records: %w", err)
	}
	return nil
}

func copyOnce(ctx context.Context, from, to string) error {
	if err := checkVersion(from, newest(migrations())); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(from, schemaFile)); err != nil {
		return err
	}
	if err := copyFiles(ctx, from, to); err != nil {
		return err
	}
	return verify(ctx, to)
}

// copyFiles copies a folder while it is written to. Blocks of messages are copied in creation order, so that a
// message that moves to a later block is not missed; files that the engine can rebuild from the blocks are left out,
// as they may not match them.
func copyFiles(ctx context.Context, from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(blockNumber(a.Name()), blockNumber(b.Name())) })
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case e.Name() == "index.db" || e.Name() == ownerFile || isPartial(e.Name()):
			continue
		case e.IsDir():
			err = copyFiles(ctx, source, target)
		case e.Type().IsRegular():
			err = copyFile(source, target)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a file that vanished has expired
			return err
		}
	}
	return nil
}

// blockNumber returns the number of a block file, 0 for other files.
func blockNumber(name string) int {
	number, isBlock := strings.CutSuffix(name, ".blk")
	n, err := strconv.Atoi(number)
	if !isBlock || err != nil {
		return 0
	}
	return n
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// verify opens a directory and reads everything in it.
func verify(ctx context.Context, dir string) error {
	made, err := os.ReadDir(filepath.Join(dir, madeFolder))
	if err != nil {
		return err
	}
	e, err := startEngine(filepath.Join(dir, engineFolder), (&Options{MaxBytes: 1 << 50}).withDefaults())
	if err != nil {
		return err
	}
	defer e.close()
	for _, name := range made {
		if err := readAll(ctx, e, name.Name()); err != nil {
			return fmt.Errorf("read %s: %w", name.Name(), err)
		}
	}
	return nil
}

func readAll(ctx context.Context, e *engine, name string) error {
	found, err := e.js.Stream(ctx, name)
	if err != nil {
		return translate(err)
	}
	in := &jet{e.js, found, e.scope}
	for from := uint64(1); ; {
		m, err := in.next(ctx, name+".>", from)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		from = m.number + 1
	}
}
