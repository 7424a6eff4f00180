package piitest

import (
	"strings"

	"sallyport/internal/pii"
)

// Score counts right and wrong findings of one kind.
type Score struct{ Found, Missed, False int }

// Precision is the part of the findings that were right, 1 if there were none.
func (s Score) Precision() float64 { return share(s.Found, s.False) }

// Recall is the part of the labels that were found, 1 if there were none.
func (s Score) Recall() float64 { return share(s.Found, s.Missed) }

func share(n, others int) float64 {
	if n+others == 0 {
		return 1
	}
	return float64(n) / float64(n+others)
}

// Report is the evaluation of a detector on samples.
type Report struct {
	Kinds map[pii.Kind]*Score
	// Fields is the number of benign fields, Hits the number of findings in them.
	Fields, Hits int
	Bytes        int
	// Wrong describes some of the errors.
	Wrong []string
}

// Judge compares a detector's findings with the labels: a value counts as found if a finding of its kind overlaps it.
func Judge(d *pii.Detector, samples []Sample) Report {
	r := Report{Kinds: map[pii.Kind]*Score{}}
	for _, k := range pii.Kinds() {
		r.Kinds[k] = &Score{}
	}
	for _, s := range samples {
		var found []Label
		d.Replace(s.Text, nil, func(kind pii.Kind, value string, _ bool) (string, bool) {
			found = append(found, Label{kind, value})
			return "", false
		})
		r.Bytes += len(s.Text)
		r.Fields += s.Fields
		if s.Fields > 0 {
			r.Hits += len(found)
		}
		r.compare(s, found)
	}
	return r
}

func (r *Report) compare(s Sample, found []Label) {
	for _, want := range s.Labels {
		at := -1
		for i, f := range found {
			if f.Kind == want.Kind && (strings.Contains(f.Value, want.Value) || strings.Contains(want.Value, f.Value)) {
				at = i
				break
			}
		}
		if at < 0 {
			r.Kinds[want.Kind].Missed++
			r.note("missed", want, s)
			continue
		}
		r.Kinds[want.Kind].Found++
		found = append(found[:at], found[at+1:]...)
	}
	for _, f := range found {
		if f.Kind == pii.Text {
			continue
		}
		r.Kinds[f.Kind].False++
		r.note("false", f, s)
	}
}

const maxWrong = 200

func (r *Report) note(what string, l Label, s Sample) {
	if len(r.Wrong) < maxWrong {
		at := max(0, strings.Index(s.Text, l.Value))
		r.Wrong = append(r.Wrong, what+" "+string(l.Kind)+" "+l.Value+" in …"+s.Text[max(0, at-30):min(len(s.Text), at+len(l.Value)+10)])
	}
}
