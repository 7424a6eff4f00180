package compat

import (
	"context"
	_ "embed" // the prelude
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// codeExecutionPrelude gives programs the names that the server has without imports.
//
//go:embed prelude/code_execution.py
var codeExecutionPrelude string

// codeExecution has the tools of code-execution-mcp.
type codeExecution struct {
	gateway Gateway
	files   files
}

// defaultSeconds is the time limit of its programs, which a call can raise up to that of the settings.
const defaultSeconds = 30

func (c codeExecution) face() *Face {
	const anObject, aNumber = `{"type":"object"}`, `{"type":"integer"}`
	plain := func(call func(ctx context.Context, args json.RawMessage) (any, error)) func(context.Context, Run, json.RawMessage) (Answer, error) {
		return func(ctx context.Context, _ Run, args json.RawMessage) (Answer, error) {
			said, err := call(ctx, args)
			if err != nil {
				return Answer{}, err
			}
			return answer(said, "  ")
		}
	}
	return &Face{Name: config.CompatCodeExecution, Tools: []Tool{
		{"execute_code", "Run Python in a sandbox. Set `result` to what should come back. Without imports there are json, re, math, statistics, " +
			"collections, datetime, date, timedelta, read_file, write_file, list_files, delete_file, save_skill, load_skill, list_skills, " +
			"tokenize_pii, detokenize_pii, filter_by_field, summarize_list, aggregate_stats, format_output.",
			schema([]string{"code"}, text("code"), `"context_vars":`+anObject, `"timeout_seconds":`+aNumber, `"memory_mb":`+aNumber), c.execute},
		{"search_tools", "Find tools that programs can import: from servers.CATEGORY import NAME.",
			schema([]string{"query"}, text("query"), text("category"), `"detail_level":{"enum":["summary","full"]}`), plain(c.search)},
		{"get_tool_definition", "Describe one tool.", schema([]string{"tool_name"}, text("tool_name"), text("category")), plain(c.definition)},
		{"list_tool_categories", "List the categories of tools.", schema(nil), plain(c.categories)},
		{"save_skill", "Keep code for later programs: exec(load_skill(name)).", schema([]string{"name", "code"}, text("name"), text("code"), text("description")), plain(c.saveSkill)},
		{"load_skill", "Show the code of a skill.", schema([]string{"name"}, text("name")), plain(c.loadSkill)},
		{"list_skills", "List all skills.", schema(nil), plain(c.listSkills)},
		{"sanitize_pii", "Replace personal data in a text by tokens.", schema([]string{"text"}, text("text")), plain(c.sanitize)},
		{"restore_pii", "Put the data back in place of tokens, if the settings allow it.", schema([]string{"text"}, text("text")), plain(c.restore)},
		{"write_workspace_file", "Write a file of the workspace.", schema([]string{"filename", "content"}, text("filename"), text("content")), plain(c.writeFile)},
		{"read_workspace_file", "Read a file of the workspace.", schema([]string{"filename"}, text("filename")), plain(c.readFile)},
		{"list_workspace_files", "List the files of the workspace.", schema(nil, text("subpath")), plain(c.listFiles)},
		{"get_execution_stats", "Describe the workspace, the skills and the limits.", schema(nil), plain(c.stats)},
	}}
}

func (c codeExecution) execute(ctx context.Context, run Run, args json.RawMessage) (Answer, error) {
	in := struct {
		Code    string                     `json:"code"`
		Vars    map[string]json.RawMessage `json:"context_vars"`
		Seconds *float64                   `json:"timeout_seconds"`
		Memory  *float64                   `json:"memory_mb"` // the settings limit it
	}{}
	if err := decode(args, &in, "code"); err != nil {
		return Answer{}, err
	}
	seconds := float64(defaultSeconds)
	if in.Seconds != nil {
		seconds = *in.Seconds
	}
	if seconds <= 0 {
		return Answer{}, invalid("timeout_seconds must be more than 0", "")
	}
	begun := time.Now()
	e, err := run(ctx, execution.Program{Code: in.Code, Variables: in.Vars, Timeout: duration(seconds), Prelude: codeExecutionPrelude, Value: maxValue})
	if err != nil {
		return answer(object{"success": false, "error": reason(err), "output": []string{}}, "  ")
	}
	said, err := answer(programAnswer(e, begun), "  ")
	said.Content = e.ClientContent()
	return said, err
}

// duration returns a number of seconds as a duration, at most some days.
func duration(seconds float64) time.Duration {
	return max(1, time.Duration(min(seconds, 1e6)*float64(time.Second)))
}

// programAnswer is the answer of execute_code.
func programAnswer(e execution.Result, begun time.Time) object {
	out, _ := e.CleanOutput()
	lines := []string{}
	if out != "" {
		lines = strings.Split(out, "\n")
	}
	if !e.Failed() {
		return object{"success": true, "result": valueOf(e.Value), "output": lines, "execution_time_ms": time.Since(begun).Milliseconds()}
	}
	said := object{"success": false, "output": lines}
	switch {
	case e.Status == sandbox.TimedOut:
		said["error"] = fmt.Sprintf("Execution timed out after %g seconds", e.Limits.Timeout.Seconds())
	case e.Fault != nil:
		said["error"], said["traceback"] = sanitize.Text(e.Fault.Message, 4000), traceback(*e.Fault)
		if e.Fault.Hint != "" {
			said["hint"] = sanitize.Line(e.Fault.Hint, 500)
		}
	default:
		said["error"] = e.Ending()
	}
	return said
}

// valueOf returns a program's value for an answer.
func valueOf(v *bridge.Value) any {
	switch {
	case v == nil:
		return nil
	case v.Kind == "json" && json.Valid([]byte(v.Text)):
		return json.RawMessage(v.Text)
	}
	return v.Text
}

// traceback returns a fault as Python prints it.
func traceback(f bridge.Fault) string {
	var b strings.Builder
	b.WriteString("Traceback (most recent call last):\n")
	for _, line := range f.Lines {
		file, function := line.File, line.Function
		if file == "" {
			file = "<sandbox>"
		}
		if function == "" {
			function = "<module>"
		}
		fmt.Fprintf(&b, "  File %q, line %d, in %s\n", sanitize.Line(file, 200), line.Line, sanitize.Line(function, 100))
		if line.Source != "" {
			b.WriteString("    " + sanitize.Line(line.Source, 400) + "\n")
		}
	}
	b.WriteString(sanitize.Line(f.Type, 100) + ": " + sanitize.Text(f.Message, 4000) + "\n")
	return b.String()
}

func (c codeExecution) writeFile(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Filename string `json:"filename"`
		Content  string `json:"content"`
	}{}
	if err := decode(args, &in, "filename", "content"); err != nil {
		return nil, err
	}
	name, err := c.files.relative(ctx, in.Filename)
	if err == nil {
		err = c.files.write(ctx, name, in.Content)
	}
	if err != nil {
		return failure(err), nil
	}
	return object{"success": true, "message": fmt.Sprintf("Written %d bytes to %s", len(in.Content), in.Filename)}, nil
}

func (c codeExecution) readFile(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Filename string `json:"filename"`
	}{}
	if err := decode(args, &in, "filename"); err != nil {
		return nil, err
	}
	name, err := c.files.relative(ctx, in.Filename)
	content := ""
	if err == nil {
		content, _, err = c.files.read(ctx, name)
	}
	if err != nil {
		return failure(err), nil
	}
	return object{"success": true, "filename": in.Filename, "content": content, "size": len([]rune(content))}, nil
}

func (c codeExecution) listFiles(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Subpath string `json:"subpath"`
	}{Subpath: "."}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	below := "."
	var err error
	if in.Subpath != "." && in.Subpath != "" {
		below, err = c.files.relative(ctx, in.Subpath)
	}
	var names []string
	if err == nil {
		names, err = c.files.list(ctx, below)
	}
	if err != nil {
		return failure(err), nil
	}
	return object{"success": true, "path": in.Subpath, "files": names, "count": len(names)}, nil
}

// failure is the answer for an error.
func failure(err error) object {
	said := object{"success": false, "error": reason(err)}
	if errors.Is(err, errOutside) {
		said["error"] = errOutside.Error()
	}
	return said
}
