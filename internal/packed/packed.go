// Package packed reads files that are embedded in the program, which a release has compressed (see tools/dist).
package packed

import (
	"bytes"

	"github.com/klauspost/compress/zstd"
)

// Read returns the content of an embedded file. It panics if a compressed one is damaged, as it is part of the program.
func Read(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) { // the magic number of Zstandard (RFC 8878, section 3.1.1)
		return data
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer z.Close()
	plain, err := z.DecodeAll(data, nil)
	if err != nil {
		panic(err)
	}
	return plain
}
