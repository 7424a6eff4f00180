package mcpserver

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/internal/config"
	"sallyport/internal/tokens"
)

// Cost is the number of tokens that a tool definition adds to every turn of a model.
type Cost struct {
	// Profile is the profile of the tool; Name is the tool's name. A core tool
	// that a profile makes longer has a second entry with the additional tokens.
	Profile string `json:"profile"`
	Name    string `json:"name"`
	// Tokens (o200k_base) are counted with the profile on, default settings and no upstream.
	Tokens int `json:"tokens"`
	// Current is the count with the current options, 0 where they do not enable it.
	Current int `json:"here"`
}

// Costs returns the costs of core and of every profile, in the order of the settings' names:
// the tokens of name, description, schema and annotations as they are sent.
func Costs(verbs Service, opts *Options) ([]Cost, error) {
	counter, err := tokens.O200k()
	if err != nil {
		return nil, err
	}
	here, err := countTokens(counter, verbs, opts)
	if err != nil {
		return nil, err
	}
	plain := *opts
	plain.Environments = nil
	var all []Cost
	known := map[string]int{}
	for _, profile := range append([]string{config.ProfileCore}, config.AllProfiles()...) {
		plain.Profiles = config.Profiles{profile}
		list, err := countTokens(counter, noUpstreams{verbs}, &plain)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			cost := Cost{Profile: profile, Name: p.name, Tokens: p.tokens - known[p.name]}
			if cost.Tokens == 0 {
				continue
			}
			if profile == config.ProfileCore {
				known[p.name] = p.tokens
			}
			all = append(all, cost)
		}
	}
	return withCurrent(all, here), nil
}

// withCurrent sets Here. The count of a core tool goes to its core entry, even if a profile makes the tool longer.
func withCurrent(all []Cost, here []toolCost) []Cost {
	for _, p := range here {
		for i := range all {
			if all[i].Name == p.name {
				all[i].Current = p.tokens
				break
			}
		}
	}
	return all
}

// noUpstreams is a [Service] without upstreams.
type noUpstreams struct{ Service }

// Upstreams implements [Service].
func (noUpstreams) Upstreams() []catalog.Upstream { return nil }

type toolCost struct {
	name   string
	tokens int
}

// countTokens counts the tokens of each tool that the options enable.
func countTokens(counter *tokens.Counter, verbs Service, opts *Options) ([]toolCost, error) {
	search, execute := coreTools(verbs, opts)
	defs := []*mcp.Tool{search, execute}
	for _, e := range extras(verbs, opts) {
		defs = append(defs, e.tool)
	}
	list := make([]toolCost, 0, len(defs))
	for _, def := range defs {
		data, err := json.Marshal(def)
		if err != nil {
			return nil, fmt.Errorf("encode tool %s: %w", def.Name, err)
		}
		n, err := counter.Count(string(data))
		if err != nil {
			return nil, err
		}
		list = append(list, toolCost{def.Name, n})
	}
	return list, nil
}
