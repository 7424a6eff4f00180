package endpointtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
)

// chat is the API of OpenAI.
type chat struct{}

func (chat) path() string { return "/v1/chat/completions" }

func (chat) allowed(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+Key }

func (chat) marks() bool { return false }

func (chat) refuse(kind, message string) any {
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": nil}}
}

type chatBody struct {
	Model    string            `json:"model"`
	Messages []json.RawMessage `json:"messages"`
	Tools    []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type chatEntry struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	ID      string  `json:"tool_call_id"`
	Thought string  `json:"reasoning_content"`
	Calls   []struct {
		ID       string          `json:"id"`
		Type     string          `json:"type"`
		Extra    json.RawMessage `json:"extra_content"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (chat) read(body []byte) (now request, err error) {
	var b chatBody
	if err := strict(body, &b); err != nil {
		return now, err
	}
	if b.Model != Model || bytes.Contains(body, []byte(`"tools":[]`)) {
		return now, fmt.Errorf("model %q, %d tools", b.Model, len(b.Tools))
	}
	for _, t := range b.Tools {
		if t.Type != "function" {
			return now, fmt.Errorf("tool of type %q", t.Type)
		}
		now.defined = append(now.defined, tokencount.Definition{Name: t.Function.Name, Description: t.Function.Description, InputSchema: t.Function.Parameters})
	}
	now.said = b.Messages
	return now, chatOrder(&now)
}

// chatOrder demands: perhaps system, then user, then calls and a result for each of them directly behind, in any number.
func chatOrder(now *request) error {
	var open []string
	for i, raw := range now.said {
		var m chatEntry
		err := strict(raw, &m)
		if err == nil {
			open, err = now.chatEntry(i, m, open)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w: %.200s", i, err, raw)
		}
	}
	if len(open) > 0 {
		return errors.New("a call has no result")
	}
	return nil
}

var errPlace = errors.New("out of place")

// chatEntry takes message i; open are the calls that have no result yet.
func (now *request) chatEntry(i int, m chatEntry, open []string) ([]string, error) {
	switch m.Role {
	case "system":
		if i == 0 && m.text() != "" {
			return nil, nil
		}
	case "user":
		if now.prompt == "" && i < 2 {
			now.prompt = m.text()
			return nil, nil
		}
	case "assistant":
		if len(open) == 0 && now.prompt != "" {
			now.results = nil
			return m.calls()
		}
	case "tool":
		if len(open) > 0 && m.ID == open[0] && m.Content != nil {
			now.results = append(now.results, tokencount.Result{Text: *m.Content})
			return open[1:], nil
		}
	}
	return nil, errPlace
}

func (m *chatEntry) text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// calls are the ids of what is called. What a client has no word for comes back as it was said.
func (m *chatEntry) calls() (ids []string, err error) {
	for _, c := range m.Calls {
		if c.Type != "function" || !json.Valid([]byte(c.Function.Arguments)) || !named.MatchString(c.Function.Name) || len(c.Extra) == 0 || m.Thought == "" {
			return nil, fmt.Errorf("call %+v", c)
		}
		ids = append(ids, c.ID)
	}
	if len(ids) == 0 {
		return nil, errors.New("no calls")
	}
	return ids, nil
}

func (chat) write(m agent.Move, first int) any {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}, "reasoning_content": "thinking"}
	if m.Text != "" {
		message["content"] = m.Text
	}
	reason := "stop"
	var calls []any
	for i, c := range m.Calls {
		calls = append(calls, map[string]any{
			"id": fmt.Sprintf("call_%d", first+i), "type": "function", "index": i,
			"extra_content": map[string]any{"signature": "s1"},
			"function":      map[string]any{"name": c.Tool, "arguments": string(c.Args)},
		})
	}
	if len(calls) > 0 {
		reason, message["tool_calls"] = "tool_calls", calls
	}
	return map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": Model + "-2026-01-01",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}},
		"usage": map[string]any{
			"prompt_tokens": m.Usage.Input, "completion_tokens": m.Usage.Output, "total_tokens": m.Usage.Input + m.Usage.Output,
			"prompt_tokens_details": map[string]any{"cached_tokens": m.Usage.Cached},
		},
	}
}
