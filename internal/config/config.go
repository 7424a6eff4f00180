// Package config reads upstreams.yaml, the one file that says which upstreams
// the gateway connects to and what an execution may use. Its main type is
// [Config]. Reading is strict: whatever the file says that is not understood is
// an [Error] with the line, a caret, and what was probably meant.
package config

import (
	"time"

	"sallyport/internal/access"
	"sallyport/internal/policy"
)

// To add a key:
//  1. add the field here, with its unit and its default in the doc comment;
//  2. give it its default in Default (or in defaultUpstream);
//  3. add one line to the table of keys in decode.go, which gives it its type;
//  4. if not every value makes sense, add its check to validate.go or its neighbours;
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
	// EnvFile is the absolute path of the file with the values of variables that
	// the process's environment does not have; "" is none.
	EnvFile string
	// Upstreams are in the file's order, the disabled ones too.
	Upstreams []Upstream
	// Sandbox limits every execution.
	Sandbox Sandbox
	// Environments are what executions can ask for by name; the one called "default" is what they get unasked.
	Environments map[string]Environment
	// Workspaces are folders of the operator's that programs can have as theirs, by name.
	Workspaces map[string]Mapped
	// Trust is what happens to tool definitions that are new or have changed; default pin.
	Trust Trust
	// Observe learns what results look like where upstreams do not say; default true.
	Observe bool
	// Search is how tools are found.
	Search Search
	// Skills says what becomes of the code that programs save.
	Skills Skills
	// Workflows says where workflows are, and what their runs may use.
	Workflows Workflows
	// Privacy is what happens to personal data in results.
	Privacy Privacy
	// Journal says how long what programs did can be continued.
	Journal Journal
	// Approval says how long people have who are asked about calls.
	Approval Approval
	// Policy says which calls are made, asked about or refused; default: all are made, but for data flows that labels tell of.
	Policy policy.Settings
	// Audit says what is put on record.
	Audit Audit
	// Telemetry says where traces and metrics are sent to; default nowhere.
	Telemetry Telemetry
	// HTTP is for serve --http.
	HTTP HTTP
	// Profiles are the tools that clients see in addition to search_tools and execute_code; default none.
	Profiles Profiles
	// Files are the absolute paths of EnvFile and of the files that ${file:...}
	// references named, so that anyone who watches Path can watch them too.
	Files []string
	// References are the values that references had, by what stands between "${" and "}", and the
	// variables of EnvFile: by the ID of the upstream in whose entry they are, "" for all else.
	References map[string]Secrets
}

// Skills says what becomes of the code that programs save as skills.
type Skills struct {
	// Shared lets a skill be offered to all principals (scope: shared); default false.
	Shared bool
	// Review has a person approve what is shared before anybody sees it; default true.
	Review bool
}

// Trust says what may be called of what an upstream offers.
type Trust string

// The values of Trust.
const (
	// TrustPin: a definition is pinned when it is first seen and quarantined when
	// it changes; a new one only when its text looks like an attack.
	TrustPin Trust = "pin"
	// TrustReview: nothing is callable before a person approved it.
	TrustReview Trust = "review"
	// TrustAllow: everything is callable; changes are logged.
	TrustAllow Trust = "allow"
)

// Search says what search uses in addition to the words of the catalog.
type Search struct {
	// Learn moves tools up that were called after a search like the one at hand. What
	// it keeps stays on this machine; default true.
	Learn bool
	// Embeddings is an endpoint that turns texts into vectors; nil: there is none.
	Embeddings *Embeddings
}

// Embeddings is an endpoint of the OpenAI-compatible kind.
type Embeddings struct {
	// URL is that of the API, to which "/embeddings" is added unless it ends so.
	URL string
	// Model is the name that the endpoint knows it by.
	Model string
	// Headers go out with every request.
	Headers Secrets
	// Timeout bounds the wait for the vector of a query, after which the words alone decide; default 300ms.
	Timeout time.Duration
	// Problem says which references here have no value; the endpoint must not be
	// asked then. "" if all have one.
	Problem string
}

// HTTP holds what serve --http needs in addition to its address.
type HTTP struct {
	// Tokens are bearer tokens that clients may present, by a name for the log.
	Tokens Secrets
	// Operators are who may see and answer what waits for approval, of all principals, at /api: names of Tokens,
	// or oauth:SUBJECT for who has an access token. No one, without.
	Operators []string
	// Origins are further Origin values that browsers may send; loopback ones may always.
	Origins []string
	// Hosts are further Host values that requests may name, without a port; loopback ones may always.
	Hosts []string
	// Body bounds a request's body; default 8MiB.
	Body Size
	// Grace is how long running executions may go on after a signal to stop; default 20s.
	Grace time.Duration
	// RequireToken refuses who brings no token on this machine, too. From elsewhere everybody needs one anyway.
	RequireToken bool
	// Limits are how often each token, and each address without one, may ask.
	Limits HTTPLimits
	// OAuth makes the gateway an OAuth 2.1 resource server; nil: it is none.
	OAuth *ResourceServer
	// Problem says, as an Error prints it, which references here have no value; "" if
	// all have one. HTTP must not be served then; all else is not concerned.
	Problem string
}

