package deferred

import (
	"encoding/json"
	"sync"
)

// The notifications about the status of a task: of the extension, which is sent for the tasks that subscriptions/listen names, and of
// revision 2025-11-25.
const (
	StatusNotification       = "notifications/tasks"
	LegacyStatusNotification = "notifications/tasks/status"
)

// Watches are the tasks that are waited for. The zero value is ready; it is safe for concurrent use.
type Watches struct {
	mu      sync.Mutex
	changed map[string]chan struct{}
}

// Watch returns a channel that gets a value when the upstream says that a task has changed, until stop is called.
func (w *Watches) Watch(id string) (changed <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = map[string]chan struct{}{}
	}
	c := w.changed[id]
	if c == nil { // two calls cannot become one task, unless the upstream is wrong: then one of them waits for the next poll
		c = make(chan struct{}, 1)
		w.changed[id] = c
	}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.changed, id)
	}
}

// Notify handles the params of a notification. The state in it is not used: the task is polled at once.
func (w *Watches) Notify(params json.RawMessage) {
	var of struct {
		ID string `json:"taskId"`
	}
	if json.Unmarshal(params, &of) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.changed[of.ID] <- struct{}{}: // a nil channel is never ready
	default:
	}
}

// ListenParams returns the params of subscriptions/listen for the status of a task.
func ListenParams(id string, meta json.RawMessage) json.RawMessage {
	params, _ := json.Marshal(map[string]any{"notifications": map[string][]string{"taskIds": {id}}, "_meta": meta}) // cannot fail: meta is valid
	return params
}
