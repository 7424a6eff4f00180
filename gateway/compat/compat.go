// Package compat lets clients of other code execution servers use the gateway unchanged. A [Face] has the tools of another
// MCP server: their names, their parameters and their JSON answers. [Web] serves the HTTP API of another server. Both are
// thin: programs run by the gateway's executor, and files, packages and tools go through the gateway's components.
//
// A face is written from the documents of the other server. Its programs may find names without imports: a prelude, a
// module in Python that the sandbox runs first.
package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Programs runs programs.
type Programs interface {
	Execute(ctx context.Context, p execution.Program) (execution.Result, error)
	// Limits returns the limits of a program by the settings in force.
	Limits(program execution.Program) sandbox.Limits
}

// Files reads and writes the files of workspaces.
type Files interface {
	FilesOf(ctx context.Context, name, prefix string) (list []workspaces.WorkspaceFile, more bool, err error)
	FileContent(ctx context.Context, name, path string) (workspaces.WorkspaceFile, io.ReadCloser, error)
	ChangeFile(ctx context.Context, name, path, tag string, content []byte) (workspaces.WorkspaceFile, error)
}

// Folders tells which workspaces are folders of the operator.
type Folders interface {
	Mapping(ctx context.Context, name string) (config.MappedFolder, bool)
}

// Catalog has the tools of the upstreams.
type Catalog interface {
	Await(ctx context.Context, upstream string)
	Tools() []tool.Tool
	Upstreams() []catalog.Upstream
}

// Search finds and describes tools.
type Search interface {
	Search(ctx context.Context, s toolsearch.Request) (toolsearch.Found, error)
	ToolView(ctx context.Context, id tool.ID) (toolsearch.ToolView, error)
}

// Skills saves and loads skills.
type Skills interface {
	SaveSkill(ctx context.Context, d skills.SkillDraft) (string, error)
	SkillOf(ctx context.Context, name string, version int) (skills.SkillDetail, error)
	SkillList(ctx context.Context) ([]skills.SkillInfo, error)
}

// Privacy replaces personal data by tokens, and back.
type Privacy interface {
	Mask(ctx context.Context, text string) (clean, found string, err error)
	Unmask(ctx context.Context, text string) (string, error)
}

// Gateway is everything that faces need.
type Gateway struct {
	Programs
	Files
	Folders
	Catalog
	Search
	Skills
	Packages
	Privacy Privacy
}

// Face replaces an MCP server for its clients.
type Face struct {
	// Name is the name in the settings.
	Name  string
	Tools []Tool
}

// Tool is one of its tools.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage
	// Call answers a call. An error is about the arguments; all other failures are in the answer.
	Call func(ctx context.Context, run Run, args json.RawMessage) (Answer, error)
}

// Run runs a program for the client that made the call.
type Run func(ctx context.Context, p execution.Program) (execution.Result, error)

// Answer is the answer of a tool.
type Answer struct {
	// Text is what the other server would answer.
	Text string
	// Content is what a program emitted, for the client's user.
	Content []tool.Content
}

// New returns the face with a name of [config.Compats], nil for one that has no tools.
func New(name string, g Gateway) *Face {
	switch name {
	case config.CompatCodeExecution:
		return codeExecution{gateway: g, files: files{g}}.face()
	case config.CompatCodeExecutor:
		return newCodeExecutor(g).face()
	}
	return nil
}

// object is a JSON object in an answer.
type object = map[string]any

// answer returns a value as JSON, as the other servers write it.
func answer(value any, indent string) (Answer, error) {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	to.SetIndent("", indent)
	if err := to.Encode(value); err != nil {
		return Answer{}, fmt.Errorf("write answer: %w", err)
	}
	return Answer{Text: strings.TrimSuffix(b.String(), "\n")}, nil
}

// decode reads arguments into a struct. An unknown or missing name is an error.
func decode(args json.RawMessage, into any, required ...string) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(args, &given); err != nil {
		return invalid("arguments must be an object", "")
	}
	from := json.NewDecoder(bytes.NewReader(args))
	from.DisallowUnknownFields()
	if err := from.Decode(into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return invalid(fmt.Sprintf("%s must not be a %s", sanitize.Line(wrong.Field, 80), wrong.Value), "")
		}
		return invalid(sanitize.Line(strings.TrimPrefix(err.Error(), "json: "), 200), "")
	}
	for _, name := range required {
		if value := given[name]; len(value) == 0 || string(value) == "null" {
			return invalid(name+" is missing", "")
		}
	}
	return nil
}

func invalid(message, hint string) error {
	return &tool.Error{Kind: tool.Invalid, Message: message, Hint: hint}
}

// reason returns an error as one text.
func reason(err error) string { return sanitize.Text(tool.AsError(err).Error(), 4000) }

// schema returns the schema of an object. Properties are JSON members, such as `"code":{"type":"string"}`.
func schema(required []string, properties ...string) json.RawMessage {
	names, err := json.Marshal(required)
	if err != nil || len(required) == 0 {
		names = []byte("[]")
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":` + string(names) + `}`)
}

// text returns a property that is a text.
func text(name string) string { return `"` + name + `":{"type":"string"}` }

// toolsByUpstream returns the names of all tools by upstream, sorted.
func toolsByUpstream(all []tool.Tool) map[string][]string {
	names := map[string][]string{}
	for _, t := range all {
		names[t.ID.Upstream] = append(names[t.ID.Upstream], t.ID.Name)
	}
	for _, list := range names {
		slices.Sort(list)
	}
	return names
}

// maxValue is the maximum size of a program's value in bytes, which becomes a part of the answer.
const maxValue = 1 << 20
