package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/sandbox/egress"
)

func main() {
	egress.Child() // of a sandbox with a network
	// Without this, SIGPIPE on a closed stdout would kill the process before it cleans up.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)

	ctx, stop := signal.NotifyContext(context.Background(), cli.EndSignals()...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], lookUp, os.Stdin, os.Stdout, os.Stderr))
}

// lookUp returns a variable of the environment. Windows has no HOME: there it is the folder of the user.
func lookUp(name string) (string, bool) {
	value, ok := os.LookupEnv(name)
	if ok || name != "HOME" || runtime.GOOS != "windows" {
		return value, ok
	}
	home, err := os.UserHomeDir()
	return home, err == nil
}

// run executes the command line and returns the exit status. All processes that it started have ended then.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{App: &cli.App{Env: env, Stdin: stdin, Stdout: stdout, Stderr: stderr}}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	a.Report(err)
	return cli.ExitStatus(err)
}