// HTTPLimits are rates, each of one token or address. 0 of one is no limit.
type HTTPLimits struct {
	// Requests are of all kinds; default 6000/m.
	Requests access.Rate
	// Executions are programs that are run; default 600/m.
	Executions access.Rate
}

// ResourceServer says whose access tokens (JWT, RFC 9068) are accepted over HTTP.
type ResourceServer struct {
	// Issuer is the URL of the authorization server, whose keys are found by discovery.
	Issuer string
	// Audience is what a token must be for: the URL of our own /mcp.
	Audience string
	// Scopes that a token must have; may be empty.
	Scopes []string
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

	// URL is the endpoint of a server that speaks streamable HTTP or legacy SSE.
	URL string
	// Headers go out with every request.
	Headers Secrets
	// Socket is the path of a Unix socket to reach URL through, absolute; "" is TCP.
	Socket string
	// Transport is how URL is spoken to: auto (default), streamable or sse.
	Transport string
	// Auth says how an OAuth token is got for URL. The zero value: by discovery,
	// when the server asks for one and someone has logged in.
	Auth Auth

	// Include and Exclude are globs (as path.Match) over wire names of tools; an
	// empty Include takes all, and Exclude wins.
	Include, Exclude []string
	// Rename gives tools other names in programs, by wire name.
	Rename map[string]string
	// Trust is Config.Trust unless the entry has its own.
	Trust Trust

	// Privacy is the mode of this upstream; "" is Config.Privacy.Mode.
	Privacy PrivacyMode

	// Labels say what is read from it, or sent to it: private, untrusted, external, or a word of the operator's.
	Labels []string
	// ToolLabels are further labels of tools, by globs (as path.Match) over their names, on the wire or in programs, and of methods (resources/read).
	ToolLabels map[string][]string

	// NoTraceContext keeps from it which trace a call is of (traceparent), also where a client would pass that on; key trace_context, default true.
	NoTraceContext bool

	// Timeout bounds one call of one tool; default 60s.
	Timeout time.Duration
	// Concurrency is how many calls may be under way at once, more wait; default 32.
	Concurrency int
	// MaxMessage bounds one message of the upstream; default 64MiB.
	MaxMessage Size
	// Eager starts it with the gateway, and again when it ends; default: at the first call.
	Eager bool
	// Idle is how long it may be without a call before it is stopped; 0 is never; default 10m.
	Idle time.Duration
	// Disabled keeps the entry in the file but leaves it out of the gateway.
	Disabled bool
	// Problem says which references in the entry have no value: "the variable A is
	// not set". The other fields must not be used to reach it then. "" if all have one.
	Problem string
}

// Auth says how an access token for an upstream over HTTP is got.
type Auth struct {
	// Type is "" or oauth (authorization code with PKCE, by `sallyport auth login`),
	// client_credentials, or none (never try).
	Type string
	// ClientID and ClientSecret are of a pre-registered client; "" registers one.
	ClientID     string
	ClientSecret Secret
	// Issuer is the URL of the only authorization server that may be asked; "" is
	// the one that the upstream names.
	Issuer string
	// ClientMetadata is the URL of a client id metadata document to use as client id.
	ClientMetadata string
	// Scopes to ask for; empty: what the server's metadata says.
	Scopes []string
	// RedirectPort is the loopback port of the login's redirect; 0 is any.
	RedirectPort int
	// Store is where tokens are kept: auto (keyring if there is one, else file), keyring, file.
	Store string
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
	// Processes counts threads too; default 32.
	Processes int
	// OpenFiles is per process; default 256.
	OpenFiles int
	// CPU is processor time of all processes together; default 60s.
	CPU time.Duration
	// FileSize bounds each file that a program writes; default 256MiB.
	FileSize Size
	// Workspace is how much fits into /workspace, Inodes how many files and folders; default 256MiB and 50000.
	Workspace Size
	Inodes    int
	// Output is how much of stdout and stderr together is kept for the model; default 16KiB.
	Output Size
	// Calls is how many tool calls one execution may make; default 1000.
	Calls int
	// Concurrency is how many of them may be under way at once; default 16.
	Concurrency int
	// Traffic bounds the bytes between a program and its tools, both ways together; default 1GiB.
	Traffic Size

	// Parallel is how many programs run at once, without those that wait for a person; default 4. Queue is how many more wait
	// for their turn, each for QueueWait at most; defaults 64 and 30s. Those of workflows do not count: they wait as long as it takes.
	Parallel, Queue int
	QueueWait       time.Duration
	// Pool says how many sandboxes wait for programs.
	Pool Pool
	// SessionIdle is how long what a session has in memory waits for its next program; default 10m.
	SessionIdle time.Duration
	// Masked are paths below the host's /usr that no program sees, in addition to /usr/local/etc and others that none ever does.
	Masked []string

	// Remote is the machine whose sandboxes programs run in, ssh://[USER@]HOST[:PORT][/PATH/TO/sallyport];
	// default "": this one.
	Remote string
	// Runsc is the path of runsc; default "": look it up.
	Runsc string
	// Python is the path of the Python interpreter; default "": look it up.
	Python string
	// Node is the path of node; default "": look it up.
	Node string

	// Typecheck has programs checked while they run, where a checker is found; default true.
	Typecheck bool
	// Pyright and Tsc are the paths of the checkers of Python and TypeScript; default "": look them up.
	Pyright, Tsc string
}

