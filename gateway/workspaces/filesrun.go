package workspaces

import (
	"context"
	"path"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// LoadProgram reads the code of a program from its File, if set.
func (s *Workspaces) LoadProgram(ctx context.Context, p *execution.Program) error {
	if p.File == "" {
		return nil
	}
	if p.Code != "" {
		return &tool.Error{Kind: tool.Invalid, Message: "a program is code or a file, not both"}
	}
	ws, err := s.openFiles(ctx, p.Workspace)
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
	_, code, err := readWhole(ws, p.File)
	if err != nil {
		return unreadable(ws, p.File, err)
	}
	if len(strings.TrimSpace(code)) == 0 || len(code) > execution.MaxCode {
		return &tool.Error{Kind: tool.Invalid, Message: p.File + " is empty, or has more than 1 MiB"}
	}
	p.Code = strings.TrimPrefix(code, "\ufeff")
	return nil
}

// languageOf returns the language of a program by its file extension.
func languageOf(name string) (string, error) {
	switch strings.ToLower(path.Ext(name)) {
	case ".py":
		return "python", nil
	case ".ts", ".mts", ".js", ".mjs":
		return "typescript", nil
	}
	return "", &tool.Error{Kind: tool.Invalid, Message: name + " is not a program: use .py, .ts, .mts, .js or .mjs"}
}

// SaveProgram writes the code of a program to SaveAs, if set, and sets File to it.
func (s *Workspaces) SaveProgram(ctx context.Context, p *execution.Program, interpreter sandbox.Interpreter) error {
	if p.SaveAs == "" || p.File != "" {
		return nil
	}
	name, err := filePath(p.SaveAs)
	if err != nil {
		return err
	}
	if _, err := languageOf(name); err != nil {
		name += map[sandbox.Interpreter]string{sandbox.Python: ".py", sandbox.Node: ".ts"}[interpreter]
	}
	if _, err := s.WriteFile(ctx, FileWrite{Workspace: p.Workspace, Path: name, Verb: FileReplace, Content: p.Code}); err != nil {
		return err
	}
	p.File = name
	return nil
}
