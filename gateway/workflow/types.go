package workflow

import (
	"encoding/json"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// Start says which run to start.
type Start struct {
	Workflow string
	// Inputs is a JSON object; nil is an empty one.
	Inputs json.RawMessage
	// Trigger is as in [Run].
	Trigger string
	// Key makes the start idempotent: if a run was started with the same workflow and key, it is returned. "" is none.
	Key string
	// Peer is asked for missing inputs; nil means that nothing is asked.
	Peer tool.Peer
	// Parent is the execution or run that starts it; "" is none.
	Parent string
	// Read are the labels of the inputs' sources, in addition to the labels of its starter.
	Read []toolcall.Origin
}

// Filter selects runs. The zero value selects all.
type Filter struct {
	Workflow string
	Status   Status
	// Limit limits the number of runs to the newest; 0 is no limit.
	Limit int
}

// Info is a workflow in a list, as its file is now.
type Info struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Path is the file of the definition.
	Path string `json:"path"`
	// Digest is its SHA-256 in hex.
	Digest string `json:"digest"`
	// Exposed says that programs can call it, as workflows.NAME.
	Exposed bool `json:"exposed"`
	// Inputs and Outputs are the JSON Schemas of the objects that it takes and gives.
	Inputs  json.RawMessage `json:"inputs"`
	Outputs json.RawMessage `json:"outputs"`
	// Prompts are what a person is asked for inputs that are missing, by their names.
	Prompts map[string]string `json:"prompts,omitempty"`
	// Schedules are when it starts by itself; Webhook says that requests to /hooks/NAME start it.
	Schedules []Clock `json:"schedules,omitempty"`
	Webhook   bool    `json:"webhook,omitempty"`
	// Steps are what it does, in order.
	Steps []Outline `json:"steps"`
}

// Clock is one schedule of a workflow.
type Clock struct {
	// Cron and Zone, or Every, are as in the definition.
	Cron  string `json:"cron,omitempty"`
	Zone  string `json:"zone,omitempty"`
	Every string `json:"every,omitempty"`
	// Next is when it is due next, where that is known.
	Next time.Time `json:"next,omitzero"`
}

// Outline is a step as a list of steps shows it.
type Outline struct {
	// ID is "" for what holds the steps of a branch, a case and the like; Kind says what it is then.
	ID string `json:"id,omitempty"`
	// Kind is tool, code, skill, task, workflow, parallel, for_each, switch, while, wait, form or try; or branch, case, default, catch, finally.
	Kind string `json:"kind"`
	// Of is the tool, skill, workflow, condition or the like.
	Of          string    `json:"of,omitempty"`
	Description string    `json:"description,omitempty"`
	If          string    `json:"if,omitempty"`
	Steps       []Outline `json:"steps,omitempty"`
}