// Pool bounds the sandboxes that wait, started, for programs.
type Pool struct {
	// Min waits of each interpreter when nothing continues; default 1.
	Min int
	// Max waits at most; 0 is no pool; default 4.
	Max int
	// Memory bounds what all that wait use together; default 512MiB.
	Memory Size
}

// Environment is an interpreter plus dependencies that executions can ask for by name.
type Environment struct {
	// Description tells a model in a few words what it is for; optional.
	Description string
	// Image is an OCI image by digest, Root a directory; at most one is set, and neither is the host's /usr.
	Image, Root string
	// Python and TypeScript say what is installed for each.
	Python     PythonPackages
	TypeScript NodePackages
	// Install lets the model install what is missing, by install_dependencies; default false.
	Install bool
}

// PythonPackages are the packages of an environment for Python.
type PythonPackages struct {
	// Interpreter is the path of the interpreter; "" looks it up.
	Interpreter string
	// Base is a venv, a uv environment or a conda prefix of the host that is used as it is.
	Base string
	// Requirements are in the form of a requirements file: name[extras]==version and the like, no URLs, no options.
	Requirements []string
	// Index is the URL of the package index; default "": that of PyPI.
	Index string
	// Source allows source distributions, whose build runs code in the sandbox that installs; default false.
	Source bool
}

// NodePackages are the packages of an environment for TypeScript.
type NodePackages struct {
	// Interpreter is the path of node; "" looks it up.
	Interpreter string
	// Packages are names with versions, as in "zod@3.25.0".
	Packages []string
	// Registry is the URL of the registry; default "": that of npm.
	Registry string
}

// Default returns a Config with every default and no upstream.
func Default() Config {
	return Config{Trust: TrustPin, Observe: true, Search: Search{Learn: true}, Skills: Skills{Review: true}, Workflows: defaultWorkflows(), Audit: Audit{Code: AuditDigest, Keep: 90 * 24 * time.Hour, Size: GiB}, HTTP: HTTP{Body: 8 * MiB, Grace: 20 * time.Second, Limits: HTTPLimits{Requests: access.Rate{Count: 6000, Per: time.Minute}, Executions: access.Rate{Count: 600, Per: time.Minute}}}, Approval: defaultApproval(), Journal: defaultJournal(), Sandbox: Sandbox{
		Timeout:     60 * time.Second,
		Memory:      512 * MiB,
		Processes:   32,
		OpenFiles:   256,
		CPU:         60 * time.Second,
		FileSize:    256 * MiB,
		Workspace:   256 * MiB,
		Inodes:      50_000,
		Output:      16 * KiB,
		Calls:       1000,
		Concurrency: 16,
		Traffic:     GiB,
		Parallel:    4,
		Queue:       64,
		QueueWait:   30 * time.Second,
		Pool:        Pool{Min: 1, Max: 4, Memory: 512 * MiB},
		SessionIdle: 10 * time.Minute,
		Typecheck:   true,
	}}
}

// defaultEmbeddings holds the defaults of an endpoint.
func defaultEmbeddings() *Embeddings { return &Embeddings{Timeout: 300 * time.Millisecond} }

// defaultUpstream holds the defaults of each upstream in a file of dir.
func defaultUpstream(dir string) Upstream {
	return Upstream{
		Dir: dir, Transport: "auto", Auth: Auth{Store: "auto"}, Timeout: 60 * time.Second, Concurrency: 32, MaxMessage: 64 * MiB, Idle: 10 * time.Minute,
	}
}
