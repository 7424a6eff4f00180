package ireval_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sallyport/internal/testutil/ireval"
)

// TestScore has numbers that were worked out by hand; the discounts of the
// places 1 to 4 are 1, 0.63093, 0.5 and 0.43068.
func TestScore(t *testing.T) {
	twins := map[string][]string{"a": {"x"}, "b": {"x"}}
	for _, test := range []struct {
		name   string
		query  ireval.Query
		ranked []string
		want   ireval.Scores
	}{
		{"first", ireval.Query{Gold: []string{"a"}}, []string{"a", "z"}, ireval.Scores{1, 1, 1, 1, 1, 1, 1, 1}},
		{"nothing found", ireval.Query{Gold: []string{"a"}}, nil, ireval.Scores{}},
		{"fourth", ireval.Query{Gold: []string{"a"}}, []string{"w", "y", "z", "a"}, ireval.Scores{0, 0, 1, 1, .43068, .25, 0, 1}},
		{"eleventh counts for nothing", ireval.Query{Gold: []string{"a"}}, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a"}, ireval.Scores{}},
		// (1 + .5) / (1 + .63093)
		{"two of three places", ireval.Query{Gold: []string{"a", "b"}}, []string{"b", "z", "a"}, ireval.Scores{.5, 1, 1, 1, .91972, 1, 1, 1}},
		// .63093 / (1 + .63093)
		{"one of two", ireval.Query{Gold: []string{"a", "b"}}, []string{"z", "a"}, ireval.Scores{0, .5, .5, .5, .38685, .5, 1, 1}},
		{"an alternative", ireval.Query{Gold: []string{"a"}, Alts: map[string][]string{"a": {"x"}}}, []string{"z", "x", "a"}, ireval.Scores{0, 1, 1, 1, .63093, .5, 1, 1}},
		{"one answer for two", ireval.Query{Gold: []string{"a", "b"}, Alts: twins}, []string{"x"}, ireval.Scores{1, 1, 1, 1, 1 / 1.63093, 1, 1, 1}},
		// grades 1 and 2: (1 + 2*.63093) / (2 + .63093)
		{"grades", ireval.Query{Gold: []string{"a", "b"}, Grades: map[string]float64{"b": 2}}, []string{"a", "b"}, ireval.Scores{.5, 1, 1, 1, .85972, 1, 1, 1}},
		{"the same tool twice", ireval.Query{Gold: []string{"a", "b"}}, []string{"a", "a"}, ireval.Scores{.5, .5, .5, .5, 1 / 1.63093, 1, 1, 1}},
	} {
		got := ireval.Score(test.query, test.ranked)
		if diff := cmp.Diff(test.want.Values(), got.Values(), cmpopts.EquateApprox(0, 1e-5)); diff != "" {
			t.Errorf("%s, %v: %s", test.name, ireval.Metrics(), diff)
		}
	}
}

func TestMean(t *testing.T) {
	got := ireval.Mean([]ireval.Scores{{Recall1: 1, Hit5: 1}, {Hit5: 1}, {}, {}})
	if want := (ireval.Scores{Recall1: .25, Hit5: .5}); got != want || ireval.Mean(nil) != (ireval.Scores{}) {
		t.Errorf("the mean is %+v, want %+v", got, want)
	}
}

// TestSignTest has sums of binomial coefficients: 2*(1+10)/1024 for 9 of 10, and so on.
func TestSignTest(t *testing.T) {
	for _, test := range []struct {
		wins, losses int
		want         float64
	}{{0, 0, 1}, {1, 0, 1}, {5, 5, 1}, {9, 1, 22. / 1024}, {1, 9, 22. / 1024}, {6, 0, 2. / 64}} {
		if got := ireval.SignTest(test.wins, test.losses); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%d to %d: %v, want %v", test.wins, test.losses, got, test.want)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bfcl", "tools.jsonl"), `{"id":"a-b","server":"","name":"a-b","description":"first","input_schema":{"type":"object"}}
{"id":"a-b#2","server":"","name":"a-b","server_title":"T","server_description":"D"}
{"id":"s/go","server":"my-server","name":"go"}
`)
	write(t, filepath.Join(dir, "bfcl", "queries.jsonl"), `{"id":"q1","query":"one","gold":["a-b"],"kind":"live"}
{"id":"q2","query":"ONE","gold":["a-b#2"],"alts":{"a-b#2":["gone"]},"kind":"step"}
`)
	s, err := ireval.Read(dir, "bfcl")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range s.Entries {
		got = append(got, e.Tool.ID.String()+" "+e.Tool.Wire+" "+s.JudgedID(e.Tool.ID))
	}
	want := []string{"bfcl.a_b a-b a-b", "bfcl.a_b_2 a-b#2 a-b#2", "my_server.go go s/go"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if q := s.Queries; q[0].Group != "bfcl/pooled" || q[1].Group != "bfcl/step" || !q[0].Tuned || q[1].Tuned {
		t.Errorf("queries %+v", q)
	}
	if diff := cmp.Diff([]string{`q2: "one" stands in q1 too`, "q2: there is no tool gone"}, s.Check()); diff != "" {
		t.Error(diff)
	}
	if _, err := ireval.Read(dir, "livemcp"); !errors.Is(err, ireval.ErrNoData) {
		t.Errorf("a set that is not there: %v", err)
	}
}

// TestApart has a task, a tool and a need that nothing fits in both halves and in one: only
// what weights were chosen by no relative of is apart.
func TestApart(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "livemcp", "tools.jsonl"), `{"id":"a","name":"a"}`+"\n")
	write(t, filepath.Join(dir, "livemcp", "queries.jsonl"), `{"id":"1","query":"1","gold":["a","b"],"kind":"task","group":"trip"}
{"id":"of the same task","query":"2","gold":["c"],"kind":"step","group":"trip"}
{"id":"3","query":"3","gold":["d"],"kind":"step"}
{"id":"needs the same tool","query":"4","gold":["e","b"],"kind":"step","group":"own"}
{"id":"5","query":"5","gold":[],"kind":"step"}
{"id":"apart","query":"6","gold":["c"],"kind":"step","group":"own"}
{"id":"7","query":"7","gold":["d"],"kind":"step"}
{"id":"nothing fits","query":"8","gold":[],"kind":"step"}
`)
	s, err := ireval.Read(dir, "livemcp")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range s.Queries {
		if q.Apart {
			got = append(got, q.ID)
		}
	}
	if diff := cmp.Diff([]string{"apart", "nothing fits"}, got); diff != "" {
		t.Error(diff)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
