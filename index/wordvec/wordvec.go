// Package wordvec embeds words as vectors, which are similar for words with similar
// meanings: "parcel" and "package", "get rid of" and "delete". Its main type is
// [Model], a table of static vectors for about thirty thousand English words. The
// vector of a text is the weighted sum of the vectors of its words, so it costs
// microseconds and needs neither a network nor model inference. tools/vectors builds
// the table and describes its sources.
package wordvec

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strings"

	"sallyport/internal/packed"
)

// Dim is the number of dimensions.
const Dim = 96

// unit is the fixed-point value of 1 in a component of a vector. Components of texts
// are far below 1, so the limit of 127 cuts hardly any.
const unit = 256

// Vector is the embedding of a text. It has length 1, up to rounding.
type Vector [Dim]int8

// Word identifies a word of the table; Unknown means all others.
type Word uint16

// Unknown is the zero value of Word.
const Unknown Word = 0

// Part is a weighted part of a text. Its length does not change its weight.
type Part struct {
	Words  []Word
	Weight float32
}

// ErrData is returned by Load for data that is not a table of this version.
var ErrData = errors.New("not a table of word vectors")

// table is the output of tools/vectors; encode there documents its format.
//
//go:embed vectors.bin
var table []byte

// Model maps words to vectors. It is immutable: all methods are safe for concurrent use.
type Model struct {
	words  map[string]Word
	scales []byte // a float32 each
	rows   []byte // Dim int8 each
	sum    uint32
}

// The header is the magic, the number of words and the bytes of their texts.
const (
	magic      = "words96\n"
	headerSize = len(magic) + 8
)

// New returns the built-in model. It takes some milliseconds, so callers should keep the result.
func New() (*Model, error) { return Load(packed.Read(table)) }

// Load parses a table. The model keeps a reference to data. It returns ErrData for an invalid table.
func Load(data []byte) (*Model, error) {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return nil, ErrData
	}
	words, size := uint64(binary.LittleEndian.Uint32(data[len(magic):])), uint64(binary.LittleEndian.Uint32(data[len(magic)+4:]))
	if words >= math.MaxUint16 || uint64(len(data)) != uint64(headerSize)+size+words*(4+Dim) {
		return nil, ErrData
	}
	texts, rest := string(data[headerSize:][:size]), data[uint64(headerSize)+size:]
	m := &Model{words: make(map[string]Word, words), scales: rest[:4*words], rows: rest[4*words:], sum: crc32.ChecksumIEEE(data)}
	for w := range strings.Lines(texts) {
		m.words[strings.TrimSuffix(w, "\n")] = Word(len(m.words) + 1)
	}
	if uint64(len(m.words)) != words {
		return nil, ErrData
	}
	return m, nil
}

// Sum returns the checksum of the table.
func (m *Model) Sum() uint32 { return m.sum }

// Find returns the word for text, which must be in lower case, or for its base form; Unknown if there is none.
func (m *Model) Find(text string) Word {
	if w, ok := m.words[text]; ok {
		return w
	}
	for _, ending := range [...]string{"s", "es", "ed", "d", "ing", "ly"} {
		if base, ok := strings.CutSuffix(text, ending); ok && len(base) > 2 {
			if w, ok := m.words[base]; ok {
				return w
			}
		}
	}
	return Unknown
}

// Embed returns the vector of a text. It returns false if fewer than half of the
// words are known, or if their vectors cancel out.
func (m *Model) Embed(parts ...Part) (Vector, bool) {
	var sum [Dim]float32
	known, all := 0, 0
	for _, p := range parts {
		all += len(p.Words)
		known += m.add(&sum, p)
	}
	n := length(&sum)
	if 2*known < all || !(n > 0) || math.IsInf(float64(n), 0) {
		return Vector{}, false
	}
	scale := unit / n
	var v Vector
	for i, x := range sum {
		v[i] = int8(max(-127, min(127, math.Round(float64(x*scale)))))
	}
	return v, true
}

// add adds a part to sum and returns the number of its known words.
func (m *Model) add(sum *[Dim]float32, p Part) (known int) {
	var part [Dim]float32
	for _, w := range p.Words {
		if w == Unknown || int(w)*Dim > len(m.rows) {
			continue
		}
		known++
		scale := math.Float32frombits(binary.LittleEndian.Uint32(m.scales[4*(w-1):]))
		for i, x := range m.rows[int(w-1)*Dim:][:Dim] {
			part[i] += scale * float32(int8(x))
		}
	}
	if n := length(&part); n > 0 {
		for i := range sum {
			sum[i] += part[i] * p.Weight / n
		}
	}
	return known
}

func length(v *[Dim]float32) float32 {
	sum := float32(0)
	for _, x := range v {
		sum += x * x
	}
	return float32(math.Sqrt(float64(sum)))
}

// Likeness returns the cosine similarity of two vectors: 1 for the same meaning,
// about 0 for unrelated texts.
func (v *Vector) Likeness(o *Vector) float32 { return float32(v.dot(o)) / (unit * unit) }

// dot returns the dot product. Four accumulators break the dependency between additions.
func (v *Vector) dot(o *Vector) int32 {
	var a, b, c, d int32
	x, y := v[:], o[:]
	for len(x) >= 8 && len(y) >= 8 {
		a += int32(x[0])*int32(y[0]) + int32(x[4])*int32(y[4])
		b += int32(x[1])*int32(y[1]) + int32(x[5])*int32(y[5])
		c += int32(x[2])*int32(y[2]) + int32(x[6])*int32(y[6])
		d += int32(x[3])*int32(y[3]) + int32(x[7])*int32(y[7])
		x, y = x[8:], y[8:]
	}
	return a + b + c + d
}
