package executor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/codegen"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/typecheck"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

const (
	// maxCheckWait is how long the result of a failed program waits for its type check, and
	// minCheckTime the minimum time for a check that begins then.
	maxCheckWait = 150 * time.Millisecond
	minCheckTime = 350 * time.Millisecond
	// checkDelay is when the check of a program begins that is still running. Most have ended by
	// then, and the check of a successful one would only slow down it and the next one.
	checkDelay = 50 * time.Millisecond
	// maxCertain is the maximum number of type errors that are reported for a program that succeeded.
	maxCertain = 1
	// maxCheckers bounds the checkers. A further principal gets the one that was not used for the longest time, at least
	// minCheckerIdle; without such a one its programs are not checked.
	maxCheckers    = 8
	minCheckerIdle = time.Minute
)

// checks has a type checker for each language, principal and endpoint: principals never share a
// sandbox. Without an installed checker, programs are not checked.
type checks struct {
	sandboxes *Sandboxes
	settings  func() config.Sandbox
	log       *slog.Logger

	mu       sync.Mutex
	checkers map[checkerKey]*keptChecker
	closing  sync.WaitGroup    // of checkers that were replaced
	files    map[string][]byte // what the host has at /servers
	started  int
	ended    bool
}

// keptChecker is the checker of one principal, nil if none is installed.
type keptChecker struct {
	*typecheck.Checker
	used time.Time
}

type checkerKey struct {
	principal   string
	endpoint    string
	interpreter sandbox.Interpreter
}

// check is the check of one program. It begins when the program fails, or after checkDelay. A nil check finds nothing.
type check struct {
	begin func() *typecheck.Check // once
	timer *time.Timer
}

// begin schedules the check of a program, concurrently with its run. It does not block. It returns nil without a checker.
func (c *checks) begin(ctx context.Context, interpreter sandbox.Interpreter, code string) *check {
	checker := c.checker(ctx, interpreter)
	if checker == nil {
		return nil
	}
	begin := sync.OnceValue(func() *typecheck.Check { return checker.Check(code) })
	return &check{begin: begin, timer: time.AfterFunc(checkDelay, func() { begin() })}
}

// drop discards the result. It still starts the checker, to keep it warm.
func (k *check) drop() {
	if k != nil {
		k.timer.Stop()
		k.begin().Drop()
	}
}

// warnings waits for the warnings, up to maxCheckWait or minCheckTime.
func (k *check) warnings(ctx context.Context) []typecheck.Warning {
	if k == nil {
		return nil
	}
	patience := maxCheckWait
	if k.timer.Stop() { // it begins now
		patience = minCheckTime
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return k.begin().Warnings(ctx)
}

// ready returns the warnings that are already found, without waiting.
func (k *check) ready() []typecheck.Warning {
	if k == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if k.timer.Stop() { // it has not begun
		return nil
	}
	return slices.Clone(k.begin().Warnings(ctx))
}

// checker returns the checker of the caller's principal, nil if there is none.
func (c *checks) checker(ctx context.Context, interpreter sandbox.Interpreter) *typecheck.Checker {
	settings := c.settings()
	if !settings.Typecheck {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	key := checkerKey{tool.Principal(ctx), tool.Endpoint(ctx), interpreter}
	kept := c.checkers[key]
	if kept == nil && c.makeRoom() {
		kept = &keptChecker{Checker: c.newChecker(interpreter, settings)}
		c.checkers[key] = kept
	}
	if kept == nil {
		return nil
	}
	kept.used = time.Now()
	return kept.Checker
}

// makeRoom reports whether there may be one more checker. It closes one that is not used, if there are too many. It is called with mu held.
func (c *checks) makeRoom() bool {
	if len(c.checkers) < maxCheckers {
		return true
	}
	var oldest checkerKey
	for key, kept := range c.checkers {
		if first := c.checkers[oldest]; first == nil || kept.used.Before(first.used) {
			oldest = key
		}
	}
	kept := c.checkers[oldest]
	if time.Since(kept.used) < minCheckerIdle {
		return false
	}
	delete(c.checkers, oldest)
	c.closing.Go(kept.Close)
	return true
}

// missing reports whether no checker of a language was found for the caller.
func (c *checks) missing(ctx context.Context, interpreter sandbox.Interpreter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.checkers[checkerKey{tool.Principal(ctx), tool.Endpoint(ctx), interpreter}]
	return kept != nil && kept.Checker == nil
}

func (c *checks) newChecker(interpreter sandbox.Interpreter, settings config.Sandbox) *typecheck.Checker {
	language, path := typecheck.Python, settings.Pyright
	if interpreter == sandbox.Node {
		language, path = typecheck.TypeScript, settings.Tsc
	}
	if settings.Remote != "" {
		return c.remoteChecker(language)
	}
	service, err := FindChecker(language, path)
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, typecheck.ErrNotFound) {
			level = slog.LevelDebug
		}
		c.log.Log(context.Background(), level, "programs run without a type checker", "language", language, "error", err)
		return nil
	}
	return typecheck.New(language, func(context.Context) (io.ReadWriteCloser, error) { return c.serve(service) }, &typecheck.Options{Logger: c.log})
}

