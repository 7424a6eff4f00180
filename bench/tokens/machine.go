package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"sallyport/bench/machine"
	"sallyport/bench/tokens/report"
	"sallyport/tools/upstreams"
)

// head is what was measured, with what and where.
func (b *bench) head(ctx context.Context, sizes []int, catalogues map[string]string) (*report.Head, error) {
	h := &report.Head{
		Format: report.Format, Date: time.Now().UTC().Format(time.DateOnly), CPU: machine.CPU(), Cores: runtime.NumCPU(),
		Kernel: machine.Kernel(), Folder: b.folder, Encodings: encodings(),
		Versions: map[string]string{}, Digests: map[string]string{}, Catalogues: catalogues,
	}
	if len(b.more) == 0 {
		h.Note = fmt.Sprintf("No catalogue of real tools in %s: only the five servers of the tasks were measured.", b.catalog)
	}
	var err error
	if h.Levels, err = levels(ctx, b.catalog); err != nil {
		return nil, err
	}
	if err := b.programs(ctx, h); err != nil {
		return nil, err
	}
	if err := errors.Join(packages(h), b.order(ctx)); err != nil {
		return nil, err
	}
	h.Servers = b.servers()
	h.Sizes, err = b.describe(ctx, sizes)
	return h, err
}

// programs notes what runs: each with its version and the digest of its file.
func (b *bench) programs(ctx context.Context, h *report.Head) error {
	for name, path := range map[string]string{"sallyport": b.sallyport, "runsc": filepath.Join(filepath.Dir(b.sallyport), "runsc"), "node": "node", "python3": "/usr/bin/python3", "git": "git"} {
		flag := "--version"
		if name == "sallyport" {
			flag = "version"
		}
		found, err := exec.LookPath(path)
		if err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
		line, err := machine.Version(ctx, found, flag)
		if err != nil {
			return err
		}
		h.Versions[name] = strings.TrimSpace(strings.TrimPrefix(line, name))
		if h.Digests[name], err = digest(found); err != nil {
			return err
		}
	}
	if commit := machine.Commit(ctx); commit != "" {
		h.Versions["commit"] = commit
	}
	return nil
}

// packages notes the npm servers, with the digests that npm has checked, and the tokenizer.
func packages(h *report.Head) error {
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	data, err := fs.ReadFile(upstreams.Files, "package-lock.json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return err
	}
	for name := range maps.Keys(upstreams.Versions()) {
		p := lock.Packages["node_modules/"+name]
		h.Versions[name], h.Digests[name] = p.Version, p.Integrity
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if strings.HasSuffix(dep.Path, "/tokenizer") {
				h.Versions[dep.Path], h.Digests[dep.Path] = dep.Version, dep.Sum
			}
		}
	}
	return nil
}
