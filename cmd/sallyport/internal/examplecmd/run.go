package examplecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/examples"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
	"sallyport/internal/walkthrough"
)

// figures are what one example took.
type figures struct {
	name            string
	wrong           bool
	took            time.Duration
	programs, calls int
	// tokens are those of programs and of what they printed, results those of the results of their calls.
	tokens, results int
}

// runAll runs examples and prints a table.
func (a *app) runAll(ctx context.Context, chosen []examples.Example) error {
	var table []figures
	for _, e := range chosen {
		if err := a.Print("\n== " + e.Name + ": " + e.Title); err != nil {
			return err
		}
		f, err := a.runOne(ctx, e)
		if err != nil {
			return fmt.Errorf("run example %s: %w", e.Number(), err)
		}
		table = append(table, f)
	}
	return a.report(table)
}

func (a *app) report(table []figures) error {
	var b strings.Builder
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "TIME\tPROGRAMS\tCALLS\tTOKENS\tRESULTS\t  EXAMPLE")
	wrong := 0
	for _, f := range table {
		note := ""
		if f.wrong {
			note, wrong = ": NOT AS EXPECTED", wrong+1
		}
		fmt.Fprintf(w, "%.1f s\t%d\t%d\t%d\t%d\t  %s%s\n", f.took.Seconds(), f.programs, f.calls, f.tokens, f.results, f.name, note)
	}
	_ = w.Flush() // to a Builder, which cannot fail
	if err := a.Print(b.String()); err != nil {
		return err
	}
	if wrong > 0 {
		return &tool.Error{Kind: tool.Failed, Message: cli.Count(wrong, "example") + " printed something else than their README says", Hint: "see above what was expected"}
	}
	return nil
}

// runOne runs an example in a temporary folder.
func (a *app) runOne(ctx context.Context, e examples.Example) (f figures, err error) {
	s, err := newStage(a.App, e)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	f.name = e.Name
	begin := time.Now()
	for _, step := range e.Steps {
		printed, failed, err := s.do(ctx, step)
		if err != nil {
			return f, err
		}
		if err := a.Print(commandLines(step) + printed); err != nil {
			return f, err
		}
		if failed != step.Fails || !s.real && !step.Matches(printed) {
			f.wrong = true
			a.Say("it should print:\n" + step.Prints)
			break
		}
	}
	f.took = time.Since(begin)
	return f, s.count(ctx, &f)
}

// commandLines are the commands of a step as a shell shows them.
func commandLines(step walkthrough.Step) string {
	return "$ " + strings.ReplaceAll(strings.TrimRight(step.Commands, "\n"), "\n", "\n> ") + "\n"
}

// stage is the folder in which an example runs.
type stage struct {
	*cli.App
	dir   string
	cache string
	env   []string
	model *model // nil for none
	real  bool   // a real model does a part, so that what is printed is not known
}

// newStage makes a folder with the files of an example, and with data and a cache of its own.
func newStage(a *cli.App, e examples.Example) (s *stage, err error) {
	dir, err := os.MkdirTemp("", "sallyport-example-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	s = &stage{App: a, dir: dir}
	if err = errors.Join(e.Copy(s.path("example")), s.linkBinary(), s.makeCache()); err == nil {
		s.env = s.environment()
		err = s.addModel(e)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// linkBinary makes a folder with this binary by the name that the commands have.
func (s *stage) linkBinary() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find sallyport: %w", err)
	}
	return errors.Join(os.Mkdir(s.path("bin"), 0o700), os.Symlink(self, s.path("bin", "sallyport")))
}

// environment is the one of this process, without the settings and data of the user.
func (s *stage) environment() (env []string) {
	path, _ := s.Env("PATH")
	own := map[string]string{
		"PATH": s.path("bin") + string(os.PathListSeparator) + path, "HOME": s.dir, "XDG_CACHE_HOME": s.cache, "XDG_DATA_HOME": s.path("data"), "XDG_CONFIG_HOME": s.path("config"),
		"XDG_RUNTIME_DIR": s.dir, "SALLYPORT_CONFIG": "", "NO_COLOR": "1",
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if _, is := own[name]; !is {
			env = append(env, pair)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// do runs the commands of a step in a shell, and returns what they printed to both streams.
func (s *stage) do(ctx context.Context, step walkthrough.Step) (printed string, failed bool, err error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", "set -e\n"+step.Commands)
	cmd.Dir, cmd.Env = s.path("example"), s.env
	cmd.WaitDelay = 10 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), !exit.Success(), nil
	}
	return out.String(), false, err
}

// count counts the programs of the example, from its records.
func (s *stage) count(ctx context.Context, f *figures) error {
	counter, err := tokens.O200k()
	if err != nil {
		return err
	}
	own := &cli.App{Env: s.Env, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, LogLevel: s.LogLevel, DataPath: s.path("data", "sallyport"), ConfigPath: s.path("example", "upstreams.yaml")}
	return own.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return cli.GetFromAll(ctx, c, "/executions?limit=1000", func(list httpapi.ExecutionList) {
			for _, e := range list.Executions {
				var r history.Record
				if c.Find(ctx, "/executions/"+e.ID, nil, &r) != nil {
					continue
				}
				written, _ := counter.Count(r.Code) // the vocabulary is embedded: no text fails
				f.programs++
				f.calls += r.Made
				f.tokens += written + r.Tokens
				f.results += int(r.ReadTokens())
			}
		})
	})
}

func (s *stage) close() error {
	if s.model != nil {
		s.model.close()
	}
	return errors.Join(s.removeCache(), os.RemoveAll(s.dir))
}
