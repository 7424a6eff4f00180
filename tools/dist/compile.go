package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// fast are the packages that are compiled with inlining, besides the standard library: those in the path of a search or
// of a call. The others are smaller without.
func fast() []string {
	return []string{
		"./index/...", "./gateway/toolcall/...", "./gateway/toolsearch/...", "./sandbox/bridge/...",
		"./internal/audit/...", "./internal/journal/...", "./internal/jsontype/...", "./internal/names/...", "./internal/pii/...",
		"./internal/sanitize/...", "./internal/tokens/...", "./internal/tool/...",
		"github.com/blevesearch/bleve/v2/analysis/...", "github.com/blevesearch/bleve/v2/index/scorch/...", "github.com/blevesearch/bleve/v2/search/...", "github.com/blevesearch/bleve_index_api/...",
		"github.com/blevesearch/scorch_segment_api/...", "github.com/blevesearch/vellum/...", "github.com/RoaringBitmap/...", "github.com/klauspost/...", "github.com/minio/...",
		"go.opentelemetry.io/otel/attribute/...", "go.opentelemetry.io/otel/semconv/...", // constants: with inlining, the compiler makes them
	}
}

// smaller are the flags of the compiler that make the program smaller. The last pattern that matches a package applies.
func smaller() []string {
	flags := []string{"-gcflags=all=-l", "-gcflags=std="}
	for _, slow := range []string{"crypto/tls", "crypto/x509", "encoding/xml", "html/...", "net/...", "runtime/pprof", "text/..."} {
		flags = append(flags, "-gcflags="+slow+"=-l")
	}
	for _, pattern := range fast() {
		flags = append(flags, "-gcflags="+pattern+"=")
	}
	return flags
}

// compileAll builds the programs of all targets.
func (r *release) compileAll(ctx context.Context, targets []target) error {
	slim, err := r.slim(ctx)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := r.compileSallyport(ctx, t, slim); err != nil {
			return err
		}
		if t.system != "linux" {
			continue
		}
		if err := r.compileRunsc(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) compileSallyport(ctx context.Context, t target, slim []string) error {
	pkg := r.module + "/internal/build."
	// Functions begin at multiples of 16 bytes, as on arm64; the linker's 32 for amd64 costs 0.7 MB.
	facts := fmt.Sprintf("-s -w -funcalign=16 -X %sversion=%s -X %scommit=%s -X %sdate=%s", pkg, r.version, pkg, r.commit, pkg, r.date.Format(time.DateOnly))
	args := append(append(smaller(), slim...), "-ldflags", facts, "-o", r.binary(t, "sallyport"), "./cmd/sallyport")
	return r.compile(ctx, r.root, t, args...)
}

func (r *release) compileRunsc(ctx context.Context, t target) error {
	facts := "-s -w -X gvisor.dev/gvisor/runsc/version.version=" + r.runsc
	return r.compile(ctx, filepath.Join(r.root, "tools", "runsc"), t, "-ldflags", facts, "-o", r.binary(t, "runsc"), ".")
}

func (r *release) compile(ctx context.Context, dir string, t target, args ...string) error {
	start := time.Now()
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-buildvcs=false"}, args...)...)
	cmd.Dir = dir
	// GOAMD64 and the like would make other files of the same sources.
	cmd.Env = append(os.Environ(), "GOOS="+t.system, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", t, err, out)
	}
	say(start, "built %s for %s", strings.TrimSuffix(filepath.Base(args[len(args)-2]), ".exe"), t)
	return nil
}

// binary returns the path of a program of a target.
func (r *release) binary(t target, name string) string {
	if t.system == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.work, t.system+"-"+t.arch, name)
}

// documents has the program of this machine write its manual pages and completions.
func (r *release) documents(ctx context.Context) error {
	program := r.binary(target{runtime.GOOS, runtime.GOARCH}, "sallyport")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("manual pages and completions need the program of this machine: %w", err)
	}
	if _, err := r.runProgram(ctx, program, "man", filepath.Join(r.work, "man")); err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := r.runProgram(ctx, program, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.work, shell), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) runProgram(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", r.date.Unix()))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run sallyport %s: %w", args[0], err)
	}
	return out, nil
}
