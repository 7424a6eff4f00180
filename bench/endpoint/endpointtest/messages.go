package endpointtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
)

// messages is the API of Anthropic.
type messages struct{}

func (messages) path() string { return "/v1/messages" }

func (messages) allowed(r *http.Request) bool {
	return r.Header.Get("X-Api-Key") == Key && r.Header.Get("Anthropic-Version") == "2023-06-01"
}

func (messages) marks() bool { return true }

func (messages) refuse(kind, message string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}

type cacheControl struct {
	Type string `json:"type"`
}

type messagesBody struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	System    string `json:"system"`
	Tools     []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		Cache       *cacheControl   `json:"cache_control"`
	} `json:"tools"`
	Messages []struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	} `json:"messages"`
}

type messagesBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Of        string          `json:"tool_use_id"`
	Content   string          `json:"content"`
	IsError   bool            `json:"is_error"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Cache     *cacheControl   `json:"cache_control"`
}

func (messages) read(body []byte) (now request, err error) {
	var b messagesBody
	if err := strict(body, &b); err != nil {
		return now, err
	}
	if b.Model != Model || b.MaxTokens < 1 {
		return now, fmt.Errorf("model %q, max_tokens %d", b.Model, b.MaxTokens)
	}
	if err := b.tools(&now); err != nil {
		return now, err
	}
	var open []string
	for i, m := range b.Messages {
		if m.Role != []string{"user", "assistant"}[i%2] || len(m.Content) == 0 || m.Role == "assistant" && len(open) > 0 {
			return now, fmt.Errorf("message %d is of %s, has %d blocks, and before it %d calls have no result", i, m.Role, len(m.Content), len(open))
		}
		if open, err = now.blocks(i, m.Content, open); err != nil {
			return now, err
		}
	}
	marks := bytes.Count(body, []byte(`"cache_control":{"type":"ephemeral"}`))
	now.marked = marks > 0
	if marks > 4 || len(open) > 0 || len(b.Messages)%2 == 0 {
		return now, fmt.Errorf("%d marks, %d calls without a result, %d messages", marks, len(open), len(b.Messages))
	}
	return now, nil
}

// tools takes those that are defined. The last one is marked.
func (b *messagesBody) tools(now *request) error {
	for i, t := range b.Tools {
		now.defined = append(now.defined, tokencount.Definition{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
		if last := i == len(b.Tools)-1; last != (t.Cache != nil) {
			return fmt.Errorf("tool %d of %d is marked: %v", i, len(b.Tools), t.Cache != nil)
		}
	}
	return nil
}

var cacheMark = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

// blocks takes message i; open are the calls that have no result yet.
func (now *request) blocks(i int, content []json.RawMessage, open []string) ([]string, error) {
	for j, raw := range content {
		var b messagesBlock
		err := strict(raw, &b)
		if err == nil {
			open, err = now.block(i, j, b, open)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d, block %d: %w: %.200s", i, j, err, raw)
		}
		// A mark is no part of what is kept.
		now.said = append(now.said, cacheMark.ReplaceAll(raw, nil))
	}
	return open, nil
}

// block takes a block of message i in its place: a prompt, then by turns what was said and results.
func (now *request) block(i, j int, b messagesBlock, open []string) ([]string, error) {
	if i%2 == 1 {
		return now.saidBlock(j, b, open)
	}
	switch {
	case b.Type == "text" && b.Text != "" && i == 0:
		now.prompt = b.Text
		return nil, nil
	case b.Type == "tool_result" && len(open) > 0 && b.Of == open[0] && b.Content != "":
		now.results = append(now.results, tokencount.Result{Text: b.Content, Error: b.IsError})
		return open[1:], nil
	}
	return nil, errPlace
}

// saidBlock is a thought, then perhaps words, then calls.
func (now *request) saidBlock(j int, b messagesBlock, open []string) ([]string, error) {
	switch {
	case b.Type == "thinking" && j == 0 && b.Signature == "s1":
		now.results = nil
		return nil, nil
	case b.Type == "text" && b.Text != "" && j == 1:
		return nil, nil
	case b.Type == "tool_use" && j > 0 && named.MatchString(b.Name) && len(b.Input) > 0 && b.Input[0] == '{':
		return append(open, b.ID), nil
	}
	return nil, errPlace
}

func (messages) write(m agent.Move, first int) any {
	content := []any{map[string]any{"type": "thinking", "thinking": "hm", "signature": "s1"}}
	if m.Text != "" || len(m.Calls) == 0 {
		content = append(content, map[string]any{"type": "text", "text": m.Text})
	}
	reason := "end_turn"
	for i, c := range m.Calls {
		reason = "tool_use"
		content = append(content, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", first+i), "name": c.Tool, "input": c.Args})
	}
	u := m.Usage
	return map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": Model + "-20260101", "content": content,
		"stop_reason": reason, "stop_sequence": nil,
		"usage": map[string]any{
			"input_tokens": u.Input - u.Cached - u.Stored, "output_tokens": u.Output,
			"cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.Stored,
		},
	}
}
