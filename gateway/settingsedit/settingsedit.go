// Package settingsedit edits parts of the settings file that is in force, for people who may change the settings. A part is the
// text of one key with its comments, with placeholders for the secrets in it. A text is written only if the settings load with it; the
// rest of the file is not changed.
package settingsedit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"sallyport/internal/access"
	"sallyport/internal/atomicfile"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
	"sallyport/internal/yamledit"
)

// Options are the dependencies of an [Editor].
type Options struct {
	// Path returns the path of the settings file in force.
	Path func() string
	// Getenv looks up the variables of references.
	Getenv func(string) (string, bool)
	// Record records an edit before it is written; after an error it is not written.
	Record func(ctx context.Context, e audit.Event) error
	// Reload puts the file into force, and returns why that failed, "" if it did not.
	Reload func() string
}

// Editor edits the settings file. It is safe for concurrent use.
type Editor struct{ opts Options }

// New returns an editor.
func New(opts Options) *Editor { return &Editor{opts} }

// Part is a key of the file with its value.
type Part struct {
	// Keys are the path of the key: policy, or upstreams and a name.
	Keys []string
	// Text is its text, in which (hidden-1) stands for the first secret; "" if the file does not have it.
	Text string
	// Version changes with the text.
	Version string
	// File is the path of the file, Line the first line there, or where the part would be.
	File string
	Line int

	// Secrets is how many placeholders the text has.
	Secrets int

	indent  int
	secrets *concealed
}

// Open returns the part at a path of keys. Errors are *tool.Error.
func (e *Editor) Open(ctx context.Context, keys ...string) (Part, error) {
	f, err := e.File(ctx)
	if err != nil {
		return Part{}, err
	}
	return partOf(f, keys)
}

// File opens the settings file for a caller who may change it. Errors are *tool.Error.
func (e *Editor) File(ctx context.Context) (*settingsfile.File, error) {
	if caller, _ := access.CallerFrom(ctx); !caller.MayConfigure() {
		return nil, Denied()
	}
	f, err := settingsfile.Open(e.opts.Path(), e.opts.Getenv)
	if _, wrong := errors.AsType[*config.Error](err); err != nil && !wrong { // one that does not load can be mended here
		return nil, &tool.Error{Kind: tool.Failed, Message: "the settings file cannot be read: " + sanitize.Line(reason(err), 300)}
	}
	return f, nil
}

// Denied is the error for a caller who may not change the settings.
func Denied() error {
	return &tool.Error{Kind: tool.Denied, Message: "only an administrator may change the settings", Hint: "run sallyport dashboard on the gateway's machine, or sign in with the role admin"}
}

// reason is the cause of an error without the path of the file.
func reason(err error) string {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return cause.Err.Error()
	}
	return err.Error()
}

func partOf(f *settingsfile.File, keys []string) (Part, error) {
	p := Part{Keys: keys, File: f.Path}
	b, err := f.Block(keys...)
	p.Line = b.Line
	switch {
	case errors.Is(err, yamledit.ErrMissing) && len(keys) == 1:
	case errors.Is(err, yamledit.ErrMissing):
		return p, &tool.Error{Kind: tool.NotFound, Message: "the settings have no " + sanitize.Line(strings.Join(keys, "."), 100)}
	case err != nil:
		return p, &tool.Error{Kind: tool.Failed, Message: "this part of the settings cannot be edited here: " + sanitize.Line(err.Error(), 300), Hint: "edit the file itself"}
	}
	if hidden(b.Text) {
		return p, &tool.Error{Kind: tool.Failed, Message: "this part of the settings has characters that do not show", Hint: "edit the file itself"}
	}
	p.indent = b.Indent
	text, secrets, err := conceal(b.Text)
	if err != nil {
		return p, err
	}
	p.Text, p.Secrets, p.secrets = text, len(secrets), &secrets
	sum := sha256.Sum256([]byte(p.Text)) // without the secrets, which could be guessed by it
	p.Version = hex.EncodeToString(sum[:12])
	return p, nil
}

// hidden reports whether a text has characters that do not show.
func hidden(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return !strings.ContainsRune("\n\t", c) && sanitize.Hidden(c) })
}

// Draft is an edited part.
type Draft struct {
	Keys []string
	// Version is that of the part that was edited.
	Version string
	Text    string
}

