package compat

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // the prelude
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// codeExecutorPrelude lets programs use the full paths of answers.
//
//go:embed prelude/code_executor.py
var codeExecutorPrelude string

// Packages installs and lists packages, and selects environments.
type Packages interface {
	InstallPackages(ctx context.Context, p environments.Packages) (string, error)
	FindPackages(ctx context.Context, p environments.Packages) (versions map[string]string, err error)
	ChooseEnvironment(ctx context.Context, c environments.Choice) (string, error)
	Chosen(ctx context.Context) (environments.Chosen, error)
}

// codeExecutor has the tools of mcp_code_executor.
type codeExecutor struct {
	gateway Gateway
	files   files
	env     *runtimeEnv
}

func newCodeExecutor(g Gateway) codeExecutor {
	return codeExecutor{g, files{g}, &runtimeEnv{set: map[[2]string]map[string]string{}}}
}

func (c codeExecutor) face() *Face {
	const names, variables = `"packages":{"type":"array","items":{"type":"string"}}`, `"variables":{"type":"object"}`
	plain := func(call func(ctx context.Context, args json.RawMessage) (object, error)) func(context.Context, Run, json.RawMessage) (Answer, error) {
		return func(ctx context.Context, _ Run, args json.RawMessage) (Answer, error) {
			said, err := call(ctx, args)
			if err != nil {
				return Answer{}, err
			}
			return answer(said, "")
		}
	}
	return &Face{Name: config.CompatCodeExecutor, Tools: []Tool{
		{"execute_code", "Run Python code in the environment. For longer code, use initialize_code_file and append_to_code_file.",
			schema([]string{"code"}, text("code"), text("filename")), c.execute},
		{"initialize_code_file", "Make a new Python file. The answer has its path; append_to_code_file adds to it.",
			schema([]string{"content"}, text("content"), text("filename")), plain(c.initialize)},
		{"append_to_code_file", "Add content to the end of a file.", schema([]string{"file_path", "content"}, text("file_path"), text("content")), plain(c.add)},
		{"execute_code_file", "Run a Python file.", schema([]string{"file_path"}, text("file_path")), c.executeFile},
		{"read_code_file", "Read a file.", schema([]string{"file_path"}, text("file_path")), plain(c.read)},
		{"install_dependencies", "Install packages in the environment.", schema([]string{"packages"}, names), plain(c.install)},
		{"check_installed_packages", "Tell which packages are installed.", schema([]string{"packages"}, names), plain(c.check)},
		{"configure_environment", "Select the environment of programs.",
			schema([]string{"type"}, `"type":{"enum":["conda","venv","venv-uv"]}`, text("conda_name"), text("venv_path"), text("uv_venv_path")), plain(c.configure)},
		{"get_environment_config", "Tell the environment of programs.", schema(nil), plain(c.config)},
		{"set_runtime_env", "Set variables of the environment of programs, until the server ends.", schema([]string{"variables"}, variables), plain(c.setEnv)},
		{"get_runtime_env", "Tell the variables that were set.", schema(nil), plain(c.getEnv)},
	}}
}

// newName returns the file name of a program: each gets a suffix, so that no name is used twice.
func newName(asked string) string {
	return cmp.Or(strings.TrimSuffix(asked, ".py"), "code") + "_" + strings.ToLower(rand.Text()[:8]) + ".py"
}

func (c codeExecutor) execute(ctx context.Context, run Run, args json.RawMessage) (Answer, error) {
	in := struct {
		Code     string `json:"code"`
		Filename string `json:"filename"`
	}{}
	if err := decode(args, &in, "code"); err != nil {
		return Answer{}, err
	}
	name, err := c.files.relative(ctx, newName(in.Filename))
	if err == nil {
		err = c.files.write(ctx, name, in.Code)
	}
	if err != nil {
		return answer(wrong(err), "")
	}
	return c.run(ctx, run, name, object{"generated_filename": path.Base(name)})
}

func (c codeExecutor) executeFile(ctx context.Context, run Run, args json.RawMessage) (Answer, error) {
	in := struct {
		Path string `json:"file_path"`
	}{}
	if err := decode(args, &in, "file_path"); err != nil {
		return Answer{}, err
	}
	name, err := c.files.relative(ctx, in.Path)
	if err != nil {
		return answer(with(wrong(err), "file_path", in.Path), "")
	}
	return c.run(ctx, run, name, object{})
}

// run runs a file, as python3 does: the value of its last expression is not told.
func (c codeExecutor) run(ctx context.Context, run Run, name string, said object) (Answer, error) {
	full := c.files.full(ctx, name)
	prelude, err := c.prelude(ctx)
	if err != nil {
		return Answer{}, err
	}
	e, err := run(ctx, execution.Program{File: name, Language: "python", Prelude: prelude})
	if err != nil {
		return answer(with(wrong(err), "file_path", full), "")
	}
	maps.Copy(said, object{"status": "success", "file_path": full})
	stdout, stderr := e.CleanOutput()
	said["output"] = ended(stdout)
	switch {
	case e.Failed():
		said["status"] = "error"
		said["error"] = "Command failed: python3 -u " + strconv.Quote(full) + "\n" + ended(stderr) + c.failed(e, full)
	case stderr != "": // that server takes any error output for a failure
		said["status"], said["output"] = "error", ended(stderr)
	}
	made, err := answer(said, "")
	made.Content = e.ClientContent()
	return made, err
}

