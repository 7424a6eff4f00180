package workspaces

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// FileWrite is a change of a file in a workspace.
type FileWrite struct {
	// Workspace is as in Program.
	Workspace string
	// Path is below /workspace, which it may begin with. "" is a new name, for Make.
	Path string
	// Verb says what Content does.
	Verb FileVerb
	// Content is the whole text, the text to append, or the replacement of Old.
	Content string
	// Old is the text that FileEdit replaces. It must occur exactly once.
	Old string
	// Code says that a name without an extension is a Python file.
	Code bool
}

// FileVerb is a way to change a file.
type FileVerb string

// The ways to change a file.
const (
	// FileMake creates a file.
	FileMake FileVerb = "made"
	// FileAppend appends to a file, on a new line.
	FileAppend FileVerb = "added to"
	// FileReplace creates or replaces a file.
	FileReplace FileVerb = "wrote"
	// FileEdit replaces a text in a file.
	FileEdit FileVerb = "edited"
)

const (
	// maxEditSize is the maximum size of a file to change, in bytes.
	maxEditSize = 16 << 20
	// writeTries is the number of attempts to change a file that others change at the same time.
	writeTries = 10
)

// WriteFile changes one file and reports its new size. A concurrent reader finds the
// old content or the new one, and the change is on disk on return. Errors are *tool.Error.
func (s *Workspaces) WriteFile(ctx context.Context, w FileWrite) (string, error) {
	ws, err := s.openFiles(ctx, w.Workspace)
	if err != nil {
		return "", err
	}
	defer func() { _ = ws.Close() }()
	if w.Path == "" && w.Verb == FileMake {
		w.Path = "code_" + strings.ToLower(rand.Text()[:6]) + ".py"
	}
	if w.Path, err = filePath(w.Path); err != nil {
		return "", err
	}
	if w.Code {
		w.Path = codePath(ws, w.Path, w.Verb == FileMake)
	}
	for range writeTries {
		said, again, err := w.try(ws)
		if !again {
			return said, err
		}
	}
	return "", &tool.Error{Kind: tool.Failed, Message: w.Path + " is being changed by others all the time", Hint: "try again", Retryable: true}
}

// openFiles opens a workspace for the tools about files.
func (s *Workspaces) openFiles(ctx context.Context, asked string) (Space, error) {
	name, err := Name(ctx, asked)
	if err != nil {
		return nil, err
	}
	ws, err := s.Open(ctx, name, s.limits(), true)
	if err != nil {
		s.opts.Logger.ErrorContext(ctx, "workspace cannot be opened", "error", errors.Unwrap(err))
		return nil, err
	}
	if ws == nil {
		return nil, &tool.Error{Kind: tool.Denied, Message: "no files are kept here: there is no data directory"}
	}
	return s.opts.Watch(ctx, ws, name), nil
}

// filePath returns the clean path in a workspace for the path in a request.
func filePath(asked string) (string, error) {
	clean := strings.TrimPrefix(asked, "/workspace/")
	for strings.HasPrefix(clean, "./") {
		clean = clean[2:]
	}
	if err := workspace.Check(clean); err != nil {
		return "", &tool.Error{
			Kind: tool.Invalid, Message: fmt.Sprintf("invalid file name %q: %v", sanitize.Line(asked, 80), err),
			Hint: "a path below /workspace, such as src/app.py",
		}
	}
	return clean, nil
}

// codePath adds .py to a name without an extension, unless a file with that name exists.
func codePath(ws Space, name string, fresh bool) string {
	if path.Ext(name) != "" || workspace.Check(name+".py") != nil {
		return name
	}
	if fresh || !fileExists(ws, name) && fileExists(ws, name+".py") {
		return name + ".py"
	}
	return name
}

func fileExists(ws Space, name string) bool {
	f, err := ws.Open(name)
	if err == nil {
		_ = f.Content.Close()
	}
	return err == nil
}

// try makes one attempt; again reports that the file was changed concurrently.
func (w FileWrite) try(ws Space) (said string, again bool, err error) {
	old, content, err := readWhole(ws, w.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, unreadable(ws, w.Path, err)
	}
	fresh, err := w.apply(ws, content, err == nil)
	if err != nil {
		return "", false, err
	}
	updated, err := ws.Update(workspace.Changes(workspace.File{
		Path: w.Path, Size: int64(len(fresh)), Executable: old.Executable, Version: old.Version, Content: io.NopCloser(strings.NewReader(fresh)),
	}))
	if err != nil {
		return "", false, writeError(w.Path, err)
	}
	if _, written := updated.Versions[w.Path]; written {
		return fmt.Sprintf("%s %s: %s, %s", w.Verb, w.Path, sanitize.Count(countLines(fresh), "line"), sanitize.Count(len(fresh), "byte")), false, nil
	}
	if now, _, err := readWhole(ws, w.Path); (err == nil || errors.Is(err, fs.ErrNotExist)) && now.Version != old.Version {
		return "", true, nil
	}
	return "", false, &tool.Error{Kind: tool.Limit, Message: strings.Join(updated.Notes, "; ")}
}

