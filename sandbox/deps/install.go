package deps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sallyport/internal/filelock"
	"sallyport/sandbox"
)

// Installer installs packages on this machine. It is safe for concurrent use, also
// by several processes on the same folder.
type Installer struct {
	host Host
	dir  string
	opts Options
	log  *slog.Logger
}

// New makes an installer that keeps locks and layers in dir, which it makes.
func New(host Host, dir string, opts *Options) (*Installer, error) {
	i := &Installer{host: host}
	if opts != nil {
		i.opts = *opts
	}
	i.opts.defaults()
	i.log = i.opts.Logger
	var err error
	if i.dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("open packages: %w", err)
	}
	for _, name := range []string{"requests", layerFolder, "busy", "tmp"} {
		if err := os.MkdirAll(filepath.Join(i.dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("open packages: %w", err)
		}
	}
	i.sweep()
	return i, nil
}

func (o *Options) defaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Bytes == 0 {
		o.Bytes = 1 << 30
	}
	if o.Entries == 0 {
		o.Entries = 100_000
	}
	if o.Memory == 0 {
		o.Memory = 2 << 30
	}
	o.Memory = max(o.Memory, 2*serviceOverhead)
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.Keep == 0 {
		o.Keep = 30 * 24 * time.Hour
	}
}

// Install returns the layer of a request, and makes it if it does not exist yet. For
// concurrent equal requests it is made once. The texts of errors that wrap ErrRefused,
// ErrNotFound, ErrUnsafe or ErrLimit may be shown to a model.
func (i *Installer) Install(ctx context.Context, request Request) (Layer, error) {
	layer, err := i.install(ctx, request, false)
	if err != nil {
		return Layer{}, fmt.Errorf("install packages: %w", err)
	}
	return layer, nil
}

// Lock resolves a request again, installs it, and saves and returns the new lock. Install
// then returns that layer.
func (i *Installer) Lock(ctx context.Context, request Request) (Lock, error) {
	request.Lock = nil
	layer, err := i.install(ctx, request, true)
	if err != nil {
		return Lock{}, fmt.Errorf("lock packages: %w", err)
	}
	return layer.Lock, nil
}

// Find returns the layer of a request if it exists, without installing anything.
func (i *Installer) Find(request Request) (Layer, bool) {
	all, err := request.check()
	if err != nil {
		return Layer{}, false
	}
	return i.find(i.key(request, all))
}

func (i *Installer) install(ctx context.Context, request Request, anew bool) (Layer, error) {
	all, err := request.check()
	if err != nil {
		return Layer{}, err
	}
	key := i.key(request, all)
	if layer, ok := i.find(key); ok && !anew {
		return layer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, i.opts.Timeout)
	defer cancel()
	unlock, err := i.lockKey(ctx, key)
	if err != nil {
		return Layer{}, err
	}
	defer unlock()
	if layer, ok := i.find(key); ok && !anew { // another caller has made it meanwhile
		return layer, nil
	}
	lock := request.Lock
	if kept, ok := i.loadLock(key); lock == nil && ok && !anew {
		lock = &kept
	}
	start := time.Now()
	layer, err := i.makeLayer(ctx, request, all, lock)
	if err == nil {
		err = i.saveLock(key, layer.Lock)
	}
	if err != nil {
		return Layer{}, err
	}
	i.log.Info("packages installed", "interpreter", request.Interpreter, "packages", len(layer.Packages), "layer", layer.Digest, "duration", time.Since(start))
	i.sweep()
	return layer, nil
}

// check validates the request and returns its parsed requirements.
func (r Request) check() ([]parsedRequirement, error) {
	if r.Interpreter != sandbox.Python && r.Interpreter != sandbox.Node {
		return nil, fmt.Errorf("%w: invalid interpreter %.20q", ErrRefused, r.Interpreter)
	}
	all, err := parseRequirements(r.Interpreter, r.Packages)
	if err != nil || r.Lock == nil {
		return all, err
	}
	if err := r.Lock.validate(); err != nil {
		return nil, err
	}
	if r.Lock.Interpreter != r.Interpreter || !slices.Equal(r.Lock.Requirements, requirementTexts(all)) {
		return nil, fmt.Errorf("%w: the lock is for other packages: %s; lock again", ErrRefused, strings.Join(r.Lock.Requirements, ", "))
	}
	return all, nil
}

func requirementTexts(all []parsedRequirement) []string {
	out := make([]string, len(all))
	for n, w := range all {
		out[n] = w.text
	}
	return out
}

