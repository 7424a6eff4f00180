package benchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sallyport/bench/agent"
	"sallyport/bench/endpoint"
	"sallyport/bench/suite"
	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// modelOptions are the options of bench for a model.
type modelOptions struct {
	URL, Name, API, KeyEnv string
	Tasks, Modes, Servers  string
	Upstreams              string
	Price                  string
	Runs, Turns            int
	Time                   time.Duration
	JSON                   bool
}

// flags adds the flags that need --model. --runs and --json are bench's own.
func (m *modelOptions) flags(flags *pflag.FlagSet) {
	flags.StringVar(&m.URL, "model", "", "run tasks with a model at the endpoint `URL`: OpenAI-compatible,\nsuch as http://localhost:11434/v1, or Anthropic")
	flags.StringVar(&m.Name, "name", "", "use the model `NAME` (default the only one of the endpoint)")
	flags.StringVar(&m.API, "api", "", "use its `API`: openai or anthropic (default by the URL)")
	flags.StringVar(&m.KeyEnv, "key-env", "", "take its key from the environment's variable `NAME`\n(default OPENAI_API_KEY or ANTHROPIC_API_KEY)")
	flags.StringVar(&m.Tasks, "tasks", "", "only tasks with a name that matches `REGEXP`")
	flags.StringVar(&m.Modes, "modes", "direct,search,code", "only these `MODES`; task, which does tasks as sallyport run does, is\nanother one")
	flags.StringVar(&m.Price, "price", "", "its prices as `INPUT,CACHED,OUTPUT`, of a million tokens in any\ncurrency, such as 0.4,0.1,1.6")
	flags.StringVar(&m.Upstreams, "upstreams", "all", "use `WHICH` servers in each mode: all of them, or needed, only those\nof the task")
	flags.IntVar(&m.Turns, "turns", 20, "a task fails after `N` turns without an answer")
	flags.DurationVar(&m.Time, "time", 10*time.Minute, "a task fails after `DURATION` without an answer")
	flags.StringVar(&m.Servers, "servers", "", "use the pinned servers in `DIR`, a node_modules\n(default installed once with npm)")
}

// modelBench runs tasks with a model.
type modelBench struct {
	*modelOptions
	app      *app
	tasks    []*suite.Task
	modes    []suite.Mode
	endpoint *endpoint.Endpoint
	key      string
	price    models.Price
	world    *suite.World
	versions modelVersions
	runs     []modelRun
}

// benchModel runs the tasks with a model and prints the results, also when it is stopped or the endpoint fails.
func (a *app) benchModel(ctx context.Context, o modelOptions) (err error) {
	b := &modelBench{modelOptions: &o, app: a}
	if err := b.choose(); err != nil {
		return err
	}
	if err := b.connect(ctx); err != nil {
		return err
	}
	defer b.endpoint.Close()
	dir, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return fmt.Errorf("make world: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.prepare(ctx, filepath.Join(dir, "world")); err != nil {
		return err
	}
	b.announce()
	stopped := b.runAll(ctx)
	if !o.JSON && len(b.runs) > 0 {
		return errors.Join(b.print(), stopped)
	}
	return stopped
}

// invalidFlag returns the error for an invalid model flag.
func invalidFlag(hint, format string, args ...any) error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// choose selects tasks and modes by the flags.
func (b *modelBench) choose() error {
	only, err := regexp.Compile(b.Tasks)
	if err != nil {
		return invalidFlag("it is a regular expression, such as 'hours|join'", "--tasks: %v", err)
	}
	var names []string
	for _, t := range suite.Tasks() {
		names = append(names, t.Name)
		if only.MatchString(t.Name) {
			b.tasks = append(b.tasks, t)
		}
	}
	if len(b.tasks) == 0 {
		return invalidFlag("there are "+strings.Join(names, ", "), "no task matches %.80q", b.Tasks)
	}
	for name := range strings.SplitSeq(b.Modes, ",") {
		mode := suite.Mode(strings.TrimSpace(name))
		if !slices.Contains(suite.Modes(), mode) && mode != suite.Words {
			return invalidFlag("there are direct, search, code and task", "unknown mode %.40q", name)
		}
		if !slices.Contains(b.modes, mode) {
			b.modes = append(b.modes, mode)
		}
	}
	switch {
	case b.Turns < 1 || b.Time <= 0:
		return invalidFlag("a task takes two turns or more", "--turns and --time must be more than 0")
	case b.Upstreams != "all" && b.Upstreams != "needed":
		return invalidFlag("use all, or needed for the servers that a task needs alone", "unknown --upstreams %.40q", b.Upstreams)
	}
	b.price, err = parsePrice(b.Price)
	return err
}

// parsePrice reads the prices of tokens that are read, read from a cache, and written; "" has none.
func parsePrice(text string) (p models.Price, err error) {
	if text == "" {
		return p, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return p, invalidFlag("as in 0.4,0.1,1.6", "--price has %s, not three", cli.Count(len(parts), "number"))
	}
	for i, into := range []*float64{&p.Input, &p.Cached, &p.Output} {
		if *into, err = strconv.ParseFloat(strings.TrimSpace(parts[i]), 64); err != nil || !(*into >= 0) || math.IsInf(*into, 0) {
			return p, invalidFlag("as in 0.4,0.1,1.6", "--price has %.40q, which is not a number of 0 or more", parts[i])
		}
	}
	return p, nil
}

