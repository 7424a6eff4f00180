package workspaces

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// FileRead asks for a file of a workspace, or some lines of it.
type FileRead struct {
	// Workspace and Path are as in FileWrite.
	Workspace, Path string
	// Start and End are line numbers from 1, inclusive; 0 is the first and the last line.
	Start, End int
	// Code is as in FileWrite.
	Code bool
}

const (
	// maxRead is the maximum size of an excerpt, in bytes.
	maxRead = 16 << 10
	// binaryHead is the number of bytes that are checked for binary content.
	binaryHead = 8 << 10
)

// ReadFile returns the text of a file, at most 16 KiB, and how to continue. Errors are *tool.Error.
func (s *Workspaces) ReadFile(ctx context.Context, r FileRead) (string, error) {
	ws, err := s.openFiles(ctx, r.Workspace)
	if err != nil {
		return "", err
	}
	defer func() { _ = ws.Close() }()
	if r.Path, err = filePath(r.Path); err != nil {
		return "", err
	}
	if r.Code {
		r.Path = codePath(ws, r.Path, false)
	}
	f, err := ws.Open(r.Path)
	if err != nil {
		return "", unreadable(ws, r.Path, err)
	}
	defer func() { _ = f.Content.Close() }()
	in := bufio.NewReaderSize(f.Content, 64<<10)
	if head, _ := in.Peek(binaryHead); isBinary(head) {
		return fmt.Sprintf("%s is not text: %s; read it in a program", r.Path, formatSize(f.Size)), nil
	}
	if r.Start < 0 || r.End < 0 || r.End > 0 && r.End < r.Start {
		return "", &tool.Error{Kind: tool.Invalid, Message: "start_line and end_line count from 1, and the end is not before the start"}
	}
	e := excerpt{start: max(r.Start, 1), end: cmp.Or(r.End, 1<<62)}
	if err := e.read(in); err != nil {
		return "", &tool.Error{Kind: tool.Internal, Message: r.Path + " could not be read to its end", Hint: "try again", Err: err}
	}
	if e.start > max(e.lines, 1) {
		return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s has %s only", r.Path, sanitize.Count(e.lines, "line"))}
	}
	return e.text(), nil
}

// excerpt is a part of a file.
type excerpt struct {
	start, end int
	shown      strings.Builder
	lines      int // of the whole file
	cut        int // the first line that does not fit, 0 for none
}

