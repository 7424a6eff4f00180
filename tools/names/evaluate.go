package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/names"
	"sallyport/internal/pii"
)

// sample is a labelled text of presidio-research, with the number of the template that it was made from.
type sample struct {
	names.Example
	template int
}

// evaluate evaluates a model on the data in ../shared.
func evaluate(w io.Writer, m *names.Model, s settings) error {
	samples, err := samplesOf(filepath.Join(s.shared, "pii", "synth_dataset_v2.json"))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintln(w, "no samples of presidio-research in", s.shared)
		return err
	} else if err != nil {
		return err
	}
	d, err := pii.New(nil)
	if err != nil {
		return err
	}
	j := evaluator{w: w, model: m, detector: d, wrong: s.wrong}
	halves := [2][]sample{}
	for _, one := range samples {
		halves[one.template%2] = append(halves[one.template%2], one)
	}
	j.score("presidio-research, templates with even numbers", halves[0])
	j.score("presidio-research, templates with odd numbers", halves[1])
	j.score("presidio-research, all", samples)
	for _, set := range []struct{ title, pattern string }{
		{"descriptions of tools", filepath.Join(s.shared, "catalog", "*.json")}, {"Go code", "gateway/*.go"}, {"documents", "docs/*.md"},
	} {
		if err := j.benign(set.title, set.pattern); err != nil {
			return err
		}
	}
	return nil
}

func samplesOf(path string) ([]sample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Text     string `json:"full_text"`
		Template int    `json:"template_id"`
		Spans    []struct {
			Type  string `json:"entity_type"`
			Start int    `json:"start_position"`
			End   int    `json:"end_position"`
		} `json:"spans"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	sorts := map[string]string{"PERSON": names.Person, "STREET_ADDRESS": names.Address, "GPE": names.Place}
	all := make([]sample, len(list))
	for i, l := range list {
		all[i] = sample{names.Example{Text: l.Text}, l.Template}
		r := []rune(l.Text)
		for _, s := range l.Spans {
			if sort := sorts[s.Type]; sort != "" {
				all[i].Spans = append(all[i].Spans, names.Span{Sort: sort, Start: len(string(r[:s.Start])), End: len(string(r[:s.End]))})
			}
		}
	}
	return all, nil
}

type evaluator struct {
	w        io.Writer
	model    *names.Model
	detector *pii.Detector
	wrong    int
}

// find returns the model's findings without those inside a finding of the detector, which has priority.
func (j *evaluator) find(text string) (found []names.Span) {
	form := j.detector.Find(text)
next:
	for _, f := range j.model.Find(text) {
		for _, x := range form {
			if x.Start <= f.Start && f.End <= x.End {
				continue next
			}
		}
		found = append(found, f)
	}
	return found
}

type score struct{ hit, missed, false int }

func (s score) String() string {
	p, r := float64(s.hit)/float64(max(1, s.hit+s.false)), float64(s.hit)/float64(max(1, s.hit+s.missed))
	return fmt.Sprintf("precision %.3f  recall %.3f  F1 %.3f  (%d found, %d missed, %d false)", p, r, 2*p*r/max(p+r, 1e-9), s.hit, s.missed, s.false)
}

func overlap(list []names.Span, s names.Span) bool {
	for _, l := range list {
		if l.Sort == s.Sort && l.Start < s.End && s.Start < l.End {
			return true
		}
	}
	return false
}

// score prints the scores of a set. It counts a label as found if a finding of its sort overlaps it.
func (j *evaluator) score(title string, set []sample) {
	scores := map[string]*score{names.Person: {}, names.Address: {}, names.Place: {}}
	bytes, took := 0, time.Duration(0)
	for _, one := range set {
		bytes += len(one.Text)
		begin := time.Now()
		j.model.Find(one.Text)
		took += time.Since(begin)
		found, note := j.find(one.Text), ""
		for _, s := range one.Spans {
			if overlap(found, s) {
				scores[s.Sort].hit++
				continue
			}
			scores[s.Sort].missed++
			note += fmt.Sprintf("  missed %s %q", s.Sort, one.Text[s.Start:s.End])
		}
		for _, s := range found {
			if !overlap(one.Spans, s) {
				scores[s.Sort].false++
				note += fmt.Sprintf("  false %s %q", s.Sort, one.Text[s.Start:s.End])
			}
		}
		if note != "" && j.wrong > 0 {
			j.wrong--
			fmt.Fprintf(j.w, "%q%s\n", one.Text, note)
		}
	}
	fmt.Fprintf(j.w, "%s: %d KB, %d us for one\n", title, bytes>>10, took.Microseconds()/int64(max(1, bytes>>10)))
	for _, sort := range []string{names.Person, names.Address, names.Place} {
		fmt.Fprintf(j.w, "  %-9s %v\n", sort, scores[sort])
	}
}

// benign prints the number of findings in texts that have hardly any names.
func (j *evaluator) benign(title, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	bytes, n := 0, map[string]int{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		for _, text := range textsOf(f, data) {
			bytes += len(text)
			for _, s := range j.find(text) {
				n[s.Sort]++
			}
		}
	}
	_, err = fmt.Fprintf(j.w, "%s: found in %d KB: %v\n", title, bytes>>10, n)
	return err
}

// textsOf returns the strings of a JSON document, or the whole file.
func textsOf(name string, data []byte) (all []string) {
	var v any
	if !strings.HasSuffix(name, ".json") || json.Unmarshal(data, &v) != nil {
		return []string{string(data)}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if pii.IsProse(v) {
				all = append(all, v)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return all
}
