package workspaces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

// Mapping returns the mapped folder with a name, if the caller may use it. For other callers the name is their own workspace.
func (s *Workspaces) Mapping(ctx context.Context, name string) (config.MappedFolder, bool) {
	m, ok := s.opts.Settings.Load().Workspaces[name]
	if !ok {
		return m, false
	}
	principal := tool.Principal(ctx)
	groups, _ := s.opts.Directory.Groups(principal)
	return m, m.Allows(principal, groups, !tool.Remote(ctx))
}

// Key returns the key of a workspace for sessions. It changes if the name is mapped to another folder.
func (s *Workspaces) Key(ctx context.Context, name string) string {
	if m, ok := s.Mapping(ctx, name); ok {
		return name + "\x00" + m.Mode + m.Path
	}
	return name
}

// openMapped opens a folder of the operator. Truncated output is stored below all, the directory of the principal's workspaces.
func (s *Workspaces) openMapped(name string, m config.MappedFolder, all string, limits sandbox.Limits) (*workspace.Mapped, error) {
	folder, err := s.checkMappable(m)
	if err != nil {
		s.opts.Logger.Error("folder cannot be mapped", "workspace", name, "error", err)
		return nil, &tool.Error{Kind: tool.Denied, Message: "workspace " + name + " cannot be used", Hint: "the operator's log says why"}
	}
	opts := workspace.MappedOptions{Bytes: limits.Workspace, Inodes: limits.Inodes, Write: m.Mode == config.ModeWrite, Ignore: m.Ignore}
	if all != "" {
		if opts.Output, err = workspace.Open(filepath.Join(all, "+"+name), workspaceOptions(limits)); err != nil {
			return nil, openError(err)
		}
	}
	ws, err := workspace.OpenMapped(folder, opts)
	if err != nil {
		if opts.Output != nil {
			err = errors.Join(err, opts.Output.Close())
		}
		return nil, openError(err)
	}
	return ws, nil
}

// checkMappable returns the resolved folder, or an error if programs must not have it. The check of the settings
// does not resolve links and does not know the gateway's own directories; this one does.
func (s *Workspaces) checkMappable(m config.MappedFolder) (string, error) {
	folder, err := filepath.EvalSymlinks(m.Path)
	if err != nil {
		return "", err
	}
	for _, system := range []string{"/proc", "/sys", "/dev"} {
		if config.Within(folder, system) {
			return "", fmt.Errorf("%s is a system directory", folder)
		}
	}
	cfg := s.opts.Settings.Load()
	home, _ := os.UserHomeDir() // "" is ignored
	inside := append([]string{string(filepath.Separator), home, s.opts.DataDir, s.opts.CacheDir, os.TempDir(), os.Getenv("XDG_RUNTIME_DIR")}, cfg.Files...)
	if m.Mode == config.ModeWrite { // changing these files can run commands on the host
		inside = append(inside, cfg.Path, s.opts.LockFile)
	}
	for _, held := range inside {
		if held != "" && config.Within(realPath(held), folder) {
			return "", fmt.Errorf("%s holds %s", folder, held)
		}
	}
	for _, ours := range []string{s.opts.DataDir, s.opts.CacheDir} {
		if ours != "" && config.Within(folder, realPath(ours)) {
			return "", fmt.Errorf("%s is in %s", folder, ours)
		}
	}
	return folder, nil
}

// Writable reports whether programs can change files in a folder of the host.
func (s *Workspaces) Writable(folder string) bool {
	real := realPath(folder)
	if s.opts.DataDir != "" && config.Within(real, realPath(s.opts.DataDir)) {
		return true
	}
	for _, m := range s.opts.Settings.Load().Workspaces {
		if m.Mode == config.ModeWrite && config.Within(real, realPath(m.Path)) {
			return true
		}
	}
	return false
}

// realPath resolves the links of the existing part of a path.
func realPath(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for rest := ""; ; {
		if found, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(found, rest)
		}
		if path == filepath.Dir(path) {
			return filepath.Join(path, rest)
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// CheckSize returns an error for a mapped folder that exceeds the limits of programs.
func CheckSize(ws Space, name string, limits sandbox.Limits) error {
	m, ok := ws.(interface{ Measure() error })
	if !ok {
		return nil
	}
	err := m.Measure()
	large, ok := errors.AsType[*workspace.TooLarge](err)
	if !ok {
		if err != nil {
			return openError(err)
		}
		return nil
	}
	names := make([]string, len(large.Names))
	for i, one := range large.Names {
		names[i] = sanitize.Line(one, 60)
	}
	return &tool.Error{
		Kind: tool.Limit,
		Message: fmt.Sprintf("workspace %s is too large: %d MiB in %d files, of at most %d MiB in %d; most of it: %s",
			name, large.Bytes>>20, large.Files, limits.Workspace>>20, limits.Inodes, sanitize.Line(strings.Join(large.Largest, ", "), 250)),
		Hint: fmt.Sprintf("the operator can leave some out: workspaces: {%s: {ignore: [%s]}}", name, strings.Join(names, ", ")),
	}
}

// maxShownNotes is the maximum number of remembered notes.
const maxShownNotes = 1000

// NewNotes returns the notes on a program without those about a mapped folder that the caller has already seen.
func (s *Workspaces) NewNotes(ctx context.Context, name string, notes []string) []string {
	if _, ok := s.Mapping(ctx, name); !ok {
		return notes
	}
	return s.notes.filterShown(strings.Join([]string{tool.Principal(ctx), tool.Session(ctx), name}, "\x00"), notes)
}

// shownNotes remembers the notes that callers have seen, so that they are not repeated with every program.
type shownNotes struct {
	mu    sync.Mutex
	notes []string
}

// filterShown removes the notes about excluded files that the caller has already seen.
func (t *shownNotes) filterShown(who string, notes []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(notes), func(note string) bool {
		if !strings.HasPrefix(note, "not in the sandbox: ") {
			return false
		}
		note = who + "\x00" + note
		if slices.Contains(t.notes, note) {
			return true
		}
		t.notes = append(t.notes[max(0, len(t.notes)-maxShownNotes):], note)
		return false
	})
}
