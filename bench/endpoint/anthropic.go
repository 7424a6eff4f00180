package endpoint

import (
	"encoding/json"
	"strings"

	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
	"sallyport/internal/tool"
)

// anthropic is Anthropic's messages. tokens bounds an answer, which the API wants.
type anthropic struct{ tokens int }

type messagesRequest struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	System    string          `json:"system,omitempty"`
	Tools     []messagesTool  `json:"tools,omitempty"`
	Messages  []messagesEntry `json:"messages"`
}

type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Cache       *cacheMark      `json:"cache_control,omitempty"`
}

type messagesEntry struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// block is a part of what we say: the prompt, or a result.
type block struct {
	Type    string     `json:"type"`
	Text    string     `json:"text,omitempty"`
	ID      string     `json:"tool_use_id,omitempty"`
	Content string     `json:"content,omitempty"`
	IsError bool       `json:"is_error,omitempty"`
	Cache   *cacheMark `json:"cache_control,omitempty"`
}

// cacheMark has the endpoint keep what it has read until there, to read it for less at the next turn.
type cacheMark struct {
	Type string `json:"type"`
}

func mark() *cacheMark { return &cacheMark{"ephemeral"} }

func (a anthropic) request(model string, t *tokencount.Transcript, said []turn) ([]byte, error) {
	r := messagesRequest{Model: model, MaxTokens: a.tokens, System: strings.Join(t.Instructions, "\n\n")}
	defined, err := tools(t)
	if err != nil {
		return nil, err
	}
	for _, d := range defined {
		r.Tools = append(r.Tools, messagesTool{Name: d.Name, Description: d.Description, InputSchema: d.InputSchema})
	}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].Cache = mark()
	}
	ours := [][]block{{{Type: "text", Text: t.Prompt}}}
	r.Messages = append(r.Messages, messagesEntry{"user", ours[0]})
	for i, past := range t.Turns {
		ours = append(ours, results(past, said[i].ids))
		r.Messages = append(r.Messages, messagesEntry{"assistant", said[i].raw}, messagesEntry{"user", ours[i+1]})
	}
	// The last one is kept for the next turn; the one before was kept for this one.
	for _, blocks := range ours[max(0, len(ours)-2):] {
		if n := len(blocks); n > 0 {
			blocks[n-1].Cache = mark()
		}
	}
	return encode(r)
}

// results are those of a turn. Nothing is said in words, since an empty result cannot be marked.
func results(past tokencount.Turn, ids []string) (all []block) {
	for i, r := range past.Results {
		content := r.Text
		if content == "" {
			content = "(no output)"
		}
		all = append(all, block{Type: "tool_result", ID: ids[i], Content: content, IsError: r.Error})
	}
	return all
}

// messagesAnswer is an answer as far as it is read.
type messagesAnswer struct {
	Type, Model string
	Content     []json.RawMessage
	StopReason  string `json:"stop_reason"`
	Usage       struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Stored int `json:"cache_creation_input_tokens"`
		Cached int `json:"cache_read_input_tokens"`
	}
}

func (anthropic) answer(data []byte, at int) (reply, error) {
	var a messagesAnswer
	if err := json.Unmarshal(data, &a); err != nil || a.Type != "message" {
		return reply{}, unreadable("content")
	}
	u := a.Usage
	r := reply{model: a.Model}
	// Input here is only what no cache was asked for.
	r.move.Usage = agent.Usage{Input: u.Input + u.Cached + u.Stored, Cached: u.Cached, Stored: u.Stored, Output: u.Output}
	var back []json.RawMessage
	for _, raw := range a.Content {
		kept, err := r.read(raw, at)
		if err != nil {
			return r, unreadable("content")
		}
		if kept != nil {
			back = append(back, kept)
		}
	}
	var err error
	if r.raw, err = json.Marshal(back); err != nil {
		return r, err
	}
	switch a.StopReason {
	case "max_tokens", "model_context_window_exceeded", "refusal":
		return r, &tool.Error{Kind: tool.Failed, Message: "the model's answer is no whole one (stop_reason " + a.StopReason + ")"}
	}
	return r, nil
}

// read reads a block of an answer, and returns it as it is sent back. Thoughts go back as they came.
func (r *reply) read(raw json.RawMessage, at int) (json.RawMessage, error) {
	var b struct {
		Type, Text, ID, Name string
		Input                json.RawMessage
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, err
	}
	switch b.Type {
	case "text":
		r.move.Text += b.Text
		if strings.TrimSpace(b.Text) == "" {
			return nil, nil // is not taken back
		}
	case "tool_use":
		return r.call(raw, r.callID(b.ID, at), b.Name, b.Input)
	}
	return raw, nil
}

// call adds a call, and makes it fit to be sent back.
func (r *reply) call(raw json.RawMessage, id, name string, input json.RawMessage) (json.RawMessage, error) {
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage("{}")
	}
	r.move.Calls = append(r.move.Calls, tokencount.Call{Tool: name, Args: input})
	back := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &back); err != nil {
		return nil, err
	}
	changes := map[string]any{"id": id}
	if !toolNamePattern.MatchString(name) {
		changes["name"] = "unknown"
	}
	if !strings.HasPrefix(strings.TrimSpace(string(input)), "{") {
		changes["input"] = struct{}{}
	}
	for key, value := range changes {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		back[key] = encoded
	}
	return json.Marshal(back)
}
