package isolation

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/upstream/process"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/checkpoint"
)

const (
	// recordLimit bounds the time until a program that is being recorded answers the first request.
	recordLimit = 20 * time.Second
	// probeID is the ID of that request. It is one that changes no state: clients ask it before they initialize.
	probeID = "sallyport-checkpoint"
	probe   = `{"jsonrpc":"2.0","id":"` + probeID + `","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"sallyport","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
	// maxBanner bounds what a program may print before it answers.
	maxBanner = 64 << 10
	// certainAge is the age at which the time of a file's last change is certain to change with the next one.
	certainAge = 50 * time.Millisecond
)

// freshRandom configures OpenSSL to take random bytes from the processor.
//
//go:embed openssl.cnf
var freshRandom []byte

// start is one start of an upstream: from its checkpoint, or from nothing, or to make a checkpoint.
type start struct {
	launcher *Launcher
	up       config.Upstream
	streams  process.Streams
	service  sandbox.Service

	digest   string
	restored bool
	half     string // the unfinished checkpoint, if one is being made
	began    time.Time
	stdin    *os.File // our ends of the pipes of a program that is being recorded
	stdout   *os.File
	copied   sync.WaitGroup
}

// startService starts the sandbox of a service, which build makes again for each attempt.
func (l *Launcher) startService(ctx context.Context, up config.Upstream, streams process.Streams, build func() (sandbox.Service, error)) (*sandbox.Server, error) {
	mayRecord := true
	for {
		service, err := build()
		if err != nil {
			return nil, err
		}
		s := &start{launcher: l, up: up, streams: streams, service: service, began: time.Now()}
		if l.checkpointed(up) {
			s.service.ThirdParty.Plan = func(digest string) sandbox.Plan { return s.plan(digest, mayRecord) }
		}
		if l.opts.Profile != nil {
			s.service.ThirdParty.Plan = func(string) sandbox.Plan { return sandbox.Plan{Trace: l.opts.Profile.trace()} }
		}
		server, err := l.opts.Sandboxes.Serve(s.service)
		switch {
		case err != nil:
			return nil, fmt.Errorf("its sandbox did not start: %w", errors.Join(err, s.discard()))
		case s.half == "":
			if s.restored {
				l.work.Go(func() { s.watchRestored(server) })
			}
			return server, nil
		}
		mayRecord = false
		s.record(ctx, server)
	}
}

// checkpointed reports whether an upstream starts from checkpoints. With headers it does not: it may have read the certificate authority of
// its sandbox, which is another one at each start, and a key that outlives the sandbox would have to be kept on disk.
func (l *Launcher) checkpointed(up config.Upstream) bool {
	return l.checkpoints != nil && up.Isolate.Checkpoint && !up.Isolate.PutsHeaders()
}

// plan chooses how the program starts.
func (s *start) plan(digest string, mayRecord bool) sandbox.Plan {
	s.digest = digest
	image, refused := s.launcher.checkpoints.Find(digest)
	switch {
	case image != "":
		s.restored = true
		return sandbox.Plan{Image: image}
	case refused != "":
		s.streams.Log("sallyport: it starts without a checkpoint: " + refused)
		return sandbox.Plan{}
	case !mayRecord:
		return sandbox.Plan{}
	}
	half, trace, err := s.launcher.checkpoints.Begin()
	if err == nil {
		err = s.ownStreams()
	}
	if err != nil {
		s.launcher.opts.Logger.Warn("no checkpoint is made", "upstream", s.up.ID, "error", err)
		return sandbox.Plan{}
	}
	s.half = half
	return sandbox.Plan{Trace: trace}
}

// ownStreams replaces the streams of the program by pipes of this start. What it prints to stderr is passed on.
func (s *start) ownStreams() (err error) {
	p := s.service.ThirdParty
	var stderr *os.File
	for _, pipe := range []struct{ read, write **os.File }{{&p.Stdin, &s.stdin}, {&s.stdout, &p.Stdout}, {&stderr, &p.Stderr}} {
		if *pipe.read, *pipe.write, err = os.Pipe(); err != nil {
			return fmt.Errorf("make pipe: %w", err)
		}
	}
	s.copied.Go(func() {
		_, _ = io.Copy(s.streams.Stderr, stderr)
		_ = stderr.Close()
	})
	return nil
}

// discard removes an unfinished checkpoint and closes our ends of its pipes.
func (s *start) discard() error {
	if s.half == "" {
		return nil
	}
	_, _ = s.stdin.Close(), s.stdout.Close()
	s.copied.Wait()
	return os.RemoveAll(s.half)
}

// record makes a checkpoint of the program that answers its first request, and ends it. If none can be made, the reason is kept, unless
// another attempt may succeed.
func (s *start) record(ctx context.Context, server *sandbox.Server) {
	defer func() { _ = s.discard() }()
	limit := recordLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reason, err := s.checkpoint(ctx, server)
	_ = server.Close()
	record := checkpoint.Record{Owner: s.owner()}
	if err == nil {
		record.Inputs, record.Refused, err = s.inputs()
	}
	record.Refused = cmp.Or(reason, record.Refused)
	switch {
	case err != nil:
		s.launcher.opts.Logger.Info("no checkpoint is made", "upstream", s.up.ID, "error", err)
		return
	case record.Refused == "":
		err = s.launcher.checkpoints.Commit(s.digest, s.half, record)
	default:
		err = s.launcher.checkpoints.Refuse(s.digest, record)
	}
	if err != nil {
		s.launcher.opts.Logger.Warn("no checkpoint is kept", "upstream", s.up.ID, "error", err)
	}
}

// owner identifies the upstream among those of all gateways of this user.
func (s *start) owner() string {
	return s.up.ID + " " + s.launcher.opts.DataDir
}

// checkpoint waits until the program answers and saves its state. It returns a reason if there can be none.
func (s *start) checkpoint(ctx context.Context, server *sandbox.Server) (reason string, err error) {
	answered := make(chan error, 1)
	go func() { answered <- s.probe() }()
	select {
	case err := <-answered:
		if err != nil {
			return "it does not answer server/discover before it is initialized", nil //nolint:nilerr // the error is the reason
		}
	case <-server.Done():
		return "it ended before it was initialized", nil
	case <-ctx.Done():
		return "", fmt.Errorf("wait for its answer: %w", ctx.Err())
	}
	return "", server.Checkpoint(ctx, s.half)
}

// probe sends the first request and reads up to its answer.
func (s *start) probe() error {
	if _, err := s.stdin.WriteString(probe); err != nil {
		return err
	}
	lines := bufio.NewScanner(io.LimitReader(s.stdout, maxBanner))
	lines.Buffer(nil, maxBanner)
	for lines.Scan() {
		var answer struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(lines.Bytes(), &answer) == nil && string(answer.ID) == `"`+probeID+`"` {
			return nil
		}
	}
	return errors.Join(io.ErrUnexpectedEOF, lines.Err())
}

// inputs returns what the program had looked at on this machine, or why its state cannot be used again.
func (s *start) inputs() (inputs map[string]string, reason string, err error) {
	p := s.service.ThirdParty
	cwd := p.Cwd
	if cwd == "" {
		cwd = sandbox.HomeDir
	}
	used, err := checkpoint.ReadTrace(filepath.Join(s.half, "trace"), cwd)
	if err != nil {
		return nil, "", err
	}
	home := map[string]string{sandbox.HomeDir: p.Home}
	inputs, reason = map[string]string{}, cmp.Or(unusable(used, p.Writable, home), repeatsRandom(s.service, used))
	system := systemFolders
	if s.service.Environment.Root != "" { // of which the digest is known
		system = nil
	}
	for _, path := range append(used.Looked, s.service.Args[0]) {
		at, ok := hostPath(path, p.Writable, s.service.Mounts, home, system)
		if !ok {
			continue
		}
		inputs[at] = checkpoint.State(at, slices.Contains(used.Opened, path))
		if info, err := os.Stat(at); err == nil && reason == "" && !info.IsDir() && info.ModTime().After(s.began.Add(-certainAge)) {
			return nil, "", fmt.Errorf("%s has just changed", at)
		}
	}
	return inputs, reason, nil
}

// systemFolders are folders of this machine that sandboxes see.
var systemFolders = map[string]string{"/usr": "/usr", "/bin": "/bin", "/lib": "/lib", "/lib64": "/lib64"}

// unusable says why the state of a program cannot be used again, "" if it can. It may change what is in the mounts.
func unusable(used checkpoint.Activity, mounts ...map[string]string) string {
	if len(used.Network) > 0 {
		return "it uses the network before it is initialized (" + sanitize.Line(used.Network[0], 80) + ")"
	}
	for _, path := range used.Written {
		if at, ok := hostPath(path, mounts...); ok {
			return "it changes " + sanitize.Line(at, 100) + " before it is initialized"
		}
	}
	return ""
}

// hostPath returns the path on this machine of one in the sandbox, false if it is none of those.
func hostPath(path string, mounts ...map[string]string) (string, bool) {
	for _, all := range mounts {
		for at, source := range all {
			if source != "" && within(path, at) {
				return filepath.Join(source, strings.TrimPrefix(path, at)), true
			}
		}
	}
	return "", false
}

// restoreLimit is the time in which a program that ends at once may have an invalid checkpoint.
const restoreLimit = 5 * time.Second

// watchRestored removes the checkpoint of a program that ends soon after its start. The next start is one from nothing.
func (s *start) watchRestored(server *sandbox.Server) {
	select {
	case <-server.Done():
	case <-time.After(restoreLimit):
		return
	case <-s.launcher.quit.Done():
		return
	}
	if status, exited, _ := server.Ended(); exited && status != 0 {
		s.streams.Log("sallyport: its checkpoint is removed, because it ended soon after its start")
		s.launcher.checkpoints.Remove(s.digest)
	}
}

// sharedOpenSSL matches OpenSSL's library of random numbers.
var sharedOpenSSL = regexp.MustCompile(`/libcrypto\.so[^/]*$`)

// staticOpenSSL matches programs that have a library of random numbers in them.
var staticOpenSSL = regexp.MustCompile(`/(node|nodejs|bun|deno)$`)

// repeatsRandom says why a program would get the same secret random numbers after each start from one checkpoint, "" if it would not.
// OpenSSL's generator is in the memory of the program. Node.js can do without it, see addFreshRandom.
func repeatsRandom(of sandbox.Service, used checkpoint.Activity) string {
	if of.Interpreter == sandbox.Node {
		if !hasRandom() {
			return "this processor has no instruction for the random numbers of Node.js"
		}
		return ""
	}
	if of.Environment.Root != "" && of.Environment.Node != "" { // the start of a script of Node.js is not in the trace
		return "its image has Node.js, whose random numbers would be the same after each start"
	}
	for _, path := range append(used.Looked, "/"+of.Args[0]) {
		_, missing := slices.BinarySearch(used.Missing, path)
		switch {
		case missing:
		case sharedOpenSSL.MatchString(path):
			return "it has loaded OpenSSL, whose random numbers would be the same after each start"
		case of.Environment.Root != "" && staticOpenSSL.MatchString(path):
			return "it has run " + filepath.Base(path) + ", whose random numbers would be the same after each start"
		}
	}
	return ""
}

func hasRandom() bool {
	return runtime.GOARCH == "amd64" && slices.Contains(strings.Fields(checkpoint.CPUFeatures()), "rdrand")
}

// addFreshRandom has Node.js take random bytes from the processor, in place of a generator with a state in the checkpoint.
func addFreshRandom(s *sandbox.Service) {
	if s.Interpreter != sandbox.Node || !hasRandom() {
		return
	}
	if s.Files == nil {
		s.Files = map[string][]byte{}
	}
	s.Files["openssl.cnf"] = freshRandom
	s.Args = append([]string{"--openssl-config=" + ownDir + "/openssl.cnf"}, s.Args...)
}
