// Package packed reads files that are embedded in the program, which a release has compressed (see tools/dist).
package packed

import (
	"bytes"
	"compress/gzip"
	"io"
)

// Read returns the content of an embedded file. It panics if a compressed one is damaged, as it is part of the program.
func Read(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) { // the magic number of gzip (RFC 1952, section 2.3.1)
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return plain
}
