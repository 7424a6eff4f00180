package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is one version of the project, and where its packages are written.
type release struct {
	root, out, work string
	version, commit string
	date            time.Time // of the commit
	home, url       string
	module          string      // the path of the project's module
	runsc           string      // the pinned version of gVisor
	fast            bool        // packages of a test: hardly compressed
	replaced        [][3]string // modules with patches: the folder of the copy, the name, the version
}

// target is a system and an architecture in Go's names.
type target struct{ system, arch string }

func (t target) String() string { return t.system + "/" + t.arch }

// all are the targets of a release.
func all() []target {
	return []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}
}

func targetNames() (names []string) {
	for _, t := range all() {
		names = append(names, t.String())
	}
	return names
}

func parseTargets(names string) (list []target, err error) {
	for name := range strings.SplitSeq(names, ",") {
		system, arch, _ := strings.Cut(name, "/")
		t := target{system, arch}
		if !slices.Contains(all(), t) {
			return nil, fmt.Errorf("unknown target %q: use %s", name, strings.Join(targetNames(), ", "))
		}
		list = append(list, t)
	}
	return list, nil
}

func newRelease(ctx context.Context, root, out, version, url string) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	r := &release{root: root, out: out, work: filepath.Join(root, ".cache", "dist")}
	if err := r.readCommit(ctx); err != nil {
		return nil, err
	}
	if err := r.readFacts(); err != nil {
		return nil, err
	}
	r.version = cmp.Or(version, r.tag(ctx))
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(r.version) {
		return nil, fmt.Errorf("version %q is not like 1.2.3 or 1.2.3-rc.1", r.version)
	}
	// Without a home there is no address: example.com is reserved for examples.
	r.url = cmp.Or(url, cmp.Or(r.home, "https://example.com/sallyport")+"/releases/download/v"+r.version)
	return r, nil
}

// readCommit reads the commit and its time. SOURCE_DATE_EPOCH replaces the time.
func (r *release) readCommit(ctx context.Context) error {
	text, err := r.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, at, _ := strings.Cut(text, " ")
	seconds, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), at), 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	r.commit, r.date = commit, time.Unix(seconds, 0).UTC()
	return nil
}

// tag returns the version of the tag on the commit, or one that orders by time.
func (r *release) tag(ctx context.Context) string {
	if tag, err := r.git(ctx, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
		return strings.TrimPrefix(tag, "v")
	}
	return fmt.Sprintf("0.0.0-%s.g%.12s", r.date.Format("20060102150405"), r.commit)
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)
	homeLine   = regexp.MustCompile(`(?m)^\tHome = "(.*)"$`)
	runscLine  = regexp.MustCompile(`(?m)^\tRunsc = "(.*)"$`)
)

// readFacts reads the module path, the home of the project and the pin of runsc from the two files that have them.
func (r *release) readFacts() error {
	mod, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if err != nil {
		return err
	}
	module := moduleLine.FindSubmatch(mod)
	if module == nil {
		return errors.New("go.mod has no module path")
	}
	source, err := os.ReadFile(filepath.Join(r.root, "internal", "build", "build.go"))
	if err != nil {
		return err
	}
	home, runsc := homeLine.FindSubmatch(source), runscLine.FindSubmatch(source)
	if home == nil || runsc == nil {
		return errors.New("internal/build/build.go has no Home or no Runsc")
	}
	r.module, r.home, r.runsc = string(module[1]), string(home[1]), string(runsc[1])
	return nil
}

// clean empties the folders that the release is written to.
func (r *release) clean() error {
	for _, dir := range []string{r.out, r.work} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.root}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// say tells of a finished step and its time.
func say(start time.Time, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "==> %s %.0f s\n", fmt.Sprintf(format, args...), time.Since(start).Seconds())
}
