package index

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"sallyport/index/wordvec"
)

// digest is the SHA-256 of a text, or of an analysis.
type digest [sha256.Size]byte

// digest returns the digest of everything in d that analysis reads.
func (d *Doc) digest() digest {
	text := make([]byte, 0, 2<<10)
	for _, part := range []string{d.ID.Upstream, d.ID.Name, string(d.Kind), d.Wire, d.Upstream, d.Title, d.Description, d.Values, d.Results} {
		text = appendText(text, part)
	}
	for _, p := range d.Params {
		text = appendText(appendText(text, p.Name), p.Description)
	}
	return sha256.Sum256(text)
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// analyzed is a document of a snapshot file. The file holds the digest of the
// analysis, the terms, and for each document its digest and its facts, which refer to terms by number.
type analyzed struct {
	digest digest
	*facts
}

// encode returns the content of a snapshot file. It keeps only the terms that docs use, and renumbers them.
func encode(analysis digest, texts []string, docs []analyzed) []byte {
	number := make([]uint32, len(texts)) // 0 if it has none yet
	var used []string
	renumber := func(id uint32) uint32 {
		if number[id] == 0 {
			used = append(used, texts[id])
			number[id] = uint32(len(used))
		}
		return number[id] - 1
	}
	var body []byte
	for _, d := range docs {
		body = append(body, d.digest[:]...)
		body = d.remap(renumber).append(body)
	}
	head := append(make([]byte, 0, len(body)+16*len(used)), analysis[:]...)
	head = binary.AppendUvarint(head, uint64(len(used)))
	for _, text := range used {
		head = appendText(head, text)
	}
	return append(binary.AppendUvarint(head, uint64(len(docs))), body...)
}

// append appends the encoded facts to to. A new fact must be added here, in decoder.facts and to mapped, and must
// increment analysisVersion.
func (f *facts) append(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(f.numSpellChecked))
	for _, list := range [][]uint32{f.terms, f.words, f.nameStems, f.lead} {
		to = binary.AppendUvarint(to, uint64(len(list)))
		for _, id := range list {
			to = binary.AppendUvarint(to, uint64(id))
		}
	}
	for _, freq := range f.freqs {
		to = binary.LittleEndian.AppendUint16(to, freq)
	}
	for _, x := range f.vector {
		to = append(to, byte(x))
	}
	return to
}

// remap returns a copy of the facts with the term numbers mapped by to.
func (f *facts) remap(to func(uint32) uint32) *facts {
	other := *f
	for _, list := range []*[]uint32{&other.terms, &other.words, &other.nameStems, &other.lead} {
		*list = slices.Clone(*list)
		for i, id := range *list {
			(*list)[i] = to(id)
		}
	}
	return &other
}

var errDamaged = errors.New("damaged snapshot")

// decode is the inverse of encode. The term numbers of the facts are indexes of texts.
func decode(data []byte, analysis digest) (texts []string, docs []analyzed, err error) {
	d := decoder{data: data}
	if digest(d.bytes(sha256.Size)) != analysis {
		return nil, nil, errors.New("snapshot of a different analysis")
	}
	texts = make([]string, d.count(1))
	for i := range texts {
		texts[i] = string(d.bytes(d.count(1)))
	}
	docs = make([]analyzed, d.count(sha256.Size))
	for i := range docs {
		docs[i] = analyzed{digest(d.bytes(sha256.Size)), d.facts(len(texts))}
	}
	if d.bad || len(d.data) > 0 {
		return nil, nil, errDamaged
	}
	return texts, docs, nil
}

// decoder reads data that may be damaged. After the first error it returns zero values.
type decoder struct {
	data []byte
	bad  bool
}

func (d *decoder) fail() {
	d.bad, d.data = true, nil
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.data = d.data[n:]
	return v
}

// count reads the number of items that follow, each of at least size bytes.
func (d *decoder) count(size int) int {
	n := d.number()
	if n > uint64(len(d.data)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.data) {
		d.fail()
		return make([]byte, n) // n is a constant or a result of count
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

// facts reads facts. Their term numbers must be below limit.
func (d *decoder) facts(limit int) *facts {
	f := &facts{numSpellChecked: int(min(d.number(), 1<<31))}
	for _, list := range []*[]uint32{&f.terms, &f.words, &f.nameStems, &f.lead} {
		*list = make([]uint32, d.count(1))
		for i := range *list {
			id := d.number()
			if id >= uint64(limit) {
				d.fail()
				return &facts{}
			}
			(*list)[i] = uint32(id)
		}
	}
	f.freqs = make([]uint16, len(f.terms))
	freqs := d.bytes(2 * len(f.freqs))
	for i := range f.freqs {
		f.freqs[i] = binary.LittleEndian.Uint16(freqs[2*i:])
	}
	for i, x := range d.bytes(wordvec.Dim) {
		f.vector[i] = int8(x)
	}
	if f.numSpellChecked > len(f.terms) || slices.Contains(f.freqs, 0) {
		d.fail()
		return &facts{}
	}
	return f
}
