// Vocabulary writes internal/tokens/NAME.gz from the module that this module pins: the single bytes in the order of their
// ranks, then for every other token the ranks of the two that it is made of. It also writes the counts with which a test compares
// the own code. The files are committed, so only who changes the pin needs this.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"

	"github.com/tiktoken-go/tokenizer"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vocabulary:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, name := range []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase} {
		if err := write(name); err != nil {
			return err
		}
	}
	return writeCounts()
}

func write(name tokenizer.Encoding) error {
	codec, err := tokenizer.Get(name)
	if err != nil {
		return err
	}
	packed, err := pack(codec)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(packed); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile("../../internal/tokens/"+string(name)+".gz", out.Bytes(), 0o644)
}

// pack returns the vocabulary: 256 bytes, then six parts of equal length: the low, middle and high bytes of the first
// ranks, and those of the second ones. The bytes of one place compress better next to each other.
func pack(codec tokenizer.Codec) ([]byte, error) {
	var single []byte
	var parts [6][]byte
	ranks := map[string]int{}
	// The ranks have no gap; the first number without a token ends them.
	for rank := 0; ; rank++ {
		token, err := codec.Decode([]uint{uint(rank)})
		if err != nil {
			break
		}
		ranks[token] = rank
		if len(token) == 1 && rank == len(single) {
			single = append(single, token[0])
			continue
		}
		first, second, ok := divide(token, ranks)
		if !ok || len(single) != 256 {
			return nil, fmt.Errorf("token %d is not made of two earlier ones", rank)
		}
		for i, n := range []int{first, first >> 8, first >> 16, second, second >> 8, second >> 16} {
			parts[i] = append(parts[i], byte(n))
		}
	}
	if len(single) != 256 {
		return nil, errors.New("the first 256 tokens are not the single bytes")
	}
	return append(single, bytes.Join(parts[:], nil)...), nil
}

// divide returns the ranks of two earlier tokens that make up a token, the first of them as long as possible.
func divide(token string, ranks map[string]int) (first, second int, ok bool) {
	for end := len(token) - 1; end > 0; end-- {
		first, found := ranks[token[:end]]
		second, ok := ranks[token[end:]]
		if found && ok {
			return first, second, true
		}
	}
	return 0, 0, false
}