// writeError returns the error for a file that could not be written.
func writeError(path string, err error) error {
	if down := toolcall.Unavailable(err); down != nil {
		return down
	}
	return &tool.Error{Kind: tool.Internal, Message: path + " could not be written", Hint: "try again", Err: err}
}

// readWhole reads a whole file.
func readWhole(ws Space, name string) (workspace.File, string, error) {
	f, err := ws.Open(name)
	if err != nil {
		return workspace.File{}, "", err
	}
	defer func() { _ = f.Content.Close() }()
	if f.Size > maxEditSize {
		return f, "", errTooLarge
	}
	data, err := io.ReadAll(io.LimitReader(f.Content, maxEditSize))
	return f, string(data), err
}

var errTooLarge = fmt.Errorf("it has more than %d MiB; change it in a program", maxEditSize>>20)

// apply returns the new content of the file.
func (w FileWrite) apply(ws Space, content string, exists bool) (string, error) {
	switch {
	case w.Verb == FileMake && exists:
		return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s is there already, %s", w.Path, sanitize.Count(countLines(content), "line")), Hint: "overwrite_file replaces it, append_to_code_file adds to it"}
	case w.Verb == FileMake, w.Verb == FileReplace:
		return w.Content, nil
	case !exists:
		return "", unreadable(ws, w.Path, fs.ErrNotExist)
	case w.Verb == FileAppend:
		if content != "" && !strings.HasSuffix(content, "\n") {
			content += "\n"
		}
		return content + w.Content, nil
	}
	return w.edit(content)
}

// edit replaces the single occurrence of Old.
func (w FileWrite) edit(content string) (string, error) {
	old, fresh := w.Old, w.Content
	if old == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "old_text is empty", Hint: "give the text to be replaced, or content for the whole file"}
	}
	if strings.Contains(content, "\r\n") && !strings.Contains(content, old) { // models see and write only \n
		old, fresh = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(fresh, "\n", "\r\n")
	}
	at := strings.Index(content, old)
	if at < 0 {
		return "", &tool.Error{Kind: tool.Invalid, Message: "old_text does not occur in " + w.Path, Hint: nearLine(content, w.Old)}
	}
	if lines, times := occurrences(content, old); times > 1 {
		return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("old_text occurs %d times in %s, at lines %s", times, w.Path, lines), Hint: "give more of the text around it"}
	}
	return content[:at] + fresh + content[at+len(old):], nil
}

// occurrences returns the first few lines where a text occurs, and the number of occurrences, which may overlap.
func occurrences(content, text string) (lines string, times int) {
	var first []string
	line, from := 1, 0
	for at := 0; ; at++ {
		i := strings.Index(content[at:], text)
		if i < 0 {
			return strings.Join(first, ", "), times
		}
		at += i
		line += strings.Count(content[from:at], "\n")
		from = at
		if times++; times <= 5 {
			first = append(first, fmt.Sprint(line))
		} else if times == 6 {
			first = append(first, "...")
		}
		if times == 1000 {
			return strings.Join(first, ", "), times
		}
	}
}

// nearLine returns a hint with the line that equals the first line of a text except for white space.
func nearLine(content, text string) string {
	want, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	want = strings.TrimSpace(want)
	number := 0
	for line := range strings.SplitSeq(content, "\n") {
		number++
		if want != "" && strings.TrimSpace(line) == want {
			return fmt.Sprintf("its first line is like line %d; white space counts: read the file again", number)
		}
	}
	return "read the file again, white space counts"
}

// unreadable returns the error for a file that cannot be read.
func unreadable(ws Space, name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s: %v", name, err)}
	}
	missing := &tool.Error{Kind: tool.NotFound, Message: "there is no file " + name, Hint: "list_workspace_files shows what there is"}
	if near := nearFile(ws, name); near != "" {
		missing.Hint = "did you mean " + near + "?"
	}
	return missing
}

// maxNear is the maximum number of files that are compared with an unknown name.
const maxNear = 2000

// nearFile returns a file with the same name in another folder, or with a similar path.
func nearFile(ws Space, name string) string {
	var paths []string
	for f, err := range ws.Files() {
		if len(paths) == maxNear || f.Path == "" {
			break
		}
		if err != nil || f.Folder {
			continue
		}
		if path.Base(f.Path) == path.Base(name) {
			return f.Path
		}
		paths = append(paths, f.Path)
	}
	return suggest.Of(name, paths)
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// isBinary reports whether the beginning of a file is not text.
func isBinary(head []byte) bool {
	return bytes.IndexByte(head, 0) >= 0 || strings.ContainsRune(strings.ToValidUTF8(string(head[:max(0, len(head)-3)]), "\x00"), 0)
}