// Checked is a draft that was checked.
type Checked struct {
	// Config are the settings with the draft, as if every reference had a value; nil with problems.
	Config *config.Config
	// Problems say what is wrong with the draft.
	Problems []Problem

	file *settingsfile.File
}

// Check checks a draft as loading the settings does. Errors are *tool.Error.
func (e *Editor) Check(ctx context.Context, d Draft) (*Checked, error) {
	f, err := e.File(ctx)
	if err != nil {
		return nil, err
	}
	part, err := partOf(f, d.Keys)
	if err != nil {
		return nil, err
	}
	c := &Checked{file: f}
	switch text := normalized(d.Text); {
	case part.Version != d.Version:
		c.Problems = []Problem{{Message: "The file has changed since you opened it here. Open it again, and repeat your edit.", Stale: true}}
		return c, nil
	case hidden(text):
		c.Problems = []Problem{{Message: "The text has characters that do not show. Remove them."}}
		return c, nil
	default:
		if c.Problems = set(f, text, part); c.Problems != nil {
			return c, nil
		}
	}
	c.Config, err = f.Config()
	return c, err
}

// normalized returns a text from a form with one kind of line ends.
func normalized(text string) string {
	return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n \t") + "\n"
}

// Save checks a draft, writes it, and puts the file into force. It returns the problems of the draft, which is not written then. force
// says why what was written is not in force, "" if it is. Errors are *tool.Error.
func (e *Editor) Save(ctx context.Context, d Draft) (problems []Problem, force string, err error) {
	c, err := e.Check(ctx, d)
	if err != nil || c.Problems != nil {
		return c.problems(), "", err
	}
	force, err = e.Write(ctx, c.file, "edited "+strings.Join(d.Keys, "."))
	if errors.Is(err, atomicfile.ErrChanged) {
		return []Problem{{Message: "The file has changed in this moment. Open it again, and repeat your edit.", Stale: true}}, "", nil
	}
	return nil, force, err
}

func (c *Checked) problems() []Problem {
	if c == nil {
		return nil
	}
	return c.Problems
}

// SetDisabled disables or enables an upstream. It returns why that is not in force, "" if it is. Errors are *tool.Error.
func (e *Editor) SetDisabled(ctx context.Context, name string, disabled bool) (force string, err error) {
	f, err := e.File(ctx)
	if err != nil {
		return "", err
	}
	verb := "enabled"
	if disabled {
		verb, err = "disabled", f.SetKey(name, "true", "disabled")
	} else {
		err = f.UnsetKey(name, "disabled")
	}
	switch {
	case errors.Is(err, yamledit.ErrMissing):
		return "", &tool.Error{Kind: tool.NotFound, Message: "the settings have no upstream " + sanitize.Line(name, 100)}
	case err != nil:
		return "", &tool.Error{Kind: tool.Failed, Message: "the settings are not changed: " + sanitize.Line(firstLine(err), 300)}
	}
	return e.Write(ctx, f, verb+" upstreams."+name)
}

// firstLine is the first line of an error: those below quote the file.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Write records and writes a file that [Editor.File] has opened and that has changed, and puts it into force: force says why it is
// not. Errors are *tool.Error; after one nothing was written.
func (e *Editor) Write(ctx context.Context, f *settingsfile.File, what string) (force string, err error) {
	if !f.Changed() {
		return "", nil
	}
	if err := e.opts.Record(ctx, audit.Event{Kind: audit.SettingsChanged, Note: what}); err != nil {
		return "", err
	}
	if err := f.Save(); err != nil {
		return "", &tool.Error{Kind: tool.Failed, Message: "the settings file cannot be written: " + sanitize.Line(reason(err), 300), Err: err}
	}
	return e.opts.Reload(), nil
}

// set puts a text into the file, and returns what is wrong with it.
func set(f *settingsfile.File, text string, part Part) []Problem {
	restored, wrong := part.secrets.restore(text)
	if wrong != nil {
		return wrong
	}
	err := f.SetBlock(restored, part.Keys...)
	if mark := placeholder.FindString(restored); err == nil && mark != "" {
		return []Problem{{Message: mark + " is not restored, as the text is not YAML of its own."}}
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, yamledit.ErrOther) {
		return []Problem{{Message: fmt.Sprintf("The text must be the key %s with its value, and nothing else.", part.Keys[len(part.Keys)-1])}}
	}
	return problemsOf(err, f.Path, part, text)
}
