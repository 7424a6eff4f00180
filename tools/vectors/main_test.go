package main

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"getHTTPUrl2":                  {"get", "http", "url", "2"},
		"TwilioApiV2010--CreateCall":   {"twilio", "api", "v", "2010", "create", "call"},
		"the user's list_APIs, please": {"the", "user", "list", "apis", "please"},
		"":                             nil,
	} {
		if got := split(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTrain has a batch of pairs: they have to come nearer than it was, and the end is the same each time.
func TestTrain(t *testing.T) {
	train := func() (*table, []pair) {
		tab := &table{at: map[string]int32{}}
		for i := range 2 * batchSize {
			row := make([]float32, dim)
			row[i%dim], row[(i*7+1)%dim] = 1, .5
			tab.rows = append(tab.rows, row)
		}
		var pairs []pair
		for i := range int32(batchSize) {
			pairs = append(pairs, pair{[]int32{i}, []int32{i + batchSize}})
		}
		tr := newTrainer(tab)
		for range 5 {
			tr.round(slices.Clone(pairs))
		}
		return tab, pairs
	}
	a, pairs := train()
	b, _ := train()
	near := 0
	for _, p := range pairs {
		x, y, other := a.rows[p.a[0]], a.rows[p.b[0]], a.rows[(p.b[0]+1-batchSize)%batchSize+batchSize]
		if dot(x, y)/norm(y) > dot(x, other)/norm(other) {
			near++
		}
	}
	if near < batchSize*9/10 {
		t.Errorf("%d of %d texts are nearer to their partners than to another", near, batchSize)
	}
	if !slices.EqualFunc(a.rows, b.rows, slices.Equal) {
		t.Error("the same pairs came to another end")
	}
}
