package tokens

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"io"
)

// vocabularies are made by tools/vocabulary. They take 1.1 MB of the program, as Go maps 11 MB.
//
//go:embed o200k_base.gz cl100k_base.gz
var vocabularies embed.FS

// readVocabulary returns the ranks of the tokens of a vocabulary.
func readVocabulary(name string) (map[string]uint32, error) {
	packed, err := vocabularies.ReadFile(name)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	return ranksOf(text)
}

// ranksOf returns the ranks of tokens: of the 256 single bytes, then of the others, each made of two earlier ones. Their
// ranks are in six parts of equal length: the low, middle and high bytes of the first ones, then of the second ones.
func ranksOf(packed []byte) (map[string]uint32, error) {
	const bytes, parts = 256, 6
	n := (len(packed) - bytes) / parts
	if n < 0 || len(packed) != bytes+n*parts {
		return nil, errDamaged
	}
	ends, all := make([]int, 1, 1+bytes+n), append(make([]byte, 0, 8*(bytes+n)), packed[:bytes]...)
	for i := range bytes {
		ends = append(ends, i+1)
	}
	part := func(which, i int) int { return int(packed[bytes+which*n+i]) }
	for i := range n {
		for _, which := range []int{0, 3} {
			rank := part(which, i) | part(which+1, i)<<8 | part(which+2, i)<<16
			if rank >= bytes+i {
				return nil, errDamaged
			}
			all = append(all, all[ends[rank]:ends[rank+1]]...)
		}
		ends = append(ends, len(all))
	}
	return byRank(string(all), ends), nil
}

var errDamaged = errors.New("the vocabulary is damaged")

// byRank returns the ranks of tokens that are one string, so that each needs no memory of its own.
func byRank(all string, ends []int) map[string]uint32 {
	ranks := make(map[string]uint32, len(ends)-1)
	for rank, end := range ends[1:] {
		ranks[all[ends[rank]:end]] = uint32(rank) //nolint:gosec // small
	}
	return ranks
}
