package packed

import (
	"bytes"
	"io"
	"io/fs"
)

// FS returns embedded files as they were before a release compressed some of them. Only a directory's list tells the
// compressed sizes. Opening a damaged file panics, see [Read].
func FS(embedded fs.FS) fs.FS { return files{embedded} }

type files struct{ embedded fs.FS }

// Open implements [fs.FS].
func (f files) Open(name string) (fs.File, error) {
	opened, err := f.embedded.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err != nil || info.IsDir() {
		return opened, err
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(opened)
	if err != nil {
		return nil, err
	}
	data = Read(data)
	return file{bytes.NewReader(data), plainInfo{info, int64(len(data))}}, nil
}

// file is the content of an embedded file.
type file struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (file) Close() error                 { return nil }

// plainInfo has the size of the plain content.
type plainInfo struct {
	fs.FileInfo
	size int64
}

func (i plainInfo) Size() int64 { return i.size }