// connect opens the endpoint of the model.
func (b *modelBench) connect(ctx context.Context) (err error) {
	s := endpoint.Settings{URL: b.URL, Model: b.Name, API: endpoint.API(b.API)}
	if b.API == "" {
		s.API = endpoint.APIOf(b.URL)
	}
	if s.Key, err = b.keyOf(s.API); err != nil {
		return err
	}
	b.key = s.Key
	b.endpoint, err = endpoint.Open(ctx, s)
	return err
}

// keyOf returns the API key from the environment. Without --key-env it is sent only over TLS or to this machine.
func (b *modelBench) keyOf(api endpoint.API) (string, error) {
	variable := "OPENAI_API_KEY"
	if api == endpoint.Anthropic {
		variable = "ANTHROPIC_API_KEY"
	}
	key, _ := b.app.Env(cmp.Or(b.KeyEnv, variable))
	key = strings.TrimSpace(key)
	switch {
	case b.KeyEnv != "" && key == "":
		return "", invalidFlag("export it first", "the variable %.80s of --key-env is not set", b.KeyEnv)
	case b.KeyEnv != "" || key == "" || endpoint.Private(b.URL):
		return key, nil
	}
	b.app.Say(variable + " is not sent without TLS; --key-env " + variable + " would")
	return "", nil
}

// prepare checks and installs everything that the tasks need, before any request costs money.
func (b *modelBench) prepare(ctx context.Context, dir string) (err error) {
	if err := b.app.requirePrograms(ctx, b.modes); err != nil {
		return err
	}
	modules := b.Servers
	if modules == "" {
		if modules, err = b.app.installServers(ctx); err != nil {
			return err
		}
	}
	if b.world, err = suite.NewWorld(dir, modules); err != nil {
		return err
	}
	b.versions = modelVersions{Sallyport: cli.BuildVersion(), Servers: map[string]string{}}
	if needsSandbox(b.modes) {
		if b.versions.Runsc, _, err = sandbox.Runtime(ctx, ""); err != nil {
			return invalidFlag("see sallyport doctor; --modes direct,search needs none of it", "programs cannot run here: %v", err)
		}
	}
	return b.checkServers()
}

// needsSandbox reports whether a mode runs programs.
func needsSandbox(modes []suite.Mode) bool {
	return slices.Contains(modes, suite.Code) || slices.Contains(modes, suite.Words)
}

// announce prints the number of conversations that are about to run.
func (b *modelBench) announce() {
	n := len(b.tasks) * len(b.modes) * b.Runs
	b.app.Say(fmt.Sprintf("%s (%s at %s): %s x %s x %s: %d conversations, each of at most %d turns and %s",
		sanitize.Line(b.endpoint.Model(), 80), b.endpoint.API(), b.endpoint.Host(),
		cli.Count(len(b.tasks), "task"), cli.Count(len(b.modes), "mode"), cli.Count(b.Runs, "run"), n, b.Turns, b.Time))
}

// runAll runs each task in each mode, and stops when the endpoint keeps failing. If no request was ever answered, it returns the last fault.
func (b *modelBench) runAll(ctx context.Context) (err error) {
	failed := 0
	var fault *tool.Error
	bar := b.app.Progress("asking the model", len(b.tasks)*len(b.modes)*b.Runs)
	defer bar.Stop()
	for _, task := range b.tasks {
		for _, mode := range b.modes {
			for run := range b.Runs {
				bar.Step(len(b.runs), fmt.Sprintf("%s, %s", task.Name, mode))
				if fault, err = b.runNext(ctx, task, mode, run+1); err != nil {
					return err
				}
				if failed++; fault == nil || fault.Kind == tool.Invalid && b.answered() {
					failed = 0
				}
				if fault != nil && (failed == 3 || b.isFatal(fault)) {
					return fault
				}
			}
		}
	}
	if fault != nil && !b.answered() {
		return fault
	}
	return nil
}

// runNext runs a task once and reports its result.
func (b *modelBench) runNext(ctx context.Context, task *suite.Task, mode suite.Mode, run int) (*tool.Error, error) {
	r, fault, err := b.runOnce(ctx, task, mode)
	if err != nil {
		return nil, err
	}
	r.Run = run
	b.runs = append(b.runs, r)
	return fault, b.report(r)
}

// answered reports whether the endpoint has answered any request. If so, a refused request may be the task's fault, such as its size.
func (b *modelBench) answered() bool {
	return slices.ContainsFunc(b.runs, func(r modelRun) bool { return r.Turns > 0 })
}

// isFatal reports whether the endpoint will fail all further requests too. For a rate limit, the request was retried
// five times, or the wait is too long: the next tasks would fail because of the limit.
func (b *modelBench) isFatal(fault *tool.Error) bool {
	switch fault.Kind {
	case tool.Denied, tool.NotFound, tool.Limit:
		return true
	case tool.Upstream:
		return !b.answered()
	}
	return false
}

// upstreams returns the names of the servers that a task runs with.
func (b *modelBench) upstreams(task *suite.Task) (names []string) {
	for _, server := range b.world.Servers() {
		if b.Upstreams == "all" || slices.Contains(task.Upstreams, server.Name) {
			names = append(names, server.Name)
		}
	}
	return names
}

// setup returns the environment that a task runs in.
func (b *modelBench) setup(task *suite.Task) (agent.Setup, error) {
	self, err := os.Executable()
	s := agent.Setup{World: b.world, Sallyport: self, Upstreams: b.upstreams(task)}
	if cache := b.app.CacheDir(); cache != "" {
		s.Cache = filepath.Join(cache, "bench-snapshots")
	}
	return s, err
}
