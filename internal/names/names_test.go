package names

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func model(t testing.TB) *Model {
	t.Helper()
	m, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFind has sentences that the model was not made of.
func TestFind(t *testing.T) {
	t.Parallel()
	m := model(t)
	for text, want := range map[string][]string{
		"Yesterday Patricia Hernandez asked for a refund.":                   {"PERSON Patricia Hernandez"},
		"The parcel for Dr. Wolfgang Schneider came back.":                   {"PERSON Wolfgang Schneider"},
		"Their office is at 221 Baker Street, London.":                       {"ADDRESS 221 Baker Street, London"},
		"Bitte an die Hauptstraße 12, 80331 München liefern.":                {"ADDRESS Hauptstraße 12, 80331 München"},
		"Susan's phone was stolen.":                                          {"PERSON Susan"},
		"The build failed because the cache was full; run it again.":         nil,
		"open /home/Patricia/notes.txt or mail Patricia@corp.example":        nil,
		"SELECT name, street FROM customers WHERE id = 12 ORDER BY name":     nil,
		"func (c *Client) Find(ctx context.Context) error { return c.Name }": nil,
		"Merge pull request #12: update the README and the Makefile":         nil,
		"2026-11-22T02:33:01Z INFO worker 3: finished job 7919 in 12 ms":     nil,
		"Are you sure that this is what you want?":                           nil,
		"": nil,
	} {
		var got []string
		for _, s := range m.Find(text) {
			got = append(got, s.Sort+" "+text[s.Start:s.End])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestQuality judges the model on text that it was not made of, in halves that share no template.
func TestQuality(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../shared/pii/synth_dataset_v2.json")
	if err != nil {
		t.Skip("the labelled text of presidio-research is not there: ", err)
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
		t.Fatal(err)
	}
	m := model(t)
	types := map[string]string{"PERSON": Person, "STREET_ADDRESS": Address}
	var hits, missed, wrong [2]map[string]int
	for half := range 2 {
		hits[half], missed[half], wrong[half] = map[string]int{}, map[string]int{}, map[string]int{}
	}
	for _, l := range list {
		half, runes := l.Template%2, []rune(l.Text)
		found := m.Find(l.Text)
		right := make([]bool, len(found))
		for _, s := range l.Spans {
			start, end, hit := len(string(runes[:s.Start])), len(string(runes[:s.End])), false
			for i, f := range found {
				if f.Sort == types[s.Type] && f.Start < end && start < f.End {
					hit, right[i] = true, true
				}
			}
			if hit {
				hits[half][types[s.Type]]++
			} else {
				missed[half][types[s.Type]]++
			}
		}
		for i, f := range found {
			if !right[i] {
				wrong[half][f.Sort]++
			}
		}
	}
	bars := map[string][2]float64{Person: {.90, .72}, Address: {.90, .90}}
	for half := range 2 {
		for sort, bar := range bars {
			h := float64(hits[half][sort])
			precision, recall := h/(h+float64(wrong[half][sort])), h/(h+float64(missed[half][sort]))
			t.Logf("half %d, %s: precision %.3f, recall %.3f", half, sort, precision, recall)
			if precision < bar[0] || recall < bar[1] {
				t.Errorf("half %d, %s: precision %.3f, recall %.3f; want %.2f, %.2f", half, sort, precision, recall, bar[0], bar[1])
			}
		}
	}
}

// TestTrain: the same examples make the same model, which says what they say, also after it was a file.
func TestTrain(t *testing.T) {
	t.Parallel()
	lists := Lists{{"ann", "bob"}, {"lee"}, {"met", "and", "the", "dog"}}
	examples := []Example{
		{"Ann Lee met Bob", []Span{{Person, 0, 7}, {Person, 12, 15}}}, {"the dog met Ann", []Span{{Person, 12, 15}}}, {"The dog and the dog", nil},
		{"Bob met the dog", []Span{{Person, 0, 3}}},
	}
	for range 6 {
		examples = append(examples, examples[:4]...)
	}
	s := Settings{Rounds: 20, Lead: 60, Seed: 1}
	m := Train(lists, examples, s)
	file, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Train(lists, examples, s).Encode()
	if err != nil || !bytes.Equal(file, again) {
		t.Errorf("%d and %d bytes that differ, %v", len(file), len(again), err)
	}
	read, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples[:4] {
		if got := read.Find(e.Text); !reflect.DeepEqual(got, e.Spans) {
			t.Errorf("%q: %v, want %v", e.Text, got, e.Spans)
		}
	}
	for _, n := range []int{0, 5, 30, len(file) / 2, len(file) - 9} {
		if _, err := Decode(file[:n]); err == nil {
			t.Errorf("the first %d bytes are a model", n)
		}
	}
}

// FuzzFind: whatever a text is, spans are in order, within it, and cut no character.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"Ann Lee, 12 Main Street\n Springfield", "\xff\xfe Ann\u0301 😀", "O'Neil's’s-–", "İstanbul Ann ß", strings.Repeat("Ann ", 99)} {
		f.Add(s)
	}
	m := model(f)
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, s := range m.Find(text) {
			if s.Start < end || s.End <= s.Start || s.End > len(text) || s.Sort == "" {
				t.Fatalf("%q: %v behind %d", text, s, end)
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[s.Start:s.End]) {
				t.Fatalf("%q: %v cuts a character", text, s)
			}
			end = s.End
		}
	})
}
