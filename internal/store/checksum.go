package store

import (
	"crypto/sha256"

	"github.com/minio/highwayhash"
)

// checksum is the engine's checksum of a record: HighwayHash-64 keyed with the digest of a name.
type checksum highwayhash.Digest64

func newChecksum(name string) *checksum {
	key := sha256.Sum256([]byte(name))
	d, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		panic(err) // the key has another size than it wants
	}
	return (*checksum)(d)
}

// of returns the checksum of the concatenated texts.
func (c *checksum) of(texts ...[]byte) uint64 {
	d := (*highwayhash.Digest64)(c)
	d.Reset()
	for _, text := range texts {
		_, _ = d.Write(text) // it never fails
	}
	return d.Sum64()
}
