package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// ExecutionStatus maps the status of an execution to the exit status of the process.
func ExecutionStatus(e execution.Result) error {
	switch e.Status {
	case sandbox.OK:
		return nil
	case sandbox.Failed:
		return Status(ExitFailed)
	case sandbox.Exited:
		return Status(e.Exit & 0xFF)
	case sandbox.TimedOut:
		return Status(ExitTimeout)
	case sandbox.Canceled:
		return Status(ExitInterrupted)
	case execution.Held:
		return Status(ExitSuspended)
	}
	return Status(ExitUnable)
}

// LanguageOf returns the language for a file's extension.
func LanguageOf(file string) (string, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".py":
		return "python", nil
	case ".ts", ".mts", ".js", ".mjs":
		return "typescript", nil
	}
	if file == "-" {
		return "python", nil
	}
	return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("cannot tell the language of %s by its extension", file), Hint: "say --language python or --language typescript"}
}
