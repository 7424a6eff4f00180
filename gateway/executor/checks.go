package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/gateway/execution"
	"sallyport/gateway/typecheck"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

const (
	// checkPatience is what a failed program's end may be held up for what its types say, and
	// checkTime what a check gets at least, from its begin.
	checkPatience = 150 * time.Millisecond
	checkTime     = 350 * time.Millisecond
	// checkDelay is after how long a program's check begins that has not ended yet. Most have, and
	// the check of one that did well would only slow down it and the next one.
	checkDelay = 50 * time.Millisecond
	// maxCheckers bounds checkers in memory; programs of principals beyond that are not checked.
	maxCheckers = 8
)

// checks has a type checker for each language that programs came in, and for each principal: two never
// share a sandbox. A machine without a checker has none, and that is all.
type checks struct {
	sandboxes *Sandboxes
	settings  func() config.Sandbox
	log       *slog.Logger

	mu       sync.Mutex
	checkers map[checkerKey]*typecheck.Checker // nil where there is none
	shown    map[string][]byte                 // what the host shows at /servers
	started  int
	ended    bool
}

type checkerKey struct {
	principal   string
	interpreter sandbox.Interpreter
}

// check is that of one program. It begins when the program fails, or runs for long. A nil one finds nothing.
type check struct {
	begin func() *typecheck.Check // once
	timer *time.Timer
}

// begin starts the check of a program, concurrently with its run. It is quick, and nil without a checker.
func (c *checks) begin(ctx context.Context, interpreter sandbox.Interpreter, code string) *check {
	checker := c.checker(ctx, interpreter)
	if checker == nil {
		return nil
	}
	begin := sync.OnceValue(func() *typecheck.Check { return checker.Check(code) })
	return &check{begin: begin, timer: time.AfterFunc(checkDelay, func() { begin() })}
}

// drop says that the result is not needed. It keeps the checker warm.
func (k *check) drop() {
	if k != nil {
		k.timer.Stop()
		k.begin().Drop()
	}
}

// find waits for what is found, but not for long.
func (k *check) find(ctx context.Context) []typecheck.Warning {
	if k == nil {
		return nil
	}
	patience := checkPatience
	if k.timer.Stop() { // it begins now
		patience = checkTime
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return k.begin().Warnings(ctx)
}

// checker returns that of a principal, nil if there is none.
func (c *checks) checker(ctx context.Context, interpreter sandbox.Interpreter) *typecheck.Checker {
	settings := c.settings()
	if !settings.Typecheck || settings.Remote != "" { // a checker is a service of a host's, beside the wrappers
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	key := checkerKey{tool.Principal(ctx), interpreter}
	checker, known := c.checkers[key]
	if !known && len(c.checkers) < maxCheckers {
		checker = c.find(interpreter, settings)
		c.checkers[key] = checker
	}
	return checker
}

func (c *checks) find(interpreter sandbox.Interpreter, settings config.Sandbox) *typecheck.Checker {
	language, path := typecheck.Python, settings.Pyright
	if interpreter == sandbox.Node {
		language, path = typecheck.TypeScript, settings.Tsc
	}
	install, err := typecheck.Find(language, path)
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, typecheck.ErrNone) {
			level = slog.LevelDebug
		}
		c.log.Log(context.Background(), level, "programs run without a type checker", "language", language, "error", err)
		return nil
	}
	service := sandbox.Service{
		Args: install.Args, Dir: typecheck.Dir, Files: install.Files, Mounts: map[string]string{typecheck.Folder: install.Folder},
		Memory: install.Memory, Processes: 64, OpenFiles: 256,
	}
	service.Files["sallyport.ts"] = runtime.TypeScript
	if install.Node {
		service.Interpreter = sandbox.Node
	}
	return typecheck.New(language, func() (io.ReadWriteCloser, error) { return c.serve(service) }, &typecheck.Options{Logger: c.log})
}

func (c *checks) serve(service sandbox.Service) (io.ReadWriteCloser, error) {
	c.mu.Lock()
	c.started++
	service.ID = fmt.Sprintf("check-%d", c.started)
	c.mu.Unlock()
	return c.sandboxes.serve(service)
}

// show is called with the files that the host shows now.
func (c *checks) show(files map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.checkers) > 0 && c.shown != nil {
		changes := typecheck.Changes(c.shown, files)
		for _, checker := range c.checkers {
			checker.Changed(changes)
		}
	}
	c.shown = files
}

func (c *checks) close() {
	c.mu.Lock()
	c.ended = true
	checkers := c.checkers
	c.mu.Unlock()
	for _, checker := range checkers {
		checker.Close()
	}
}

// warnings are what the types say of a program that failed; of one that was stopped, or did well, nothing.
// known says that there were programs before it in its session; the checker does not know their names.
func warnings(ctx context.Context, check *check, fault *bridge.Fault, known bool) []typecheck.Warning {
	if fault == nil {
		check.drop()
		return nil
	}
	list := check.find(ctx)
	if known {
		list = withoutUndefined(list)
	}
	return relevant(list, fault)
}

// relevant leaves out what the fault says itself, and puts what is nearest to where it happened first.
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
		return (len(fault.Lines) == 0 || distance(w) == 0) && saysTheSame(w.Message, fault.Message+" "+fault.Hint)
	})
	slices.SortStableFunc(list, func(a, b typecheck.Warning) int { return cmp.Compare(distance(a), distance(b)) })
	return list[:min(len(list), execution.MaxWarnings)]
}

// quotedName is a name that a warning is about.
var quotedName = regexp.MustCompile(`["'](\w+)["']`)

// saysTheSame guesses: a fault of the same line that has a name of the warning in it is about the same mistake.
func saysTheSame(warning, fault string) bool {
	for _, name := range quotedName.FindAllStringSubmatch(warning, -1) {
		if regexp.MustCompile(`\b` + name[1] + `\b`).MatchString(fault) {
			return true
		}
	}
	return false
}
