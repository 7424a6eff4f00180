package gateway

import (
	"cmp"
	"context"
	"io"
	"path"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

// readFile makes the code of a program of the file that it names, if it names one.
func (g *Gateway) readFile(ctx context.Context, p *execution.Program) error {
	if p.File == "" {
		return nil
	}
	if p.Code != "" {
		return &tool.Error{Kind: tool.Invalid, Message: "a program is code or a file, not both"}
	}
	ws, err := g.files(ctx, p.Workspace)
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	if p.File, err = filePath(p.File); err != nil {
		return err
	}
	p.File = codePath(ws, p.File, false)
	if p.Language == "" {
		if p.Language, err = languageOf(p.File); err != nil {
			return err
		}
	}
	_, code, err := load(ws, p.File)
	if err != nil {
		return unreadable(ws, p.File, err)
	}
	if len(strings.TrimSpace(code)) == 0 || len(code) > execution.MaxCode {
		return &tool.Error{Kind: tool.Invalid, Message: p.File + " is empty, or has more than 1 MiB"}
	}
	p.Code = strings.TrimPrefix(code, "\ufeff")
	return nil
}

// languageOf tells the language of a program by its name.
func languageOf(name string) (string, error) {
	switch strings.ToLower(path.Ext(name)) {
	case ".py":
		return "python", nil
	case ".ts", ".mts", ".js", ".mjs":
		return "typescript", nil
	}
	return "", &tool.Error{Kind: tool.Invalid, Message: name + " is no program: its name ends in none of .py, .ts, .mts, .js, .mjs"}
}

// maxModule is how large a file of a workspace can be that a program imports, in bytes.
const maxModule = 4 << 20

// readable reads files of a workspace that a program imports; nil where there is none.
func readable(ws space) func(name string) ([]byte, bool) {
	if ws == nil {
		return nil
	}
	return func(name string) ([]byte, bool) {
		f, err := ws.Open(name)
		if err != nil {
			return nil, false
		}
		defer func() { _ = f.Content.Close() }()
		if f.Size > maxModule {
			return nil, false
		}
		data, err := io.ReadAll(io.LimitReader(f.Content, maxModule))
		return data, err == nil
	}
}

// nameLines gives the lines of a program that is a file its name.
func nameLines(fault *bridge.Fault, name string) {
	if fault == nil {
		return
	}
	for i := range fault.Lines {
		fault.Lines[i].File = cmp.Or(fault.Lines[i].File, name)
	}
}
