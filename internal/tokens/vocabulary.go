package tokens

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"errors"
	"io"
)

// vocabularies are made by tools/vocabulary. Compressed they take 1.6 MB of the program, as Go maps 11 MB.
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

// ranksOf returns the ranks of tokens, each of which follows its length.
func ranksOf(text []byte) (map[string]uint32, error) {
	ranks := make(map[string]uint32, len(text)/8)
	all := string(text) // one string for all tokens
	for at := 0; at < len(all); {
		length, width := binary.Uvarint(text[at:])
		end := at + width + int(length)
		if width <= 0 || end > len(all) {
			return nil, errors.New("the vocabulary is damaged")
		}
		ranks[all[at+width:end]] = uint32(len(ranks))
		at = end
	}
	return ranks, nil
}
