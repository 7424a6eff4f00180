package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"sallyport/cmd/sallyport/internal/cli"
)

func main() {
	// A closed stdout must be an error that we can clean up after, not the end of the process.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)

	ctx, stop := signal.NotifyContext(context.Background(), cli.EndSignals()...)
	context.AfterFunc(ctx, stop) // whoever asks twice is not made to wait
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit status, and nothing that it started is left.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{App: &cli.App{Env: env, Stdin: stdin, Stdout: stdout, Stderr: stderr}}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	a.Report(err)
	return cli.ExitStatus(err)
}
