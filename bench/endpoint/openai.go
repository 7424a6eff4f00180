package endpoint

import (
	"bytes"
	"encoding/json"
	"strings"

	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
	"sallyport/internal/tool"
)

// openAI is chat completions.
type openAI struct{}

type chatRequest struct {
	Model    string     `json:"model"`
	Messages []any      `json:"messages"`
	Tools    []chatTool `json:"tools,omitempty"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type chatText struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatResult struct {
	Role    string `json:"role"`
	ID      string `json:"tool_call_id"`
	Content string `json:"content"`
}

func (openAI) request(model string, t *tokencount.Transcript, said []turn) ([]byte, error) {
	r := chatRequest{Model: model}
	defined, err := tools(t)
	if err != nil {
		return nil, err
	}
	for _, d := range defined {
		r.Tools = append(r.Tools, chatTool{"function", chatFunction{d.Name, d.Description, d.InputSchema}})
	}
	if system := strings.Join(t.Instructions, "\n\n"); system != "" {
		r.Messages = append(r.Messages, chatText{"system", system})
	}
	r.Messages = append(r.Messages, chatText{"user", t.Prompt})
	for i, past := range t.Turns {
		r.Messages = append(r.Messages, said[i].raw)
		for j, result := range past.Results {
			r.Messages = append(r.Messages, chatResult{"tool", said[i].ids[j], result.Text})
		}
	}
	return encode(r)
}

// chatAnswer is an answer as far as it is read.
type chatAnswer struct {
	Model   string
	Error   json.RawMessage
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      chatMessage
	}
	Usage chatUsage
}

// chatMessage is what the model said. Content is a text, or null, or a list of parts.
type chatMessage struct {
	Content json.RawMessage
	Refusal string
	Calls   []json.RawMessage `json:"tool_calls"`
	// These two are thoughts, which some endpoints want back with the calls that they led to.
	Reasoning        json.RawMessage `json:"reasoning_content"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	// Hit is the word that one other has for Cached.
	Hit int `json:"prompt_cache_hit_tokens"`
}

func (u chatUsage) tokens() agent.Usage {
	return agent.Usage{Input: u.Prompt, Cached: max(u.Details.Cached, u.Hit), Output: u.Completion}
}

type chatCall struct {
	ID       string
	Function struct {
		Name      string
		Arguments json.RawMessage
	}
}

func (openAI) answer(data []byte, at int) (reply, error) {
	var a chatAnswer
	if err := json.Unmarshal(data, &a); err != nil || len(a.Choices) == 0 {
		return reply{}, unreadable("choices")
	}
	choice := a.Choices[0]
	r := reply{model: a.Model, move: agent.Move{Text: text(choice.Message.Content) + choice.Message.Refusal, Usage: a.Usage.tokens()}}
	words := map[string]any{"role": "assistant", "content": nil}
	if r.move.Text != "" {
		words["content"] = r.move.Text
	}
	if thought := choice.Message.Reasoning; len(thought) > 0 && string(thought) != "null" {
		words["reasoning_content"] = thought
	}
	if thought := choice.Message.ReasoningDetails; len(thought) > 0 && string(thought) != "null" {
		words["reasoning_details"] = thought
	}
	var calls []map[string]json.RawMessage
	for _, raw := range choice.Message.Calls {
		call, back, err := r.chatCall(raw, at)
		if err != nil {
			return r, unreadable("tool_calls")
		}
		calls, r.move.Calls = append(calls, back), append(r.move.Calls, call)
	}
	if len(calls) > 0 {
		words["tool_calls"] = calls
	}
	var err error
	if r.raw, err = json.Marshal(words); err != nil {
		return r, err
	}
	if choice.FinishReason == "length" {
		return r, &tool.Error{Kind: tool.Failed, Message: "the model's answer was cut at a limit of tokens (finish_reason length)"}
	}
	return r, nil
}

// chatCall reads a call, and makes it fit to be sent back: with an id, a name and arguments that endpoints take.
func (r *reply) chatCall(raw json.RawMessage, at int) (call tokencount.Call, back map[string]json.RawMessage, err error) {
	var c chatCall
	if err = json.Unmarshal(raw, &c); err == nil {
		err = json.Unmarshal(raw, &back)
	}
	if err != nil {
		return call, nil, err
	}
	name, args := c.Function.Name, text(c.Function.Arguments)
	if bytes.HasPrefix(c.Function.Arguments, []byte("{")) {
		args = string(c.Function.Arguments) // where a text of it should be
	}
	call = tokencount.Call{Tool: name, Args: arguments(args)}
	if !json.Valid([]byte(args)) {
		args = "{}" // templates of some servers read it
	}
	if !toolNamePattern.MatchString(name) {
		name = "unknown"
	}
	delete(back, "index")
	for key, value := range map[string]any{"id": r.callID(c.ID, at), "type": "function", "function": map[string]string{"name": name, "arguments": args}} {
		if back[key], err = json.Marshal(value); err != nil {
			return call, nil, err
		}
	}
	return call, back, nil
}

// arguments are what a call is made with. Nothing at all is none of them; what is no
// JSON becomes a string of it, which no tool takes.
func arguments(written string) json.RawMessage {
	switch {
	case strings.TrimSpace(written) == "":
		return json.RawMessage("{}")
	case json.Valid([]byte(written)):
		return json.RawMessage(written)
	}
	quoted, err := json.Marshal(written)
	if err != nil {
		panic(err) // it is a string
	}
	return quoted
}

// text is a string, or the texts of a list of parts, or nothing.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Type, Text string }
	_ = json.Unmarshal(raw, &parts) // there is none then
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" || p.Type == "" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// encode is JSON as a client sends it: < and > as they are.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(b.String()), err
}