func (e *excerpt) read(in *bufio.Reader) error {
	line, open := 1, false
	for {
		part, err := in.ReadSlice('\n')
		if len(part) > 0 {
			open = true
			e.take(line, part)
			if part[len(part)-1] == '\n' {
				line, open = line+1, false
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) || err == nil {
			continue
		}
		if e.lines = line; !open {
			e.lines--
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
}

func (e *excerpt) take(line int, part []byte) {
	if line < e.start || line > e.end || e.cut > 0 {
		return
	}
	room := maxRead - e.shown.Len()
	if len(part) > room {
		e.cut = line
		if line > e.start { // cut only the first line in the middle
			return
		}
		part = part[:room]
	}
	e.shown.Write(part)
}

// text returns the excerpt for a model, with a note if it is not the whole file.
func (e *excerpt) text() string {
	raw := strings.ToValidUTF8(e.shown.String(), "\uFFFD")
	if e.lines == 0 {
		return "(empty)"
	}
	last, more := min(e.end, e.lines), ""
	switch {
	case e.cut > e.start:
		last = e.cut - 1
		more = fmt.Sprintf("\n[go on with start_line=%d]", e.cut)
	case e.cut > 0:
		last = e.cut
		more = fmt.Sprintf("\n[line %d is longer; read it in a program]", e.cut)
	}
	text := execution.Visible(raw)
	if len(text)+strings.Count(raw, "\r\n") < len(strings.TrimRight(raw, "\r\n")) {
		more += "\n[invisible characters are left out]"
	}
	if e.start > 1 || last < e.lines {
		text = fmt.Sprintf("[lines %d-%d of %d]\n%s", e.start, last, e.lines, text)
	}
	return text + more
}

const (
	// maxListed is the maximum number of files that are listed individually, maxFolded the maximum number of lines.
	maxListed = 100
	maxFolded = 200
)

// ListFiles lists the files of a workspace at or below a path, "" for all. Errors are *tool.Error.
func (s *Workspaces) ListFiles(ctx context.Context, asked, below string) (string, error) {
	ws, err := s.openFiles(ctx, asked)
	if err != nil {
		return "", err
	}
	defer func() { _ = ws.Close() }()
	below = strings.Trim(strings.TrimPrefix(path.Clean("/"+below), "/workspace"), "/")
	if below != "" {
		if below, err = filePath(below); err != nil {
			return "", err
		}
	}
	if err := CheckSize(ws, cmp.Or(asked, tool.Workspace(ctx)), s.limits()); err != nil {
		return "", err
	}
	var files []workspace.File
	var bytes int64
	known := below == ""
	for f, err := range ws.Files() {
		if f.Path == "" {
			return "", &tool.Error{Kind: tool.Internal, Message: "the workspace could not be listed", Hint: "try again", Err: err}
		}
		rest, within := strings.CutPrefix(f.Path, below)
		if err != nil || !within || below != "" && rest != "" && rest[0] != '/' {
			continue
		}
		known = true
		if !f.Folder || rest != "" {
			files, bytes = append(files, f), bytes+f.Size
		}
	}
	if !known {
		return "", unreadable(ws, below, fs.ErrNotExist)
	}
	return listing(files, below, bytes, s.limits().Workspace), nil
}

// listing returns one line for each file, or if there are many for each file and folder of the first level, and a total.
func listing(files []workspace.File, below string, bytes, quota int64) string {
	var lines []string
	number := 0
	for _, f := range files {
		if !f.Folder {
			number++
		}
	}
	if number > maxListed {
		lines = folderLines(files, below)
	} else {
		lines = fileLines(files)
	}
	slices.Sort(lines)
	if more := len(lines) - maxFolded; more > 0 {
		lines = append(lines[:maxFolded], fmt.Sprintf("... and %d more", more))
	}
	total := fmt.Sprintf("(%s, %s of %s)", sanitize.Count(number, "file"), formatSize(bytes), formatSize(quota))
	return strings.Join(append(lines, total), "\n")
}

// fileLines lists each file, and each empty folder.
func fileLines(files []workspace.File) []string {
	full := map[string]bool{}
	for _, f := range files {
		full[path.Dir(f.Path)] = true
	}
	var lines []string
	for _, f := range files {
		switch {
		case !f.Folder:
			lines = append(lines, sanitize.Line(f.Path, 300)+" "+formatSize(f.Size))
		case !full[f.Path]:
			lines = append(lines, sanitize.Line(f.Path, 300)+"/ empty")
		}
	}
	return lines
}

// folderLines lists the direct children of a folder, folders with the totals of their files.
func folderLines(files []workspace.File, below string) []string {
	type folder struct {
		files int
		bytes int64
	}
	folders := map[string]*folder{}
	var lines []string
	for _, f := range files {
		rest := strings.TrimPrefix(strings.TrimPrefix(f.Path, below), "/")
		first, _, deep := strings.Cut(rest, "/")
		name := path.Join(below, first)
		if !deep && !f.Folder {
			lines = append(lines, sanitize.Line(f.Path, 300)+" "+formatSize(f.Size))
			continue
		}
		if folders[name] == nil {
			folders[name] = &folder{}
		}
		if !f.Folder {
			folders[name].files++
			folders[name].bytes += f.Size
		}
	}
	for name, f := range folders {
		lines = append(lines, fmt.Sprintf("%s/ %s, %s", sanitize.Line(name, 300), sanitize.Count(f.files, "file"), formatSize(f.bytes)))
	}
	return lines
}

// formatSize formats a number of bytes.
func formatSize(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
