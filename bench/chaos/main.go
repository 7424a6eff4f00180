//go:build unix

// Command chaos kills a real gateway (SIGKILL) while its programs call a tool that must not be called twice, resumes the programs with
// random answers of a person, and counts what the tool did. It fails if that was done more often than once and once more for each time
// that the person said that it was not done.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"sallyport/bench/chaos/killtest"
	"sallyport/internal/testutil/natscluster"
)

func main() {
	natscluster.Serve()
	sallyport := flag.String("sallyport", ".cache/bin/sallyport", "the binary, with runsc in the same folder")
	kills := flag.Int("kills", 40, "how many times the gateway is killed")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of what is chosen by chance") //nolint:gosec // any number will do
	upstream := flag.String("upstream", "", "be the upstream that writes what it does to this file")
	till := flag.String("till", "", "be an upstream of the gateway under load")
	clients := flag.Int("clients", 0, "how many clients a gateway that serves has; 0 kills a gateway for each program, without load")
	members := flag.Bool("cluster", false, "have a cluster instead, and kill, pause, cut off and slow down its members; -kills is the number of faults")
	out := flag.String("out", "", "with -cluster: write the result to `FILE` if there was no problem")
	verbose := flag.Bool("v", false, "print each round")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *sallyport, err = filepath.Abs(*sallyport); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	switch {
	case *upstream != "":
		err = serveUpstream(ctx, *upstream)
	case *till != "":
		err = killtest.Upstream(ctx, *till)
	case *clients > 0:
		o := options(ctx, *sallyport, *verbose)
		o.Kills, o.Clients, o.Seed = *kills, *clients, *seed
		fmt.Println("seed", o.Seed)
		if *members {
			err = cluster(ctx, o, *out)
		} else {
			err = underLoad(ctx, o)
		}
	default:
		err = campaign(ctx, *sallyport, *kills, *seed, *verbose)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// counts are what happened.
type counts struct{ rounds, kills, held, approved, denied, done, doubles int }

// campaign runs rounds until the gateway has been killed often enough.
func campaign(ctx context.Context, sallyport string, kills int, seed uint64, verbose bool) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/tmp", "chaos-") // short: a socket's path has room for little
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("seed", seed)
	c := &chaos{
		binary: sallyport, dir: dir, effects: filepath.Join(dir, "effects"),
		rand: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // the same seed has to choose the same
	}
	settings := fmt.Sprintf("approval: {wait: 1s}\nupstreams:\n  crm: {command: %q, args: [-upstream, %q]}\n", self, c.effects)
	if err := os.WriteFile(c.settings(), []byte(settings), 0o600); err != nil {
		return err
	}
	if err := c.writeWorkflows(); err != nil {
		return err
	}
	for c.counts.kills < kills && ctx.Err() == nil {
		line, err := c.round(ctx)
		if err != nil {
			return fmt.Errorf("round %d: %w", c.counts.rounds, err)
		}
		if verbose || strings.Contains(line, "DOUBLE") {
			fmt.Println(line)
		}
	}
	n := c.counts
	fmt.Printf("%d kills in %d programs: %d held, %d approved, %d denied, %d done, %d calls made twice\n", n.kills, n.rounds, n.held, n.approved, n.denied, n.done, n.doubles)
	if n.doubles > 0 {
		return fmt.Errorf("%d calls were made twice", n.doubles)
	}
	return nil
}

// options are those of a campaign with clients.
func options(ctx context.Context, sallyport string, verbose bool) killtest.Options {
	o := killtest.Options{
		Command:  func(args ...string) *exec.Cmd { return exec.CommandContext(ctx, sallyport, args...) },
		Upstream: []string{self(), "-till"}, Runsc: filepath.Join(filepath.Dir(sallyport), "runsc"),
	}
	if verbose {
		o.Log = func(line string) { fmt.Println(time.Now().Format("04:05.000"), line) }
	}
	return o
}

// underLoad kills a gateway that has clients.
func underLoad(ctx context.Context, o killtest.Options) error {
	report, err := killtest.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Println(report)
	return complain(report.Problems)
}

// complain prints problems, and returns an error if there are any.
func complain(problems []string) error {
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems", len(problems))
	}
	return nil
}

// self is the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
