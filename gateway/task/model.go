package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// model answers the requests of a task.
type model struct {
	name  string
	price models.Price
	ask   func(ctx context.Context, r models.Request) (models.Answer, error)
}

// model returns the model of a request, nil if rules are to be used, with the reason.
func (t *Tasks) model(r Request) (*model, string) {
	cfg := t.opts.Settings.Load()
	if r.NoModel {
		return nil, ""
	}
	name := nameOf(cfg, r.Model)
	m, known := cfg.Models[name]
	switch {
	case !known && len(cfg.Models) > 0:
		return nil, "No model is named: tasks.model in the settings names the one to use."
	case !known && t.opts.Environment != nil:
		return t.endpoint("environment", *t.opts.Environment)
	case !known:
		return nil, "The settings have no model."
	case m.Problem != "":
		return nil, "The model cannot be used: " + m.Problem
	case m.API == config.APISampling:
		return sampler(name, m, r.Peer)
	}
	return t.endpoint(name, settingsOf(m))
}

// nameOf returns the name of the model to use.
func nameOf(cfg *config.Config, asked string) string {
	if asked != "" {
		return asked
	}
	if cfg.Tasks.Model != "" {
		return cfg.Tasks.Model
	}
	if len(cfg.Models) == 1 {
		for name := range cfg.Models {
			return name
		}
	}
	return "default"
}

func settingsOf(m config.LanguageModel) models.Settings {
	return models.Settings{
		API: models.API(m.API), URL: m.URL, Model: m.Model, Deployment: m.Deployment, APIVersion: m.APIVersion, Key: string(m.Key), Headers: m.Headers,
		Answer: m.Answer, Temperature: m.Temperature, Timeout: m.Timeout, Price: models.Price(m.Price),
	}
}

// endpoint returns a model behind HTTP. What an endpoint has learned is kept while its settings do not change.
func (t *Tasks) endpoint(name string, s models.Settings) (*model, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := settingsKey(s)
	o := t.open[name]
	if o == nil || o.settings != key {
		e, err := models.Open(s)
		if err != nil {
			return nil, "The model cannot be used: " + tool.AsError(err).Error()
		}
		if o != nil {
			o.endpoint.Close()
		}
		o = &opened{key, e}
		t.open[name] = o
	}
	return &model{name, s.Price, o.endpoint.Ask}, ""
}

// sampler returns the model of the client.
func sampler(name string, m config.LanguageModel, peer tool.Peer) (*model, string) {
	if peer == nil {
		return nil, "The model is that of the client, and this client has none to offer."
	}
	return &model{name, models.Price(m.Price), func(ctx context.Context, r models.Request) (models.Answer, error) {
		return sample(ctx, peer, m, r)
	}}, ""
}

// sample asks the client's model (sampling/createMessage).
func sample(ctx context.Context, peer tool.Peer, m config.LanguageModel, r models.Request) (a models.Answer, err error) {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var messages []any
	for _, said := range r.Messages {
		role := "user"
		if said.Assistant {
			role = "assistant"
		}
		messages = append(messages, map[string]any{"role": role, "content": content{"text", said.Text}})
	}
	params, err := sanitize.JSON(map[string]any{"messages": messages, "systemPrompt": r.System, "maxTokens": m.Answer, "includeContext": "none"})
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	raw, err := peer.Ask(ctx, "sampling/createMessage", params)
	if err != nil {
		return a, &tool.Error{Kind: tool.Upstream, Message: "the client's model gave no answer: " + sanitize.Line(err.Error(), 200), Err: err}
	}
	var said struct {
		Content    json.RawMessage
		Model      string
		StopReason string
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return a, &tool.Error{Kind: tool.Upstream, Message: "the client's answer cannot be read", Err: err}
	}
	var parts []content
	if one := (content{}); json.Unmarshal(said.Content, &one) == nil {
		parts = []content{one}
	} else if json.Unmarshal(said.Content, &parts) != nil {
		return a, &tool.Error{Kind: tool.Upstream, Message: "the client's answer has no text"}
	}
	a.Text = strings.Join(texts(parts, func(c content) string { return c.Text }), "")
	a.Model, a.Cut = sanitize.Line(said.Model, 80), said.StopReason == "maxTokens"
	a.Usage = models.Estimate(r, a)
	return a, nil
}

func texts[T any](all []T, of func(T) string) []string {
	out := make([]string, 0, len(all))
	for one := range slices.Values(all) {
		out = append(out, of(one))
	}
	return out
}

// settingsKey is equal for equal settings. It is kept in memory only, as it has the key of the endpoint.
func settingsKey(s models.Settings) string {
	heat := -1.0
	if s.Temperature != nil {
		heat = *s.Temperature
	}
	s.Temperature = nil
	return fmt.Sprintf("%v %v", s, heat)
}
