package names

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"
)

//go:embed names.bin
var builtIn []byte

var load = sync.OnceValues(func() (*Model, error) { return Decode(builtIn) })

// Load returns the built-in model. The first call takes some milliseconds.
func Load() (*Model, error) { return load() }

// maxFilter bounds a list of words, in bytes.
const maxFilter = 1 << 20

// Encode encodes a model: gzip of scale, transitions, lists with their lengths, and weights.
func (m *Model) Encode() ([]byte, error) {
	var body bytes.Buffer
	put := func(v uint32) { body.Write(binary.LittleEndian.AppendUint32(nil, v)) }
	put(math.Float32bits(m.scale))
	for _, row := range m.transitions {
		for _, v := range row {
			put(math.Float32bits(v))
		}
	}
	for _, list := range m.lists {
		put(uint32(len(list))) //nolint:gosec // under maxFilter
		body.Write(list)
	}
	for _, w := range m.features {
		for _, v := range w {
			body.WriteByte(byte(v)) //nolint:gosec // its bits
		}
	}
	var file bytes.Buffer
	z, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(body.Bytes()); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

// Decode reads what Encode wrote.
func Decode(file []byte) (*Model, error) {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("read model of names: %w", err)
	}
	r := reader{r: z}
	m := &Model{scale: math.Float32frombits(r.number())}
	for p := range m.transitions {
		for k := range m.transitions[p] {
			m.transitions[p][k] = math.Float32frombits(r.number())
		}
	}
	for c := range m.lists {
		m.lists[c] = r.bytes(r.number(), maxFilter)
	}
	data := r.bytes(tags<<hashBits, tags<<hashBits)
	if r.err == nil { // read to the end, which checks the sum
		_, r.err = io.Copy(io.Discard, z)
	}
	if r.err != nil {
		return nil, fmt.Errorf("read model of names: %w", r.err)
	}
	m.features = make([]weights, 1<<hashBits)
	for f := range m.features {
		for k := range tags {
			m.features[f][k] = int8(data[f*tags+k]) //nolint:gosec // its bits
		}
	}
	return m, nil
}

// reader keeps the first error.
type reader struct {
	r   io.Reader
	err error
}

func (r *reader) bytes(n, most uint32) []byte {
	if r.err == nil && n > most {
		r.err = fmt.Errorf("a part of %d bytes", n)
	}
	if r.err != nil {
		return nil
	}
	data := make([]byte, n)
	_, r.err = io.ReadFull(r.r, data)
	return data
}

func (r *reader) number() uint32 {
	data := r.bytes(4, 4)
	if r.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint32(data)
}
