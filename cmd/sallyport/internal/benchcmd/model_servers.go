package benchcmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sallyport/bench/suite"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/tools/upstreams"
)

// requirePrograms checks that the programs are installed that the servers of the tasks need.
func (a *app) requirePrograms(_ context.Context, modes []suite.Mode) error {
	for _, need := range []struct{ name, how string }{
		{"node", "install Node.js 20 or later"},
		{"git", "install git"},
	} {
		if _, err := exec.LookPath(need.name); err != nil {
			return &tool.Error{Kind: tool.Invalid, Message: "the servers of the tasks need " + need.name + ", which is not in PATH", Hint: need.how}
		}
	}
	if err := sandbox.Platform(); err != nil && needsSandbox(modes) {
		return invalidFlag("--modes direct,search needs no sandbox", "programs cannot run here: %v", err)
	}
	return nil
}

// installServers installs the pinned servers, unless they are installed, and returns their node_modules.
func (a *app) installServers(ctx context.Context) (modules string, err error) {
	cache := a.CacheDir()
	if cache == "" {
		return "", invalidFlag("set HOME or XDG_CACHE_HOME, or give a node_modules with --servers", "no folder to install the servers of the tasks in")
	}
	files, pin, err := pinnedFiles()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "bench-servers-"+pin)
	modules = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return "", invalidFlag("install npm, or give a node_modules with --servers", "npm is not in PATH, which installs the servers of the tasks")
	}
	a.Say("installing the servers of the tasks with npm, once, in " + dir)
	return modules, npmInstall(ctx, files, dir)
}

// pinnedFiles returns the files that npm ci needs, and their digest.
func pinnedFiles() (files map[string][]byte, pin string, err error) {
	files = map[string][]byte{}
	sum := sha256.New()
	err = fs.WalkDir(upstreams.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(upstreams.Files, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(files[path]), files[path])
		return err
	})
	return files, fmt.Sprintf("%x", sum.Sum(nil)[:6]), err
}

// npmInstall installs next to dir and moves it there when it is complete. No script of any package runs.
func npmInstall(ctx context.Context, files map[string][]byte, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("install servers: %w", err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "bench-servers.new-")
	if err != nil {
		return fmt.Errorf("install servers: %w", err)
	}
	defer os.RemoveAll(fresh)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), data, 0o600); err != nil {
			return fmt.Errorf("install servers: %w", err)
		}
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--prefix", fresh, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Cancel = func() error { return npm.Process.Signal(os.Interrupt) }
	npm.WaitDelay = 10 * time.Second
	if out, err := npm.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		said := sanitize.Line(string(bytes.TrimSpace(out)), 300)
		return &tool.Error{Kind: tool.Upstream, Message: fmt.Sprintf("install servers: npm: %v: %s", err, said), Hint: "or give a node_modules that has them with --servers"}
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another process has installed it
		return fmt.Errorf("install servers: %w", err)
	}
	return nil
}

// checkServers checks that the servers have the versions that the tasks require.
func (b *modelBench) checkServers() error {
	for _, s := range b.world.Servers() {
		var found struct{ Version string }
		data, err := os.ReadFile(filepath.Join(b.world.Modules, filepath.FromSlash(s.Package), "package.json"))
		if err == nil {
			err = json.Unmarshal(data, &found)
		}
		if err != nil || found.Version != s.Version {
			has := "it has " + sanitize.Line(found.Version, 20)
			if found.Version == "" {
				has = "it has none"
			}
			return invalidFlag("it is the node_modules of npm ci in tools/upstreams; without --servers they are installed", "%s does not have %s %s: %s", b.world.Modules, s.Package, s.Version, has)
		}
		b.versions.Servers[s.Name] = s.Package + "@" + s.Version
	}
	return nil
}
