//go:build !linux

package workspace

import (
	"fmt"
	"io/fs"
	"os"
)

func version(info fs.FileInfo) string {
	return fmt.Sprintf("%x.%x", info.ModTime().UnixNano(), info.Size())
}

func syncAll(f *os.File) error { return f.Sync() }
