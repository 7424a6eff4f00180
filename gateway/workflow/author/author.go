// Package author makes workflow files of programs that have succeeded, for people who may change the settings. A file is written
// only if it can be loaded and has no errors; an existing one is never changed.
package author

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/gateway/history"
	"sallyport/gateway/workflow/flowgen"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/access"
	"sallyport/internal/atomicfile"
	"sallyport/internal/audit"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"
)

// Options are the dependencies of an [Author]. All are required.
type Options struct {
	// Dir is the folder of workflows.
	Dir string
	// Definitions returns the workflows in force, Lint the names that a workflow may use.
	Definitions func() []*spec.Definition
	Lint        func(ctx context.Context) lint.Options
	// Record records a new file before it is written; after an error it is not written.
	Record func(ctx context.Context, e audit.Event) error
	// Reload puts new files into force.
	Reload func()
}

// Author writes workflow files. It is safe for concurrent use.
type Author struct{ opts Options }

// New returns an author.
func New(opts Options) *Author { return &Author{opts} }

// Save writes a workflow with one step: the program of a successful execution. Errors are *tool.Error.
func (a *Author) Save(ctx context.Context, name, description string, done history.Record) error {
	if caller, _ := access.CallerFrom(ctx); !caller.MayConfigure() {
		return &tool.Error{Kind: tool.Denied, Message: "only an administrator may add workflows", Hint: "run sallyport dashboard on the gateway's machine, or sign in with the role admin"}
	}
	text, err := flowgen.Program(done, name, description)
	if err != nil {
		return err
	}
	path := filepath.Join(a.opts.Dir, "workflow.yaml") // its name is checked first
	d, err := spec.Parse(path, text, nil)
	if err != nil {
		return invalid(err)
	}
	if err := a.free(d.Name); err != nil {
		return err
	}
	if err := a.check(ctx, d); err != nil {
		return err
	}
	if err := a.opts.Record(ctx, audit.Event{Kind: audit.SettingsChanged, Note: "added workflow " + d.Name + ", from execution " + done.ID}); err != nil {
		return err
	}
	return a.write(d.Name, text)
}

// free returns an error if there is a workflow or a file of that name.
func (a *Author) free(name string) error {
	taken := slices.ContainsFunc(a.opts.Definitions(), func(d *spec.Definition) bool { return d.Name == name })
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		_, err := os.Lstat(filepath.Join(a.opts.Dir, name+ext))
		taken = taken || err == nil
	}
	if taken {
		return exists(name)
	}
	return nil
}

func exists(name string) error {
	return &tool.Error{Kind: tool.Invalid, Message: "there is a workflow " + name + " already", Hint: "choose another name, or edit its file"}
}

// check returns the first error that the linter finds.
func (a *Author) check(ctx context.Context, d *spec.Definition) error {
	for _, f := range lint.Check(d, a.opts.Lint(ctx)) {
		if f.Severity == lint.Error {
			return &tool.Error{Kind: tool.Invalid, Message: "the program cannot be a workflow: " + sanitize.Line(f.Message, 500)}
		}
	}
	return nil
}

// write writes a new file, and puts it into force.
func (a *Author) write(name string, text []byte) error {
	_, err := atomicfile.Write(filepath.Join(a.opts.Dir, name+".yaml"), nil, text, nil)
	switch {
	case errors.Is(err, atomicfile.ErrChanged):
		return exists(name)
	case err != nil:
		return &tool.Error{Kind: tool.Failed, Message: "the workflow cannot be written", Hint: "the gateway needs write access to the folder of workflows", Err: err}
	}
	a.opts.Reload()
	return nil
}

// invalid returns the first fault of a definition, without its place in a file that is not written.
func invalid(err error) error {
	message, _, _ := strings.Cut(err.Error(), "\n")
	if fault, ok := errors.AsType[*yamlstrict.Error](err); ok {
		message = fault.Message
	}
	return &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(message, 500), Err: err}
}