func (c *checks) serve(service sandbox.Service) (io.ReadWriteCloser, error) {
	c.mu.Lock()
	c.started++
	service.ID = fmt.Sprintf("check-%d", c.started)
	c.mu.Unlock()
	return c.sandboxes.Serve(service)
}

// setFiles is called with the files that the host has published.
func (c *checks) setFiles(files map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.checkers) > 0 && c.files != nil {
		changes := typecheck.Changes(c.files, files)
		for _, checker := range c.checkers {
			checker.NotifyChanges(changes)
		}
	}
	c.files = files
}

func (c *checks) close() {
	c.mu.Lock()
	c.ended = true
	checkers := c.checkers
	c.mu.Unlock()
	for _, checker := range checkers {
		checker.Close()
	}
	c.closing.Wait()
}

// programWarnings returns the type warnings of a program: all of one that failed, and those of one that succeeded that
// are certain and already found, for which nothing waits; nil for one that was stopped.
// known says that its session had earlier programs, whose names the checker does not know.
func programWarnings(ctx context.Context, check *check, outcome sandbox.Outcome, known bool) []typecheck.Warning {
	fault := outcome.Fault
	if fault == nil {
		found := check.ready()
		check.drop()
		found = slices.DeleteFunc(found, func(w typecheck.Warning) bool { return !w.Certain })
		if outcome.Status != sandbox.OK || known {
			return nil
		}
		return found
	}
	list := check.warnings(ctx)
	if known {
		list = withoutUndefined(list)
	}
	return relevant(list, fault)
}

// relevant removes warnings that repeat the fault, and sorts the others by their distance from its lines.
func relevant(list []typecheck.Warning, fault *bridge.Fault) []typecheck.Warning {
	distance := func(w typecheck.Warning) int {
		nearest := 1 << 30
		for _, at := range fault.Lines {
			if at.File != "" {
				continue
			}
			nearest = min(nearest, max(at.Line-w.Line, w.Line-at.Line))
		}
		return nearest
	}
	list = slices.DeleteFunc(slices.Clone(list), func(w typecheck.Warning) bool {
		return (len(fault.Lines) == 0 || distance(w) == 0) && sameMistake(w.Message, fault.Message+" "+fault.Hint)
	})
	slices.SortStableFunc(list, func(a, b typecheck.Warning) int { return cmp.Compare(distance(a), distance(b)) })
	return list[:min(len(list), execution.MaxWarnings)]
}

// quotedName matches a name that a warning is about.
var quotedName = regexp.MustCompile(`["'](\w+)["']`)

// sameMistake guesses whether warning and fault are about the same mistake: the fault contains a name of the warning.
func sameMistake(warning, fault string) bool {
	for _, name := range quotedName.FindAllStringSubmatch(warning, -1) {
		if regexp.MustCompile(`\b` + name[1] + `\b`).MatchString(fault) {
			return true
		}
	}
	return false
}

// absentMember matches a warning about a member that a type lacks.
var absentMember = regexp.MustCompile(`does not exist on type '(\w+)(?:\[\])?'(.*)`)

// certain returns the first warning of a program that succeeded. A type that lacks a member must be one that a called tool
// declares: those that were observed, and those of node, may have more members than the checker knows.
func (ex *Executor) certain(list []typecheck.Warning, calls *toolcall.List) []typecheck.Warning {
	for i, w := range list {
		if found := absentMember.FindStringSubmatch(w.Message); found == nil || ex.declared(found[1], strings.Contains(found[2], "Did you mean"), calls) {
			return list[i : i+maxCertain]
		}
	}
	return nil
}

// declared reports whether a called tool has a result of that type, in its definition or, if observed is set, in earlier results.
func (ex *Executor) declared(name string, observed bool, calls *toolcall.List) bool {
	snapshot := ex.opts.Catalog.Snapshot()
	made, _ := calls.All()
	return slices.ContainsFunc(made, func(c toolcall.RecordedCall) bool {
		file, _ := snapshot.File(c.Tool.Upstream + "/" + c.Tool.Name + ".ts")
		return bytes.Contains(file, []byte("interface "+name+" {")) && (observed || !bytes.Contains(file, []byte(codegen.ObservedNote)))
	})
}
