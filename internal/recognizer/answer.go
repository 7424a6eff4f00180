package recognizer

import (
	"encoding/json"
	"unicode/utf8"

	"sallyport/internal/pii"
)

// result is one entity of a response. Start and End count code points.
type result struct {
	Type  *string  `json:"entity_type"`
	Start *int     `json:"start"`
	End   *int     `json:"end"`
	Score *float64 `json:"score"`
}

// read decodes a response into the findings of each text, at byte offsets.
func (c *Client) read(data []byte, texts []string) ([][]pii.Finding, error) {
	lists := make([][]result, 1)
	var into any = &lists
	if c.settings.Single {
		into = &lists[0]
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, c.noList()
	}
	if len(lists) != len(texts) {
		return nil, faultf("it answered for %d texts of %d", len(lists), len(texts))
	}
	found := make([][]pii.Finding, len(texts))
	for i, list := range lists {
		if list == nil {
			return nil, c.noList()
		}
		at := places(texts[i], len(list) > 0)
		for _, r := range list {
			f, ok, err := c.finding(r, at)
			if err != nil {
				return nil, err
			}
			if ok {
				found[i] = append(found[i], f)
			}
		}
	}
	return found, nil
}

func (c *Client) noList() *Fault {
	if c.settings.Single {
		return faultf("its answer is not one list of entities")
	}
	return faultf("its answer is not one list of entities for each text")
}

// finding decodes one entity; ok is false for one of a type that was not requested.
func (c *Client) finding(r result, at []int) (f pii.Finding, ok bool, err error) {
	switch {
	case r.Type == nil || r.Start == nil || r.End == nil || r.Score == nil:
		return f, false, faultf("an entity of its answer has no entity_type, start, end or score")
	case *r.Start < 0 || *r.End <= *r.Start || *r.End >= len(at):
		return f, false, faultf("an entity of its answer is not within its text; start and end must count code points")
	case *r.Score < 0 || *r.Score > 1:
		return f, false, faultf("a score of its answer is not from 0 to 1")
	}
	kind, asked := c.settings.Entities[*r.Type]
	if !asked || *r.Score < c.settings.Threshold {
		return f, false, nil
	}
	return pii.Finding{Kind: kind, Start: at[*r.Start], End: at[*r.End]}, true, nil
}

// places returns the start of each code point of a text, and the end of the last one. A byte that is not UTF-8 is
// one, as in the JSON that was sent.
func places(text string, needed bool) []int {
	if !needed {
		return nil
	}
	at := make([]int, 0, utf8.RuneCountInString(text)+1)
	for i := range text {
		at = append(at, i)
	}
	return append(at, len(text))
}
