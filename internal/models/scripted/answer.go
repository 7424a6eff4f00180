package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sallyport/internal/models"
)

// answer writes the model's text, in one piece or as a stream.
func (s *Model) answer(w http.ResponseWriter, t Turn, stream bool) {
	text, u, cut := s.Reply(t), usage(t), false
	if u.Output = len(text)/4 + 1; u.Output > t.Limit {
		text, u.Output, cut = text[:t.Limit*4], t.Limit, true
	}
	switch {
	case s.API == models.Anthropic && stream:
		s.streamMessages(w, text, u, cut)
	case s.API == models.Anthropic:
		send(w, http.StatusOK, s.message([]any{map[string]any{"type": "text", "text": text}}, reason(cut, "max_tokens", "end_turn"), u))
	case stream:
		s.streamChat(w, text, u, cut, t.Params["stream_options"])
	default:
		send(w, http.StatusOK, s.withUsage(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": Name + "-2026-01-01",
			"choices": []any{map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": text, "refusal": nil}, "finish_reason": reason(cut, "length", "stop")}},
		}, u))
	}
}

// usage counts four bytes as a token. All but the last message was read before.
func usage(t Turn) (u models.Usage) {
	u.Input = len(t.System)/4 + 1
	for i, m := range t.Messages {
		if i == len(t.Messages)-1 && i > 0 {
			u.Cached = u.Input
		}
		u.Input += len(m.Text) / 4
	}
	return u
}

func reason(cut bool, bound, end string) string {
	if cut {
		return bound
	}
	return end
}

func (s *Model) withUsage(body map[string]any, u models.Usage) map[string]any {
	if !s.NoUsage {
		body["usage"] = map[string]any{
			"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
			"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached},
		}
	}
	return body
}

// pieces cuts a text into the parts of a stream.
func pieces(text string) (all []string) {
	const size = 48
	for runes := []rune(text); len(runes) > 0; runes = runes[min(size, len(runes)):] {
		all = append(all, string(runes[:min(size, len(runes))]))
	}
	return all
}

func event(w http.ResponseWriter, name string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *Model) streamChat(w http.ResponseWriter, text string, u models.Usage, cut, withUsage bool) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	chunk := func(choices []any) map[string]any {
		return map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": Name + "-2026-01-01", "choices": choices}
	}
	delta := func(d map[string]any, finish any) []any {
		return []any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}
	}
	if s.API == models.Azure { // Azure begins with the results of its filter
		event(w, "", map[string]any{"id": "", "object": "", "created": 0, "model": "", "choices": []any{}, "prompt_filter_results": []any{}})
	}
	event(w, "", chunk(delta(map[string]any{"role": "assistant", "content": ""}, nil)))
	for _, piece := range pieces(text) {
		event(w, "", chunk(delta(map[string]any{"content": piece}, nil)))
	}
	event(w, "", chunk(delta(map[string]any{}, reason(cut, "length", "stop"))))
	if withUsage {
		event(w, "", s.withUsage(chunk([]any{}), u))
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (s *Model) message(content []any, stop any, u models.Usage) map[string]any {
	body := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": Name + "-20260101", "content": content, "stop_reason": stop, "stop_sequence": nil,
	}
	if !s.NoUsage {
		body["usage"] = map[string]any{"input_tokens": u.Input - u.Cached, "output_tokens": u.Output, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0}
	}
	return body
}

func (s *Model) streamMessages(w http.ResponseWriter, text string, u models.Usage, cut bool) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	first := u
	first.Output = 1
	event(w, "message_start", map[string]any{"type": "message_start", "message": s.message([]any{}, nil, first)})
	event(w, "content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	event(w, "ping", map[string]any{"type": "ping"})
	for _, piece := range pieces(text) {
		event(w, "content_block_delta", map[string]any{"type": "content_block_delta", "index": 0, "delta": map[string]any{"type": "text_delta", "text": piece}})
	}
	event(w, "content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
	last := map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": reason(cut, "max_tokens", "end_turn"), "stop_sequence": nil}}
	if !s.NoUsage {
		last["usage"] = map[string]any{"output_tokens": u.Output}
	}
	event(w, "message_delta", last)
	event(w, "message_stop", map[string]any{"type": "message_stop"})
}
