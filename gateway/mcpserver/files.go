package mcpserver

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/execution"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
)

// Files is the part of the gateway that the file tools call.
type Files interface {
	ReadFile(ctx context.Context, r workspaces.FileRead) (string, error)
	WriteFile(ctx context.Context, w workspaces.FileWrite) (string, error)
	ListFiles(ctx context.Context, workspace, below string) (string, error)
}

// workspaceProperty returns the schema of the workspace parameter, "" where there is only the default workspace.
func workspaceProperty(opts *Options) string {
	if !opts.Profiles.Has(config.ProfileFiles) && len(opts.Workspaces) == 0 {
		return ""
	}
	return `"workspace":{"type":"string"},`
}

// files implements the tools of profile files. Their names and parameters are those of similar servers.
type files struct {
	service      Service
	files        Files
	environments map[string]config.Environment
}

// The parameters that files share.
const (
	filePath  = `"file_path":{"type":"string"},`
	fileName  = `"filename":{"type":"string"},`
	content   = `"content":{"type":"string"},`
	lines     = `"start_line":{"type":"integer"},"end_line":{"type":"integer"},`
	workspace = `"workspace":{"type":"string"}`
)

func (f files) extras() []extra {
	return []extra{
		{fileTool("initialize_code_file", "Make a new code file in /workspace.", `"content"`, content+fileName), f.write(workspaces.FileMake, true)},
		{fileTool("append_to_code_file", "Add lines to a file's end.", `"file_path","content"`, filePath+content), f.write(workspaces.FileAppend, true)},
		{fileTool("overwrite_file", "Give a file new content, or only replace old_text in it, which must occur once.", `"file_path"`,
			filePath+content+`"old_text":{"type":"string"},"new_text":{"type":"string"},`), f.overwrite},
		{asReadOnly(fileTool("read_code_file", "Read a file, or some lines of it.", `"file_path"`, filePath+lines)), f.read(true)},
		{fileTool("execute_code_file", "Run a .py, .ts, .js or .mjs file, as execute_code does. It can import its neighbours.", `"file_path"`,
			filePath+`"session":{"type":"string"},`+environmentProperty(f.environments)+`"timeout":{"type":"number"},`), f.execute},
		{asReadOnly(fileTool("list_workspace_files", "List files with sizes.", "", `"subpath":{"type":"string"},`)), f.list},
		{asReadOnly(fileTool("read_workspace_file", "As read_code_file.", `"filename"`, fileName+lines)), f.read(false)},
		{fileTool("write_workspace_file", "Make or replace any text file.", `"filename","content"`, fileName+content), f.write(workspaces.FileReplace, false)},
	}
}

func fileTool(name, about, required, properties string) *mcp.Tool {
	if required != "" {
		required = `"required":[` + required + `],`
	}
	return &mcp.Tool{
		Name: name, Description: about,
		InputSchema: json.RawMessage(`{"type":"object",` + required + `"properties":{` + properties + workspace + `}}`),
	}
}

// asReadOnly marks a tool as read-only.
func asReadOnly(t *mcp.Tool) *mcp.Tool {
	t.Annotations = readOnly()
	return t
}

// requireArgument returns an error if a required argument is blank.
func requireArgument(name, value string) error {
	if strings.TrimSpace(value) == "" {
		return invalidArgument(name+" is missing", "")
	}
	return nil
}

// write returns the handler of a tool that writes its content argument.
func (f files) write(verb workspaces.FileVerb, code bool) func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		w := workspaces.FileWrite{Verb: verb, Code: code}
		var given *string
		if err := decodeArguments(args, map[string]any{"file_path": &w.Path, "filename": &w.Path, "content": &given, "workspace": &w.Workspace}); err != nil {
			return nil, err
		}
		if given == nil {
			return nil, invalidArgument("content is missing", "")
		}
		w.Content = *given
		if verb != workspaces.FileMake {
			if err := requireArgument("file_path", w.Path); err != nil {
				return nil, err
			}
		}
		return toResult(f.files.WriteFile(ctx, w))
	}
}

func (f files) overwrite(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	w := workspaces.FileWrite{Verb: workspaces.FileReplace}
	var all, old, fresh *string
	if err := decodeArguments(args, map[string]any{
		"file_path": &w.Path, "filename": &w.Path, "content": &all, "old_text": &old, "new_text": &fresh, "workspace": &w.Workspace,
	}); err != nil {
		return nil, err
	}
	if err := requireArgument("file_path", w.Path); err != nil {
		return nil, err
	}
	switch {
	case all != nil && old == nil && fresh == nil:
		w.Content = *all
	case all == nil && old != nil && fresh != nil:
		w.Verb, w.Old, w.Content, w.Code = workspaces.FileEdit, *old, *fresh, true
	default:
		return nil, invalidArgument("give content, or old_text and new_text", "")
	}
	return toResult(f.files.WriteFile(ctx, w))
}

func (f files) read(code bool) func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
	return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		r := workspaces.FileRead{Code: code}
		var start, end float64
		if err := decodeArguments(args, map[string]any{"file_path": &r.Path, "filename": &r.Path, "start_line": &start, "end_line": &end, "workspace": &r.Workspace}); err != nil {
			return nil, err
		}
		if err := requireArgument("file_path", r.Path); err != nil {
			return nil, err
		}
		r.Start, r.End = int(max(-1, min(start, 1e9))), int(max(-1, min(end, 1e9)))
		return toResult(f.files.ReadFile(ctx, r))
	}
}

func (f files) list(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var workspace, below string
	if err := decodeArguments(args, map[string]any{"subpath": &below, "workspace": &workspace}); err != nil {
		return nil, err
	}
	return toResult(f.files.ListFiles(ctx, workspace, below))
}

func (f files) execute(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var p execution.Program
	seconds := math.NaN()
	if err := decodeArguments(args, map[string]any{
		"file_path": &p.File, "filename": &p.File, "session": &p.Session, "environment": &p.Environment, "timeout": &seconds, "workspace": &p.Workspace,
	}); err != nil {
		return nil, err
	}
	if err := requireArgument("file_path", p.File); err != nil {
		return nil, err
	}
	var err error
	if p.Timeout, err = parseTimeout(seconds); err != nil {
		return nil, err
	}
	r, _ := ctx.Value(requestKey{}).(*request)
	return r.run(ctx, f.service, p)
}
