package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// RunscLog creates a directory for the logs of runsc if the log level is debug, and returns it; otherwise "".
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

// EndSignals returns the signals that stop the process. Under nohup SIGHUP is not one of them.
func EndSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
