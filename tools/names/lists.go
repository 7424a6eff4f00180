package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/names"
)

// source holds the words and sentences for examples.
type source struct {
	Given, Last, City, Street, Country, Region, Suffix, Title []string
	Common, Proper, Places, People, Nations, Examples         []string
	comments                                                  []string
}

func load(s settings) (src source, err error) {
	data, err := os.ReadFile(s.lists)
	if err != nil {
		return src, err
	}
	if err := json.Unmarshal(data, &src); err != nil {
		return src, err
	}
	for _, l := range []struct {
		file string
		to   *[]string
	}{{"FemaleNames", &src.Given}, {"MaleNames", &src.Given}, {"Surnames", &src.Last}} {
		data, err := os.ReadFile(filepath.Join(s.census, "data", "data", l.file+".json"))
		if err != nil {
			return src, err
		}
		var words struct{ List []string }
		if err := json.Unmarshal(data, &words); err != nil {
			return src, err
		}
		for _, w := range words.List[:min(len(words.List), s.surnames)] {
			*l.to = append(*l.to, capitalize(w))
		}
	}
	src.comments, err = comments(s.goroot)
	return src, err
}

// comments returns paragraphs of the documentation of Go's standard library.
func comments(goroot string) (all []string, err error) {
	files, err := filepath.Glob(filepath.Join(goroot, "src", "*", "*.go"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") || strings.HasPrefix(filepath.Base(f), "z") {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, paragraphs(string(data))...)
	}
	return all, nil
}

func paragraphs(file string) (all []string) {
	var b strings.Builder
	for line := range strings.Lines(file) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
		if text = strings.TrimSpace(text); ok && text != "" && !strings.HasPrefix(text, "go:") {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(text)
			continue
		}
		if s := b.String(); len(s) > 60 && len(s) < 600 && !strings.Contains(s, "Copyright") {
			all = append(all, s)
		}
		b.Reset()
	}
	return all
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// functionWords lists function words, which are not names at the start of a sentence.
const functionWords = `the a an and or but nor if then else when while where who whom whose which what that this these those there here with without within from to of off on in into onto at by for
about as per than so not no yes is are was were be been being am do does did done doing have has had having will would shall should can could may might must i you he she it we they me him her us them my your
his its our their mine yours ours theirs myself yourself himself herself itself ourselves themselves how why all any both each few more most other some such only own same too very just also now please
thanks thank hello hi dear hey ok okay regards sincerely cheers best kind via between against during before after above below up down out over under again further once because until since although though
get got let make made take took see saw seen sent told said went gone came gave given found bought brought thought knew known wrote written spoke spoken ran left felt kept held met paid put read set sold
everything everyone everybody anyone anybody anything someone somebody something nobody nothing none another many much several unless whether would've i'm you're we're they're it's that's what's who's he's she's
don't doesn't didn't can't couldn't won't wouldn't isn't aren't wasn't weren't i'll you'll we'll i've you've we've let's there's here's c'mon wanna gonna i'd you'd he'd we'd they'd`

const calendar = `monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december`

const streetWords = `street st road rd avenue ave lane drive boulevard blvd way court terrace rue via calle straße strasse platz weg allee apt suite unit flat`

const titles = `mr mrs ms dr prof professor captain president judge herr frau monsieur madame señor señora sr sra sir madam miss nurse officer senator`

// lists returns the words of each class.
func lists(src source) (l names.Lists) {
	functions := map[string]bool{}
	for w := range strings.FieldsSeq(functionWords) {
		functions[w] = true
	}
	apart := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune("'’-", r)
	}
	for c, parts := range [len(l)][][]string{
		{src.Given}, {src.Last}, {src.Common, strings.Fields(functionWords), strings.Fields(calendar)}, {src.City}, {src.Country, src.Region, src.Places},
		{src.Suffix, strings.Fields(streetWords)}, {src.Title, strings.Fields(titles)}, {src.Proper},
	} {
		known := map[string]bool{}
		for _, list := range parts {
			for _, entry := range list {
				for _, w := range strings.FieldsFunc(strings.ToLower(entry), apart) {
					if !known[w] && utf8.RuneCountInString(w) > 1 && (c == 2 || !functions[w]) {
						known[w] = true
						l[c] = append(l[c], w)
					}
				}
			}
		}
	}
	return l
}
