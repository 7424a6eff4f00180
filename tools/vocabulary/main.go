// Vocabulary writes internal/tokens/NAME.gz from the module that this module pins: the tokens of a vocabulary in the
// order of their ranks, each after its length in one or two bytes. It also writes the counts with which a test compares
// the own code. The files are committed, so only who changes the pin needs this.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
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
	var text bytes.Buffer
	// The ranks have no gap; the first number without a token ends them.
	for rank := uint(0); ; rank++ {
		token, err := codec.Decode([]uint{rank})
		if err != nil {
			break
		}
		text.Write(binary.AppendUvarint(nil, uint64(len(token))))
		text.WriteString(token)
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(text.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile("../../internal/tokens/"+string(name)+".gz", out.Bytes(), 0o644)
}
