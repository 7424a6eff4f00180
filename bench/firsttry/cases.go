package main

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// group is a file of cases that make the same kind of mistake.
type group struct {
	// Mistake is the kind of mistake.
	Mistake string
	Cases   []trial
}

// trial is a program as a model writes it.
type trial struct {
	Name string
	// Task names the task that the program should do, Want its answer where the program gives another form of it.
	Task string
	Want any
	// Language is of the program; Arguments go with it to execute_code instead of the language.
	Language  string
	Arguments map[string]any
	Program   string
	// Source is the key of the public text that shows the mistake.
	Source string
	// AfterFix is set if the case was written after the product was changed for it.
	AfterFix bool `yaml:"after_fix"`
	// Fixes are the repairs that the answer may lead to.
	Fixes []fix

	mistake string
}

// fix is a repair that uses the text of the answer only.
type fix struct {
	// Says matches the answer that leads to it.
	Says string
	// Search is the query of a search that the answer advises, Look a program that it advises, such as to print the shape
	// of a result. What they answer counts as part of the answer.
	Search  string
	Look    string
	Program string
	// Known are words of the language's own library, which its writer knows.
	Known []string
	// Swap has texts of the program and their replacements, alternately; it replaces Program.
	Swap []string
	// Arguments replace those of the case.
	Arguments map[string]any
}

// repaired returns the repaired program.
func (f fix) repaired(program string) string {
	return strings.NewReplacer(f.Swap...).Replace(cmp.Or(f.Program, program))
}

// source is a public text that shows what models write.
type source struct {
	URL   string
	Shows string
}

//go:embed cases
var files embed.FS

// readCases returns all cases in the order of the files.
func readCases() ([]trial, error) {
	names, err := fs.Glob(files, "cases/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []trial
	for _, name := range names {
		var g group
		if err := readYAML(name, &g); err != nil {
			return nil, err
		}
		for _, t := range g.Cases {
			t.mistake = g.Mistake
			all = append(all, t)
		}
	}
	return all, nil
}

// readSources returns the public texts by key.
func readSources() (all map[string]source, err error) {
	return all, readYAML("cases/sources/sources.yaml", &all)
}

func readYAML(name string, to any) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := errors.Join(decoder.Decode(to), file.Close()); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// check returns what is wrong with the cases.
func check(all []trial, tasks map[string]task, sources map[string]source) (problems []error) {
	seen := map[string]bool{}
	for _, t := range all {
		if err := t.check(tasks, sources); err != nil {
			problems = append(problems, fmt.Errorf("case %s: %w", t.Name, err))
		}
		if seen[t.Name] {
			problems = append(problems, fmt.Errorf("case %s: the name is used twice", t.Name))
		}
		seen[t.Name] = true
	}
	return problems
}

func (t trial) check(tasks map[string]task, sources map[string]source) error {
	if _, ok := tasks[t.Task]; !ok {
		return fmt.Errorf("unknown task %q", t.Task)
	}
	if _, ok := sources[t.Source]; !ok {
		return fmt.Errorf("unknown source %q", t.Source)
	}
	if !slices.Contains([]string{"python", "typescript"}, t.Language) || t.Program == "" {
		return errors.New("language or program is missing")
	}
	for _, f := range t.Fixes {
		if _, err := regexp.Compile(f.Says); err != nil || f.Says == "" || len(f.Swap)%2 != 0 {
			return errors.Join(errors.New("a fix needs says, and pairs of texts to swap"), err)
		}
		for i := 0; i < len(f.Swap); i += 2 {
			if !strings.Contains(t.Program, f.Swap[i]) {
				return fmt.Errorf("the program has no %q", f.Swap[i])
			}
		}
	}
	return nil
}

// word matches what a program can only have from a text that its writer has read: a name or a number.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*|[0-9][0-9_.]*`)

// keywords are words of the languages themselves, conversions among them and names of one letter, which need no hint.
// What starts a call or waits for it is not among them.
var keywords = regexp.MustCompile(`^(if|else|for|in|of|not|and|or|is|while|def|return|const|let|function|new|None|True|False|null|undefined|true|false|break|pass|lambda|push|append|add|int|float|Number|Date|get|set|len|[a-z]|[012]|24|60|1000)$`)

// invented returns the words of a repaired program that occur neither in the first program nor in the texts that were
// read, also not as the beginning of a longer word, such as await of awaited.
func invented(repaired string, read ...string) (words []string) {
	known := map[string]bool{}
	for _, text := range read {
		for _, w := range word.FindAllString(text, -1) {
			known[w] = true
			for end := 4; end < len(w); end++ {
				known[w[:end]] = true
			}
		}
	}
	for _, w := range word.FindAllString(repaired, -1) {
		if !known[w] && !keywords.MatchString(w) && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}
