package models

import (
	"encoding/json"
	"errors"
	"strings"
)

// chat is chat completions.
type chat struct{}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (chat) request(s Settings, r Request, refused map[string]bool) any {
	body := map[string]any{"messages": chatMessages(r), "stream": true}
	if s.API != Azure {
		body["model"] = s.Model
	}
	switch {
	case !refused["max_tokens"]:
		body["max_tokens"] = s.Answer
	case !refused["max_completion_tokens"]:
		body["max_completion_tokens"] = s.Answer
	}
	if s.Temperature != nil && !refused["temperature"] {
		body["temperature"] = *s.Temperature
	}
	if !refused["stream_options"] {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	return body
}

func chatMessages(r Request) (all []chatMessage) {
	if r.System != "" {
		all = append(all, chatMessage{"system", r.System})
	}
	for _, m := range r.Messages {
		all = append(all, chatMessage{role(m), m.Text})
	}
	return all
}

func role(m Message) string {
	if m.Assistant {
		return "assistant"
	}
	return "user"
}

// chatResponse is a response or an event, as far as it is read.
type chatResponse struct {
	Model   string
	Choices []struct {
		Delta, Message struct {
			Content json.RawMessage
			Refusal string
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func (c chat) event(data []byte, into *Answer) error { return c.whole(data, into) }

func (chat) whole(data []byte, into *Answer) error {
	var r chatResponse
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.Choices == nil && r.Usage == nil {
		return errors.New("no choices")
	}
	if r.Model != "" {
		into.Model = r.Model
	}
	if u := r.Usage; u != nil {
		into.Usage = Usage{Input: u.Prompt, Cached: min(u.Details.Cached, u.Prompt), Output: u.Completion}
	}
	if len(r.Choices) == 0 {
		return nil
	}
	one := r.Choices[0]
	into.Text += text(one.Delta.Content) + text(one.Message.Content) + one.Delta.Refusal + one.Message.Refusal
	into.Cut = into.Cut || one.FinishReason == "length"
	return nil
}

// text reads a content: a text, or a list of parts.
func text(content json.RawMessage) string {
	var plain string
	if json.Unmarshal(content, &plain) == nil {
		return plain
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	return all.String()
}

// messages is Anthropic's API.
type messages struct{}

type messagesPart struct {
	Type  string        `json:"type"`
	Text  string        `json:"text"`
	Cache *cacheControl `json:"cache_control,omitempty"`
}

// cacheControl lets the endpoint cache what it has read up to here.
type cacheControl struct {
	Type string `json:"type"`
}

func (messages) request(s Settings, r Request, refused map[string]bool) any {
	var all []any
	for i, m := range r.Messages {
		part := messagesPart{Type: "text", Text: m.Text}
		if i == len(r.Messages)-1 {
			part.Cache = &cacheControl{"ephemeral"}
		}
		all = append(all, map[string]any{"role": role(m), "content": []messagesPart{part}})
	}
	body := map[string]any{"model": s.Model, "max_tokens": s.Answer, "messages": all, "stream": true}
	if r.System != "" {
		body["system"] = []messagesPart{{Type: "text", Text: r.System, Cache: &cacheControl{"ephemeral"}}}
	}
	if s.Temperature != nil && !refused["temperature"] {
		body["temperature"] = *s.Temperature
	}
	return body
}

type messagesUsage struct {
	Input  *int `json:"input_tokens"`
	Output int  `json:"output_tokens"`
	Stored int  `json:"cache_creation_input_tokens"`
	Cached int  `json:"cache_read_input_tokens"`
}

// addTo sets the usage. An event at the end repeats the output only.
func (u *messagesUsage) addTo(into *Answer) {
	if u == nil {
		return
	}
	if u.Input != nil && *u.Input+u.Cached+u.Stored > 0 {
		into.Usage.Input, into.Usage.Cached = *u.Input+u.Cached+u.Stored, u.Cached
	}
	into.Usage.Output = max(into.Usage.Output, u.Output)
}

func (m messages) event(data []byte, into *Answer) error {
	var e struct {
		Type    string
		Message json.RawMessage
		Delta   struct {
			Type, Text string
			StopReason string `json:"stop_reason"`
		}
		Usage *messagesUsage
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "message_start":
		return m.whole(e.Message, into)
	case "content_block_delta":
		into.Text += e.Delta.Text
	case "message_delta":
		into.Cut = into.Cut || e.Delta.StopReason == "max_tokens"
		e.Usage.addTo(into)
	}
	return nil
}

func (messages) whole(data []byte, into *Answer) error {
	var r struct {
		Type, Model string
		Content     []struct{ Type, Text string }
		StopReason  string `json:"stop_reason"`
		Usage       *messagesUsage
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.Type != "message" {
		return errors.New("no message")
	}
	for _, c := range r.Content {
		if c.Type == "text" {
			into.Text += c.Text
		}
	}
	into.Model, into.Cut = r.Model, r.StopReason == "max_tokens"
	r.Usage.addTo(into)
	return nil
}
