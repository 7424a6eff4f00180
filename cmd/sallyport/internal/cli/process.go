package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// RunscLog makes a directory for what runsc itself logs, at level debug.
func (a *App) RunscLog() (string, error) {
	if a.LogLevel != "debug" {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "sallyport-runsc-log-")
	if err != nil {
		return "", fmt.Errorf("make log directory: %w", err)
	}
	a.Say("runsc logs to " + dir)
	return dir + "/", nil
}

// EndSignals are the signals that ask us to stop. Under nohup the end of the terminal is not one of them.
func EndSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
