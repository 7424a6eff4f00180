package local

import (
	"context"

	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
)

// Window is how much the context of a usual model holds, in tokens.
const Window = 200_000

// Tokens is what a model reads.
type Tokens struct {
	// Upstreams are in the order of the settings.
	Upstreams []Upstream `json:"upstreams"`
	// Tools is how many can be reached, and PerTurn what showing them costs at every turn.
	Tools   int     `json:"tools"`
	PerTurn PerTurn `json:"per_turn"`
	// Search is what finding a tool costs; nil where there is none to find.
	Search *Search `json:"search,omitempty"`
	// Conversations are those of [Turns] turns, for each vocabulary; none where there is no tool.
	Conversations []Conversation `json:"conversations,omitempty"`
	// Calls are those that were made for real; nil if none was to be made.
	Calls *Calls `json:"calls,omitempty"`
}

// Upstream is what the tools of one upstream cost where a client shows them.
type Upstream struct {
	ID    string `json:"id"`
	Tools int    `json:"tools"`
	// Tokens are those of its definitions: names, descriptions, input schemas. They are 0 where Problem says why it could
	// not be reached: what cannot be called is no saving.
	Tokens  Count  `json:"tokens"`
	Problem string `json:"problem,omitempty"`
	// Quarantined tools are in no number: nothing shows them.
	Quarantined int `json:"quarantined,omitempty"`
	// Instructions are what the upstream asks clients to show in addition to its tools. Many do not, and no sum has them.
	Instructions Count `json:"instructions_not_counted"`
}

// PerTurn is what a model reads at every turn before anybody has said a word.
type PerTurn struct {
	// Direct has all definitions, Search one tool that finds the others, Here our tools and instructions.
	Direct Count `json:"direct"`
	Search Count `json:"tool_search"`
	Here   Count `json:"here"`
	// Fits says that Direct fits the context of a usual model, of [Window] tokens. Where it does not, nothing is saved: it cannot be done.
	Fits bool `json:"direct_fits_200k"`
}

// Tokens counts what a model reads, without calling any tool. If ctx ends, what there was until then is returned with its error.
func (b *Bench) Tokens(ctx context.Context) (*Tokens, error) {
	t := &Tokens{Upstreams: []Upstream{}}
	ours, err := b.ownTranscript(ctx)
	if err != nil {
		return nil, err
	}
	if t.PerTurn.Here, err = b.counts(&ours, first); err != nil {
		return nil, err
	}
	if t.PerTurn.Search, err = b.counts(&tokencount.Transcript{Definitions: []tokencount.Definition{agent.SearchDefinition()}}, first); err != nil {
		return nil, err
	}
	all, err := b.upstreams(t)
	t.PerTurn.Fits = t.PerTurn.Direct.O200k <= Window
	if err != nil || t.Tools == 0 {
		return t, err
	}
	probes, err := b.searches(ctx)
	if err != nil {
		return t, err
	}
	t.Search = &probes.Search
	t.Conversations, err = b.conversations(ours, all, probes)
	return t, err
}

// upstreams fills in what each costs, and returns the definitions of those that can be reached.
func (b *Bench) upstreams(t *Tokens) (all []tokencount.Definition, err error) {
	states := b.gateway.Catalog.Upstreams()
	for i, offered := range b.gateway.Catalog.Offers() {
		if i >= len(states) {
			break
		}
		up := Upstream{ID: offered.ID, Problem: states[i].Problem(), Quarantined: states[i].Held}
		if up.Problem == "" {
			defs := definitions(offered.Offer.Tools)
			up.Tools = len(defs)
			if up.Tokens, err = b.counts(&tokencount.Transcript{Definitions: defs}, first); err != nil {
				return nil, err
			}
			if up.Instructions, err = b.counts(&tokencount.Transcript{Instructions: []string{offered.Offer.Server.Instructions}}, first); err != nil {
				return nil, err
			}
			all = append(all, defs...)
		}
		t.Upstreams = append(t.Upstreams, up)
		t.Tools += up.Tools
		t.PerTurn.Direct = t.PerTurn.Direct.Plus(up.Tokens)
	}
	return all, nil
}

// reachable are the tools that can be called.
func (b *Bench) reachable() map[string]bool {
	ids := map[string]bool{}
	for _, up := range b.gateway.Catalog.Upstreams() {
		ids[up.ID] = up.Problem() == ""
	}
	return ids
}
