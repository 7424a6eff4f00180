package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A reader of ours that goes away must be an error that we can clean up after, not the end of the process.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)

	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	context.AfterFunc(ctx, stop) // whoever asks twice is not made to wait
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// endings are the signals that ask us to stop. Under nohup the end of the terminal is not one of them.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// run is the whole program: it returns the exit status, and nothing that it started is left.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{env: env, stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	a.report(err)
	return exitStatus(err)
}