// key identifies a request: equal keys have the same lock and layer.
func (i *Installer) key(request Request, all []parsedRequirement) string {
	program := i.host.HostInterpreter(request.Interpreter)
	if request.Base != "" {
		if real, err := filepath.EvalSymlinks(filepath.Join(request.Base, "bin", "python")); err == nil {
			program = real
		}
	}
	identity := program
	if info, err := os.Stat(program); err == nil {
		identity = fmt.Sprint(program, info.Size(), info.ModTime().UnixNano())
	}
	var lock []byte
	if request.Lock != nil {
		lock = request.Lock.JSON()
	}
	parts := []any{layoutVersion, request.Interpreter, requirementTexts(all), stripCredentials(request.Index), request.Source, identity, lock}
	if env := request.Environment; env.Root+env.Python != "" && request.Interpreter == sandbox.Python {
		parts = append(parts, env.Root, env.Digest, env.Python)
	}
	data, _ := json.Marshal(parts) // of plain values
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// lockKey waits for the lock of the key, in this process and others.
func (i *Installer) lockKey(ctx context.Context, key string) (unlock func(), err error) {
	dir := filepath.Join(i.dir, "busy", key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for {
		unlock, err := filelock.Dir(dir, 0)
		if !errors.Is(err, filelock.ErrBusy) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: another installation of the same packages takes too long: %w", ErrLimit, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// makeLayer fetches the files of a request and makes its layer.
func (i *Installer) makeLayer(ctx context.Context, request Request, all []parsedRequirement, lock *Lock) (Layer, error) {
	staging, err := os.MkdirTemp(filepath.Join(i.dir, "tmp"), "install-")
	if err != nil {
		return Layer{}, err
	}
	defer removeTree(staging)
	files := filepath.Join(staging, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return Layer{}, err
	}
	o := request.driverRequest(all, lock)
	o.Node = i.host.GuestInterpreter(sandbox.Node)
	got, err := i.fetch(ctx, request, o, files)
	if err != nil {
		return Layer{}, err
	}
	if lock == nil {
		lock, err = got.makeLock(request, all)
	} else {
		err = got.verify(*lock)
	}
	if err != nil {
		return Layer{}, err
	}
	return i.build(ctx, request, *lock, got, staging)
}

// makeLock returns the lock of a resolved request.
func (f fetchResult) makeLock(request Request, all []parsedRequirement) (*Lock, error) {
	lock := &Lock{Version: 1, Interpreter: request.Interpreter, Index: stripCredentials(request.Index), Requirements: requirementTexts(all)}
	var err error
	if request.Interpreter == sandbox.Node {
		lock.NPM = f.report.NPM
		lock.Files, err = npmFiles(f.report.NPM)
	} else {
		lock.Target = f.report.Target
		lock.Files, err = f.pythonFiles()
	}
	if err == nil {
		err = lock.validate()
	}
	if err == nil {
		err = f.verify(*lock)
	}
	return lock, err
}

// pythonFiles returns the files that pip downloaded, from their names.
func (f fetchResult) pythonFiles() ([]File, error) {
	var files []File
	for name, file := range f.files {
		if strings.HasPrefix(name, "built/") {
			continue
		}
		parts, source := wheelName.FindStringSubmatch(name), false
		if parts == nil {
			parts, source = sourceName.FindStringSubmatch(name), true
		}
		if parts == nil {
			return nil, fmt.Errorf("%w: the index has a file %.100q, which is not a wheel", ErrUnsafe, name)
		}
		files = append(files, File{Name: canonical(parts[1]), Version: parts[2], Hash: "sha256:" + file.sha256, Source: source})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for n := range files[:max(0, len(files)-1)] {
		if files[n].Name == files[n+1].Name {
			return nil, fmt.Errorf("%w: there are two files of %s", ErrUnsafe, files[n].Name)
		}
	}
	return files, nil
}

// verify checks that every file of the lock was fetched, with its hash, and for the same interpreter.
func (f fetchResult) verify(lock Lock) error {
	if lock.Interpreter == sandbox.Python && lock.Target != f.report.Target {
		return fmt.Errorf("%w: the lock is for %s, and this Python is %.80q; lock again", ErrRefused, lock.Target, f.report.Target)
	}
	by := f.byHash()
	for _, file := range lock.Files {
		if _, ok := by[file.Hash]; !ok && !file.Optional {
			return fmt.Errorf("%w: no file of %s %s has the hash of the lock", ErrUnsafe, file.Name, file.Version)
		}
	}
	return nil
}

func (f fetchResult) byHash() map[string]download {
	by := map[string]download{}
	for _, file := range f.files {
		by["sha256:"+file.sha256], by["sha512:"+file.sha512] = file, file
	}
	return by
}

// target returns the system or interpreter that a layer is for; it is part of the layer's digest.
func (l Lock) target() string {
	if l.Interpreter == sandbox.Node { // packages for other systems are left out
		return runtime.GOOS + "-" + runtime.GOARCH
	}
	return l.Target
}
