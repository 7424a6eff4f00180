package task

import (
	"context"
	"encoding/json"
	"maps"

	"sallyport/gateway/task/rules"
	"sallyport/internal/sanitize"
)

// asks asks the client for what the rules need (elicitation/create), and continues with the answers. Without a client that
// shows forms, the questions are the result.
func (l *loop) asks(ctx context.Context, plan rules.Plan) (Status, error) {
	answers := l.elicit(ctx, plan.Missing)
	if answers == nil || l.ran {
		return Asked, nil
	}
	l.ran = true // it asks once
	args := maps.Clone(l.request.Args)
	if args == nil {
		args = map[string]json.RawMessage{}
	}
	maps.Copy(args, answers)
	l.request.Args = args
	l.work.change(func(t *Task) { t.Args, t.Questions = args, nil })
	return l.byRules(ctx, "")
}

// elicit returns the answers of a form, nil if there are none.
func (l *loop) elicit(ctx context.Context, missing []rules.Question) map[string]json.RawMessage {
	if l.request.Peer == nil {
		return nil
	}
	properties, required := map[string]any{}, []string{}
	for _, q := range missing {
		property := map[string]any{"type": "string", "description": q.Text}
		if len(q.Choices) > 0 {
			property["enum"] = q.Choices
		}
		properties[q.Name] = property
		required = append(required, q.Name)
	}
	params, err := sanitize.JSON(map[string]any{
		"message":         "The task needs: " + sanitize.Line(l.request.Task, 300),
		"requestedSchema": map[string]any{"type": "object", "properties": properties, "required": required},
	})
	if err != nil {
		return nil
	}
	raw, err := l.request.Peer.Ask(ctx, "elicitation/create", params)
	var said struct {
		Action  string
		Content map[string]json.RawMessage
	}
	if err != nil || json.Unmarshal(raw, &said) != nil || said.Action != "accept" {
		return nil
	}
	return said.Content
}
