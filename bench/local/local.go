// Package local measures what the user's own upstreams cost a model that is shown
// all their tools, and what it costs to reach them through Sallyport instead: in
// tokens at every turn, in tokens of real calls of tools that only read, and in
// time on this machine. It stands on an open gateway and prints nothing.
package local

import (
	"sallyport/bench/tokencount"
	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/tokens"
)

// Bench measures one gateway.
type Bench struct {
	gateway *gateway.Gateway
	options *mcpserver.Options
	o200k   *tokencount.Memo
	cl100k  *tokencount.Memo
}

// New returns a Bench for g, after its upstreams have been tried, as seen by clients with the options face. It is for one
// goroutine.
func New(g *gateway.Gateway, face *mcpserver.Options) (*Bench, error) {
	newer, err := tokens.O200k()
	if err != nil {
		return nil, err
	}
	older, err := tokens.Cl100k()
	if err != nil {
		return nil, err
	}
	return &Bench{gateway: g, options: face, o200k: tokencount.NewMemo(newer), cl100k: tokencount.NewMemo(older)}, nil
}

// Count is how many tokens something has, by two vocabularies.
type Count struct {
	O200k  int `json:"o200k_base"`
	Cl100k int `json:"cl100k_base"`
}

// Plus is the sum of both.
func (c Count) Plus(more Count) Count { return Count{c.O200k + more.O200k, c.Cl100k + more.Cl100k} }

// counts has a transcript counted by both vocabularies, and takes of each what is asked for.
func (b *Bench) counts(t *tokencount.Transcript, what func(tokencount.Counts) int) (Count, error) {
	newer, err := t.Count(b.o200k)
	if err != nil {
		return Count{}, err
	}
	older, err := t.Count(b.cl100k)
	if err != nil {
		return Count{}, err
	}
	return Count{what(newer), what(older)}, nil
}

// first is what the first turn reads before anybody has said a word.
func first(c tokencount.Counts) int { return c.Definitions + c.Instructions }

// contextTokens is the tokens that calls and results add to the context.
func contextTokens(c tokencount.Counts) int { return c.Written + c.Results + c.Shown }
