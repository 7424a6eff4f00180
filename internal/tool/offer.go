package tool

import "encoding/json"

// Offer is everything that one upstream offers, as last listed. All text in it is untrusted. The Raw of each part is
// its original definition.
type Offer struct {
	Tools     []Tool     `json:"tools,omitempty"`
	Resources []Resource `json:"resources,omitempty"`
	Templates []Template `json:"templates,omitempty"`
	Prompts   []Prompt   `json:"prompts,omitempty"`
	Server    Server     `json:"server"`
}

// Server is an upstream's description of itself in its handshake.
type Server struct {
	Name         string `json:"name,omitempty"`
	Version      string `json:"version,omitempty"`
	Protocol     string `json:"protocol,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	// Capabilities are the server's, unmodified.
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
}

// Resource is one entry of resources/list.
type Resource struct {
	URI         string          `json:"uri"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIME        string          `json:"mimeType,omitempty"`
	Raw         json.RawMessage `json:"raw,omitempty"`
}

// Template is one entry of resources/templates/list; URI is an RFC 6570 template.
type Template struct {
	URI         string          `json:"uriTemplate"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIME        string          `json:"mimeType,omitempty"`
	Raw         json.RawMessage `json:"raw,omitempty"`
}

// Prompt is one entry of prompts/list. A prompt has no identifier: programs and
// clients name it by its wire name.
type Prompt struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Arguments   []Argument      `json:"arguments,omitempty"`
	Raw         json.RawMessage `json:"raw,omitempty"`
}

// Argument is one argument of a prompt; all are strings.
type Argument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}
