package tokencount_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/tokencount"
)

// bytewise has a token for each byte, so that counts can be made by hand and segments add up exactly.
type bytewise struct{}

func (bytewise) Count(text string) (int, error) { return len(text), nil }

func sample() *tokencount.Transcript {
	return &tokencount.Transcript{
		Task: "sum", Mode: "direct", Prompt: "1+1?", Instructions: []string{"be kind"},
		// {"name":"add","input_schema":{"type":"object"}} is 47 bytes.
		Definitions: []tokencount.Definition{{Name: "add", InputSchema: json.RawMessage(`{"type": "object"}`)}},
		Turns: []tokencount.Turn{
			{
				Text:    "so",                                                                                            // 2
				Calls:   []tokencount.Call{{Tool: "adf", Args: json.RawMessage(`{}`)}},                                   // 5
				Results: []tokencount.Result{{Text: "no adf", Error: true, Shows: []tokencount.Definition{{Name: "b"}}}}, // 6, and {"name":"b","input_schema":{}} is 30
			},
			{
				Calls:   []tokencount.Call{{Tool: "add", Args: json.RawMessage(`{"a": "\u003c"}`)}}, // 3 and {"a":"<"}, 9
				Results: []tokencount.Result{{Text: "2"}},
			},
			{Text: "two"},
		},
	}
}

func TestCount(t *testing.T) {
	got, err := sample().Count(bytewise{})
	if err != nil {
		t.Fatal(err)
	}
	want := tokencount.Counts{
		Definitions: 47, Instructions: 7, Prompt: 4, Results: 7, Shown: 30,
		Turns: []tokencount.Step{{Read: 58, Written: 7}, {Read: 101, Cached: 58, Written: 12}, {Read: 114, Cached: 101, Written: 3}},
		Read:  273, Cached: 159, Written: 22, Peak: 117, Wasted: 11, Failed: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWeighed(t *testing.T) {
	c := tokencount.Counts{Definitions: 40, Instructions: 10, Turns: []tokencount.Step{{Read: 60, Written: 5}, {Read: 100, Cached: 60, Written: 5}, {Read: 140, Cached: 100, Written: 10}}, Read: 300, Cached: 160, Written: 20}
	rates := func(cached, stored, output float64, minimum int, warm bool) float64 {
		return c.WeightedCost(tokencount.Rates{Cached: cached, Stored: stored, Output: output, Minimum: minimum, Warm: warm})
	}
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"no cache", float64(c.Total()), 320},
		{"a cache", rates(.1, 1, 1, 0, false), 176},
		{"output costs more", rates(1, 1, 5, 0, false), 400},
		{"storing costs more", rates(.1, 1.25, 5, 0, false), 291},
		{"definitions are there", rates(.1, 1, 1, 0, true), 131},
		{"what is short is in no cache", rates(.1, 1, 1, 61, true), 230},
		{"nor are definitions that are", rates(.1, 1, 1, 51, true), 176},
	} {
		if fmt.Sprintf("%.6f", test.got) != fmt.Sprintf("%.6f", test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
}

// What Count adds up is what each turn's context comes to when it is written out and counted whole.
func TestCountIsARecount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return strings.Repeat("x", random.IntN(9)) }
	for range 200 {
		tr := &tokencount.Transcript{Prompt: word(), Instructions: []string{word(), word()}}
		for range random.IntN(4) {
			tr.Definitions = append(tr.Definitions, tokencount.Definition{Name: word(), Description: word()})
		}
		for range random.IntN(6) {
			turn := tokencount.Turn{Text: word()}
			for range random.IntN(4) {
				args, _ := json.Marshal(map[string]string{"a": word()})
				turn.Calls = append(turn.Calls, tokencount.Call{Tool: word(), Args: args})
				turn.Results = append(turn.Results, tokencount.Result{Text: word(), Error: random.IntN(3) == 0, Shows: []tokencount.Definition{{Name: word()}}})
			}
			tr.Turns = append(tr.Turns, turn)
		}
		got, err := tr.Count(bytewise{})
		if read, written := recount(tr); err != nil || got.Read != read || got.Written != written || got.Total() != read+written {
			t.Fatalf("read %d, written %d, %v; want %d, %d of %+v", got.Read, got.Written, err, read, written, tr)
		}
	}
}

func recount(t *tokencount.Transcript) (read, written int) {
	context := strings.Join(t.Instructions, "") + t.Prompt
	for _, d := range t.Definitions {
		context += d.Text()
	}
	for _, turn := range t.Turns {
		read += len(context)
		said := turn.Text
		for _, call := range turn.Calls {
			said += call.Tool + string(call.Args)
		}
		written += len(said)
		context += said
		for _, r := range turn.Results {
			context += r.Text
			for _, d := range r.Shows {
				context += d.Text()
			}
		}
	}
	return read, written
}

// A client's context has < where Go's encoder writes an escape, and keeps an escape that is in the text.
func TestText(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{ "a": "\u003cb\u003e \u0026 c" }`, `{"name":"n","description":"<&>","input_schema":{"a":"<b> & c"}}`},
		{`{"a":"\\u003c \\\u003c \n"}`, `{"name":"n","description":"<&>","input_schema":{"a":"\\u003c \\< \n"}}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","b":{"$schema":1}}`, `{"name":"n","description":"<&>","input_schema":{"b":{"$schema":1}}}`},
		{``, `{"name":"n","description":"<&>","input_schema":{}}`},
		{`{no`, `n<&>{no`},
	} {
		d := tokencount.Definition{Name: "n", Description: "<&>", InputSchema: json.RawMessage(test.schema)}
		if got := d.Text(); got != test.want {
			t.Errorf("Text of %s is %s, want %s", test.schema, got, test.want)
		}
	}
}

// once counts how often it is asked, and fails for one word.
type once map[string]int

func (o once) Count(text string) (int, error) {
	o[text]++
	if text == "1+1?" && o["broken"] > 0 {
		return 0, errors.New("no such vocabulary")
	}
	return 1, nil
}

func TestMemo(t *testing.T) {
	asked := once{}
	memo := tokencount.NewMemo(asked)
	for range 3 {
		if _, err := sample().Count(memo); err != nil {
			t.Fatal(err)
		}
	}
	for text, n := range asked {
		if n != 1 {
			t.Errorf("%q was counted %d times", text, n)
		}
	}
	if _, err := sample().Count(once{"broken": 1}); err == nil || !strings.Contains(err.Error(), "count sum in mode direct: no such vocabulary") {
		t.Errorf("a counter that fails: %v", err)
	}
}