// failed returns why a program failed, as its interpreter writes it to stderr.
func (c codeExecutor) failed(e execution.Result, full string) string {
	if e.Fault == nil {
		return e.Ending()
	}
	fault := *e.Fault
	fault.Lines = slices.Clone(fault.Lines)
	for i := range fault.Lines {
		if fault.Lines[i].File == "" || fault.Lines[i].File == path.Base(full) {
			fault.Lines[i].File = full
		}
	}
	said := traceback(fault)
	if fault.Hint != "" {
		said += "hint: " + sanitize.Line(fault.Hint, 500) + "\n"
	}
	return said
}

// ended ends a text with a newline, unless it is empty.
func ended(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}

func with(said object, name string, value any) object {
	said[name] = value
	return said
}

// wrong is the answer for an error.
func wrong(err error) object { return object{"status": "error", "error": reason(err)} }

func (c codeExecutor) initialize(ctx context.Context, args json.RawMessage) (object, error) {
	in := struct {
		Content  string `json:"content"`
		Filename string `json:"filename"`
	}{}
	if err := decode(args, &in, "content"); err != nil {
		return nil, err
	}
	name, err := c.files.relative(ctx, newName(in.Filename))
	if err == nil {
		err = c.files.write(ctx, name, in.Content)
	}
	if err != nil {
		return wrong(err), nil
	}
	return object{"status": "success", "message": "File initialized successfully", "file_path": c.files.full(ctx, name), "filename": path.Base(name)}, nil
}

func (c codeExecutor) add(ctx context.Context, args json.RawMessage) (object, error) {
	in := struct {
		Path    string `json:"file_path"`
		Content string `json:"content"`
	}{}
	if err := decode(args, &in, "file_path", "content"); err != nil {
		return nil, err
	}
	name, err := c.files.relative(ctx, in.Path)
	if err == nil {
		err = c.files.add(ctx, name, in.Content)
	}
	if err != nil {
		return with(wrong(err), "file_path", in.Path), nil
	}
	return object{"status": "success", "message": "Content appended successfully", "file_path": c.files.full(ctx, name)}, nil
}

func (c codeExecutor) read(ctx context.Context, args json.RawMessage) (object, error) {
	in := struct {
		Path string `json:"file_path"`
	}{}
	if err := decode(args, &in, "file_path"); err != nil {
		return nil, err
	}
	name, err := c.files.relative(ctx, in.Path)
	content := ""
	if err == nil {
		content, _, err = c.files.read(ctx, name)
	}
	if err != nil {
		return with(wrong(err), "file_path", in.Path), nil
	}
	return object{"status": "success", "content": content, "file_path": c.files.full(ctx, name)}, nil
}

// runtimeEnv are the variables that clients have set, by principal and session.
type runtimeEnv struct {
	mu  sync.Mutex
	set map[[2]string]map[string]string
}

// maxSessions is the maximum number of sessions with variables, maxVariables that of their variables.
const maxSessions, maxVariables = 1024, 200

func envKey(ctx context.Context) [2]string { return [2]string{tool.Principal(ctx), tool.Session(ctx)} }

func (e *runtimeEnv) get(ctx context.Context) map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := maps.Clone(e.set[envKey(ctx)])
	if all == nil {
		all = map[string]string{}
	}
	return all
}

func (e *runtimeEnv) add(ctx context.Context, more map[string]string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := envKey(ctx)
	if e.set[key] == nil && len(e.set) >= maxSessions {
		clear(e.set)
	}
	all := map[string]string{}
	maps.Copy(all, e.set[key])
	maps.Copy(all, more)
	if len(all) > maxVariables {
		return &tool.Error{Kind: tool.Limit, Message: "at most " + strconv.Itoa(maxVariables) + " variables can be set"}
	}
	e.set[key] = all
	return nil
}

func (c codeExecutor) setEnv(ctx context.Context, args json.RawMessage) (object, error) {
	in := struct {
		Variables map[string]string `json:"variables"`
	}{}
	if err := decode(args, &in, "variables"); err != nil {
		return nil, err
	}
	for name, value := range in.Variables {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return wrong(invalid("a variable needs a name without = and NUL", "")), nil
		}
	}
	if err := c.env.add(ctx, in.Variables); err != nil {
		return wrong(err), nil
	}
	return object{"status": "success", "message": "Runtime environment variables updated", "variables": c.env.get(ctx)}, nil
}

func (c codeExecutor) getEnv(ctx context.Context, args json.RawMessage) (object, error) {
	if err := decode(args, &struct{}{}); err != nil {
		return nil, err
	}
	return object{"status": "success", "variables": c.env.get(ctx)}, nil
}

// prelude returns the prelude of a program, with the caller's folder and variables.
func (c codeExecutor) prelude(ctx context.Context) (string, error) {
	settings, err := json.Marshal(object{"folder": c.files.folder(ctx), "env": c.env.get(ctx)})
	if err != nil {
		return "", err
	}
	quoted, err := json.Marshal(string(settings)) // also a literal of Python
	return strings.Replace(codeExecutorPrelude, `"SETTINGS"`, string(quoted), 1), err
}
