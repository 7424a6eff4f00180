// Package config reads upstreams.yaml, the one file that says which upstreams
// the gateway connects to and what an execution may use. Its main type is
// [Config]. Reading is strict: whatever the file says that is not understood is
// an [Error] with the line, a caret, and what was probably meant.
package config

import "time"

// To add a key:
//  1. add the field here, with its unit and its default in the doc comment;
//  2. give it its default in Default (or in defaultUpstream);
//  3. add one line to the table of keys in decode.go, which gives it its type;
//  4. if not every value makes sense, add its check to validate.go;
//  5. show it, as a comment, in the upstreams.yaml at the root;
//  6. add a bad value of it to testdata/errors and run go test -update.

// Config is what upstreams.yaml says, with every default filled in. Printing or
// logging it shows no value of an environment variable or header. It is safe
// for concurrent readers.
type Config struct {
	// Path is the file that it came from, as it was given to Load or Parse.
	Path string
	// Dir is the absolute directory of that file; relative paths in the file start there.
	Dir string
	// Upstreams are in the file's order, the disabled ones too.
	Upstreams []Upstream
	// Sandbox limits every execution.
	Sandbox Sandbox
}

// Upstream says how to reach one MCP server: over stdio if Command is set, over
// streamable HTTP if URL is set; exactly one of them is.
type Upstream struct {
	// Name is the key in the file: a letter, then letters, digits, "-" and "_".
	Name string
	// ID is tool.Identifier(Name), unique among the upstreams.
	ID string
	// Description tells a model in a few words what it would find there; optional.
	Description string

	// Command is the program to start, looked up in PATH if it has no slash.
	Command string
	// Args are its arguments, without the program's name.
	Args []string
	// Env is added to the little environment that every upstream gets.
	Env Secrets
	// Dir is its working directory (key cwd), absolute; default: Config.Dir.
	Dir string

	// URL is the endpoint of a server that speaks streamable HTTP.
	URL string
	// Headers go out with every request.
	Headers Secrets

	// Timeout bounds one call of one tool; default 60s.
	Timeout time.Duration
	// Disabled keeps the entry in the file but leaves it out of the gateway.
	Disabled bool
}

// Secrets maps names to values that may be secret: the environment of a process
// or the headers of a request. It is a plain map[string]string to code, but
// shows only its names when it is printed, logged or marshalled.
type Secrets map[string]string

// Sandbox holds the limits of one execution and where its tools are.
type Sandbox struct {
	// Timeout is wall clock time; default 60s.
	Timeout time.Duration
	// Memory is all that the sandbox may use, the interpreter included; default 512MiB.
	Memory Size
	// Processes counts threads too; default 64.
	Processes int
	// OpenFiles is per process; default 256.
	OpenFiles int
	// Workspace is how much fits into /workspace; default 256MiB.
	Workspace Size
	// Output is how much of stdout and stderr together is kept for the model; default 16KiB.
	Output Size
	// Calls is how many tool calls one execution may make; default 1000.
	Calls int
	// Concurrency is how many of them may be under way at once; default 16.
	Concurrency int

	// Runsc is the path of runsc; default "": look it up.
	Runsc string
	// Python is the path of the Python interpreter; default "": look it up.
	Python string
	// Node is the path of node; default "": look it up.
	Node string
}

// Default returns a Config with every default and no upstream.
func Default() Config {
	return Config{Sandbox: Sandbox{
		Timeout:     60 * time.Second,
		Memory:      512 * MiB,
		Processes:   64,
		OpenFiles:   256,
		Workspace:   256 * MiB,
		Output:      16 * KiB,
		Calls:       1000,
		Concurrency: 16,
	}}
}

// defaultUpstream holds the defaults of each upstream in a file of dir.
func defaultUpstream(dir string) Upstream {
	return Upstream{Dir: dir, Timeout: 60 * time.Second}
}
