// The names program trains internal/names/names.bin, the model of names and addresses in prose, from
//
//   - names, cities, streets and countries of @faker-js/faker, and names of the census of the United States,
//   - WordNet's words, and its examples, in which names replace pronouns,
//   - sentences with slots (templates.txt), and comments of Go's standard library, which contain no names.
//
// It evaluates the model on ../shared/pii, which is not used for training, and on texts that have hardly any names.
// "make names" runs it; its output is committed.
package main

import (
	"flag"
	"fmt"
	"os"

	"sallyport/internal/names"
)

// settings holds the paths and sizes from the flags.
type settings struct {
	lists, templates, census, goroot, shared, out string
	examples, surnames, wrong                     int
}

func main() {
	var s settings
	flag.StringVar(&s.lists, "lists", ".cache/names.json", "output of lists.mjs")
	flag.StringVar(&s.templates, "templates", "tools/names/templates.txt", "sentences with slots")
	flag.StringVar(&s.census, "census", "", "folder of the module github.com/ccojocar/zxcvbn-go")
	flag.StringVar(&s.goroot, "goroot", "", "Go root folder")
	flag.StringVar(&s.shared, "shared", "../shared", "folder with pii and catalog, for evaluation")
	flag.StringVar(&s.out, "out", "internal/names/names.bin", "output file; empty: evaluate the built-in model")
	flag.IntVar(&s.examples, "examples", 160_000, "number of training examples")
	flag.IntVar(&s.surnames, "surnames", 4000, "number of census names, the most frequent first")
	flag.IntVar(&s.wrong, "wrong", 0, "number of mistakes to print")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	m, err := names.Load()
	if s.out != "" {
		m, err = train(s)
	}
	if err != nil {
		return err
	}
	return evaluate(os.Stdout, m, s)
}

func train(s settings) (*names.Model, error) {
	src, err := load(s)
	if err != nil {
		return nil, err
	}
	mk, err := newGenerator(src, s.templates, 1)
	if err != nil {
		return nil, err
	}
	m := names.Train(lists(src), mk.examples(s.examples), names.Settings{Rounds: 3, Unlisted: 0.1, Lead: 50, Seed: 1})
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	fmt.Printf("%s: %d bytes\n", s.out, len(data))
	if err := os.WriteFile(s.out, data, 0o644); err != nil { //nolint:gosec // it is committed
		return nil, err
	}
	return names.Decode(data)
}
