package config

import "slices"

// The servers that the gateway can replace for their clients.
const (
	// CompatCodeExecution is code-execution-mcp.
	CompatCodeExecution = "code-execution-mcp"
	// CompatCodeExecutor is mcp_code_executor.
	CompatCodeExecutor = "mcp_code_executor"
	// CompatHTTP is the HTTP API of code-executor.
	CompatHTTP = "code-executor"
)

var compats = []string{CompatCodeExecution, CompatCodeExecutor, CompatHTTP}

// Compats returns the values of compat.
func Compats() []string { return slices.Clone(compats) }
