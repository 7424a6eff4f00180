package store

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// checksum is HighwayHash with a result of 64 bits, as the engine has it behind each record: a state of four lanes of 64 bits, mixed with 32
// bytes at a time. The engine's own library is not a direct dependency for this one function.
type checksum struct {
	start, now lanes
	left       [32]byte
	used       int
}

type lanes struct{ v0, v1, mul0, mul1 [4]uint64 }

var (
	laneInit0 = [4]uint64{0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3}
	laneInit1 = [4]uint64{0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377}
)

// newChecksum makes checksums whose key is the digest of a name.
func newChecksum(name string) *checksum {
	key := sha256.Sum256([]byte(name))
	c := &checksum{}
	c.start.mul0, c.start.mul1 = laneInit0, laneInit1
	for i := range 4 {
		k := binary.LittleEndian.Uint64(key[8*i:])
		c.start.v0[i], c.start.v1[i] = laneInit0[i]^k, laneInit1[i]^bits.RotateLeft64(k, 32)
	}
	return c
}

// of returns the checksum of texts, one after the other.
func (c *checksum) of(texts ...[]byte) uint64 {
	c.now, c.used = c.start, 0
	for _, text := range texts {
		c.add(text)
	}
	if c.used > 0 {
		c.rest()
	}
	for range 4 {
		v := &c.now.v0
		c.now.mix([4]uint64{bits.RotateLeft64(v[2], 32), bits.RotateLeft64(v[3], 32), bits.RotateLeft64(v[0], 32), bits.RotateLeft64(v[1], 32)})
	}
	return c.now.v0[0] + c.now.v1[0] + c.now.mul0[0] + c.now.mul1[0]
}

func (c *checksum) add(text []byte) {
	if c.used > 0 {
		n := copy(c.left[c.used:], text)
		text = text[n:]
		if c.used += n; c.used < len(c.left) {
			return
		}
		c.now.block(c.left[:])
		c.used = 0
	}
	for ; len(text) >= 32; text = text[32:] {
		c.now.block(text)
	}
	c.used = copy(c.left[:], text)
}

// rest mixes in the last bytes, fewer than 32.
func (c *checksum) rest() {
	n, s := c.used, &c.now
	for i := range 4 {
		s.v0[i] += uint64(n)<<32 + uint64(n) //nolint:gosec // under 32
		low, high := bits.RotateLeft32(uint32(s.v1[i]), n), bits.RotateLeft32(uint32(s.v1[i]>>32), n)
		s.v1[i] = uint64(high)<<32 | uint64(low)
	}
	var last [32]byte
	whole := n &^ 3
	copy(last[:], c.left[:whole])
	if n&16 != 0 {
		copy(last[28:], c.left[n-4:n])
	} else if end := c.left[whole:n]; len(end) > 0 {
		last[16], last[17], last[18] = end[0], end[len(end)>>1], end[len(end)-1]
	}
	s.block(last[:])
}

func (s *lanes) block(data []byte) {
	_ = data[31]
	s.mix([4]uint64{
		binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:]), binary.LittleEndian.Uint64(data[24:]),
	})
}

func (s *lanes) mix(m [4]uint64) {
	for i := range 4 {
		s.v1[i] += m[i] + s.mul0[i]
		s.mul0[i] ^= (s.v1[i] & 0xffffffff) * (s.v0[i] >> 32)
		s.v0[i] += s.mul1[i]
		s.mul1[i] ^= (s.v0[i] & 0xffffffff) * (s.v1[i] >> 32)
	}
	for i := 0; i < 4; i += 2 {
		a, b := zip(s.v1[i], s.v1[i+1])
		s.v0[i] += a
		s.v0[i+1] += b
	}
	for i := 0; i < 4; i += 2 {
		a, b := zip(s.v0[i], s.v0[i+1])
		s.v1[i] += a
		s.v1[i+1] += b
	}
}

// zip shuffles the bytes of two lanes.
func zip(a, b uint64) (uint64, uint64) {
	const b0, b1, b2, b3, b4, b5, b6, b7 = 0xff, 0xff << 8, 0xff << 16, 0xff << 24, 0xff << 32, 0xff << 40, 0xff << 48, 0xff << 56
	return (a&b3|b&b4)>>24 | (a&b5|b&b6)>>16 | a&b2 | a&b1<<32 | b&b7>>8 | a<<56,
		(b&b3|a&b4)>>24 | b&b2 | b&b5>>16 | b&b1<<24 | a&b6>>8 | b&b0<<48 | a&b7
}
