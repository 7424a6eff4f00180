// Dist builds the packages of a release from the checkout that it is started in. Equal sources give equal files: every
// time in them is that of the commit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	root := flags.String("root", ".", "the checkout `DIR`")
	out := flags.String("out", "dist", "write the packages to `DIR`, which is emptied")
	version := flags.String("version", "", "the version `V` (default: of the tag, or of the commit and its date)")
	url := flags.String("url", "", "the `URL` of the folder from which the formula downloads the archives")
	programs := flags.String("programs", "", "package the programs in `DIR`, for this machine and fast, in place of building them: for tests")
	names := flags.String("targets", strings.Join(targetNames(), ","), "`SYSTEM/ARCHITECTURE`, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	targets, err := parseTargets(*names)
	if err != nil {
		return err
	}
	r, err := newRelease(ctx, *root, *out, *version, *url)
	if err != nil {
		return err
	}
	if *programs != "" {
		return r.repackage(ctx, *programs)
	}
	return r.build(ctx, targets)
}

// repackage makes the packages of this machine from programs that were built before, without their SBOM and provenance.
func (r *release) repackage(ctx context.Context, programs string) error {
	t := target{"linux", runtime.GOARCH}
	work, err := os.MkdirTemp("", "sallyport-dist-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r.fast, r.work = true, work
	if err := r.clean(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.binary(t, "sallyport")), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"sallyport", "runsc"} {
		data, err := os.ReadFile(filepath.Join(programs, name))
		if err == nil {
			err = os.WriteFile(r.binary(t, name), data, 0o755)
		}
		if err != nil {
			return err
		}
	}
	only := []target{t}
	return errors.Join(r.documents(ctx), r.pack(t), r.npmMain(only), r.image(only), r.formula(only), writeSums(r))
}

// build makes all packages for the targets.
func (r *release) build(ctx context.Context, targets []target) error {
	if err := r.clean(); err != nil {
		return err
	}
	if err := r.compileAll(ctx, targets); err != nil {
		return err
	}
	if err := r.documents(ctx); err != nil {
		return err
	}
	for _, t := range targets {
		if err := r.pack(t); err != nil {
			return fmt.Errorf("pack %s: %w", t, err)
		}
	}
	return r.finish(ctx, targets)
}

// pack makes the packages of one target.
func (r *release) pack(t target) error {
	steps := []func(target) error{r.archive, r.npmBinary}
	if t.system == "linux" {
		steps = append(steps, r.linuxPackages)
	}
	for _, step := range steps {
		if err := step(t); err != nil {
			return err
		}
	}
	return nil
}

// finish makes what covers all targets, then the files that describe all others.
func (r *release) finish(ctx context.Context, targets []target) error {
	for _, step := range []func([]target) error{r.npmMain, r.image, r.formula, func(ts []target) error { return writeSBOMs(ctx, r, ts) }, r.provenance} {
		if err := step(targets); err != nil {
			return err
		}
	}
	return writeSums(r)
}
