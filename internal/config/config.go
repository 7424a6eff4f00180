// Package config reads upstreams.yaml, the one file with the upstreams that the
// gateway connects to and the limits of executions. Its main type is [Config].
// Reading is strict: anything unknown in the file is an [Error] with the line, a
// caret, and a suggestion.
package config

import (
	"time"

	"sallyport/internal/access"
	"sallyport/internal/commandtool"
	"sallyport/internal/identity"
	"sallyport/internal/policy"
	"sallyport/internal/registry"
	"sallyport/internal/secretstore"
	"sallyport/internal/tlsfiles"
	"sallyport/internal/webaccess"
)

// To add a key:
//  1. add the field here, with its unit and its default in the doc comment;
//  2. give it its default in Default (or in defaultUpstream);
//  3. add one line to the table of keys in decode.go, which gives it its type;
//  4. if not every value is valid, add its check to validate.go or its neighbours;
//  5. add a bad value of it to testdata/errors;
//  6. run go test -update, which also writes docs/reference/settings.md and the schema for editors from the table and
//     the comments.

// Config is the content of upstreams.yaml, with every default filled in. Printing or
// logging it shows no value of an environment variable or header. It is safe
// for concurrent readers.
type Config struct {
	// Path is the path of the file, as it was passed to Load or Parse.
	Path string
	// Dir is the absolute directory of that file; relative paths in the file start there.
	Dir string
	// EnvFile is the absolute path of the file with the values of variables that
	// the process's environment does not have; default none.
	EnvFile string
	// Upstreams are the MCP servers, in the order of the file, with the disabled ones.
	Upstreams []Upstream
	// Sandbox limits every execution.
	Sandbox Sandbox
	// Environments are the environments that executions can select by name; "default" is used if they select none.
	Environments map[string]Environment
	// Workspaces are folders of the operator that programs can use as their workspace, by name.
	Workspaces map[string]MappedFolder
	// Trust is the policy for tool definitions that are new or have changed; default pin.
	Trust Trust
	// Observe learns the schemas of results that upstreams do not declare; default true.
	Observe bool
	// Search configures the search for tools.
	Search Search
	// Registry is the URL of the MCP registry in which add and search --registry look servers up; default the official one.
	Registry string
	// Models are the language models that write programs for tasks, by name.
	Models map[string]LanguageModel
	// Tasks configures tasks in words.
	Tasks Tasks
	// Plugins are what the plugins in the folder plugins may use, by name.
	Plugins map[string]PluginGrants
	// Skills configures the code that programs save.
	Skills Skills
	// Workflows configures workflows and the limits of their runs.
	Workflows Workflows
	// Privacy configures the handling of personal data in results.
	Privacy Privacy
	// Journal configures the journals, by which executions can be resumed.
	Journal Journal
	// Records configures the records of executions.
	Records Records
	// Approval sets the time limits of approvals.
	Approval Approval
	// Policy decides which calls are allowed, need approval or are denied; default: all are allowed, except data flows that labels restrict.
	Policy policy.Settings
	// Budgets limit what principals use in a day; default none.
	Budgets []Budget
	// Alerts are notified of approvals, quarantined tools, upstreams that are not available, and budgets; default none.
	Alerts []Alert
	// Audit configures the audit record.
	Audit Audit
	// Telemetry configures the export of traces and metrics; default none.
	Telemetry Telemetry
	// Store configures NATS servers that keep the records; default the data directory.
	Store Store
	// HTTP configures serve --http.
	HTTP HTTP
	// Profiles are the tools that clients see in addition to search_tools and execute_code; default none.
	Profiles Profiles
	// Mode is what a client sees that no entry of "clients" matches; default code.
	Mode Mode
	// Clients are the modes of clients by their names and versions; the first entry that matches applies.
	Clients []ClientMode
	// Endpoints are subsets of the tools with a URL of their own, by name: /mcp/NAME of serve --http; default none.
	Endpoints map[string]Endpoint
	// Compat is the server whose tools and answers clients get, in place of search_tools and execute_code; default none.
	Compat string
	// Warnings are about texts that load, but are probably mistakes, with their positions.
	Warnings []*Error
	// Files are the absolute paths of EnvFile and of the files in ${file:...}
	// references, to be watched together with Path.
	Files []string
	// References are the values of references, by the text between "${" and "}", and of the variables of
	// EnvFile. They are grouped by the ID of the upstream in whose entry they are, "" for all others.
	References map[string]Secrets
	// SecretManagers are the secret managers that references read from, as ${vault:...}; default those of the environment.
	SecretManagers secretstore.Managers
	// ManagedSecrets are the references to them, in the order of the file.
	ManagedSecrets []ManagedSecret
}

// Skills configures the code that programs save as skills.
type Skills struct {
	// Shared lets a skill be offered to all principals (scope: shared); default false.
	Shared bool
	// Review has a person approve what is shared before anybody sees it; default true.
	Review bool
}

// Trust is the policy for the tool definitions of an upstream.
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

// Search configures what search uses in addition to the text of the catalog.
type Search struct {
	// Learn ranks tools higher that were called after similar searches. The learned data
	// stays on this machine; default true.
	Learn bool
	// Embeddings is an endpoint for embeddings; default none.
	Embeddings *Embeddings
}

// Embeddings is an OpenAI-compatible endpoint for embeddings.
type Embeddings struct {
	// URL is the URL of the API. "/embeddings" is appended unless it ends with that.
	URL string
	// Model is the name of the model at the endpoint.
	Model string
	// QueryPrefix is put before each query, and DocumentPrefix before the text of each tool, where the model was trained
	// with such words: "search_query: " and "search_document: " for nomic-embed-text, "query: " and "passage: " for E5.
	// Default none.
	QueryPrefix, DocumentPrefix string
	// Headers are sent with every request.
	Headers Secrets
	// Timeout bounds the wait for the vector of a query. After that search uses words only; default 300ms.
	Timeout time.Duration
	// Problem describes references without a value, "" if all have one. Unless it is "",
	// the endpoint must not be used.
	Problem string
}

// HTTP holds what serve --http needs in addition to its address.
type HTTP struct {
	// Tokens are bearer tokens that clients may present, by a name for the log.
	Tokens Secrets
	// Operators are the principals that may see and answer approvals of all principals, at /api: names of tokens, or
	// oauth:SUBJECT for the subject of an access token. Default none.
	Operators []string
	// Metrics are the names of tokens with the role metrics: they may only read metrics and health. Default none.
	Metrics []string
	// URL is the address by which people reach the gateway with a browser, such as https://sallyport.example.com, for links
	// to its pages; default: the address that it listens at.
	URL string
	// Origins are further Origin values that browsers may send; loopback ones may always.
	Origins []string
	// Hosts are further Host values that requests may name, without a port; loopback ones may always.
	Hosts []string
	// Body bounds a request's body; default 8MiB.
	Body Size
	// Grace is how long running executions may continue after a signal to stop; default 20s.
	Grace time.Duration
	// RequireToken requires a token also for requests from this machine. Other machines always need one.
	RequireToken bool
	// Limits are the rate limits of each token, and of each address without one.
	Limits HTTPLimits
	// OAuth makes the gateway an OAuth 2.1 resource server; default none.
	OAuth *ResourceServer
	// Login lets people sign in to the dashboard at an OpenID provider; default none.
	Login *Login
	// Identity maps the claims of access tokens and of people who sign in.
	Identity identity.Expressions
	// Problem describes references without a value, in the form of an Error, "" if all have
	// one. Unless it is "", HTTP must not be served; other sections are not affected.
	Problem string
}

// HTTPLimits are rates, each of one token or address. 0 of one is no limit.
type HTTPLimits struct {
	// Requests bounds requests of all kinds; default 6000/m.
	Requests access.Rate
	// Executions bounds the programs that are run; default 600/m.
	Executions access.Rate
}

// ResourceServer configures which access tokens (JWT, RFC 9068) are accepted over HTTP.
type ResourceServer struct {
	// Issuer is the URL of the authorization server. Its keys are found by discovery.
	Issuer string
	// Audience is the required audience of a token: the URL of the gateway's /mcp.
	Audience string
	// Scopes are the required scopes of a token; default none.
	Scopes []string
}

// Login configures the OpenID provider where people sign in to the dashboard.
type Login struct {
	// Issuer is the URL of the provider. Its endpoints and keys are found by discovery.
	Issuer string
	// ClientID is the gateway's client, whose redirect URI is the address of the dashboard and /login/callback.
	ClientID string
	// ClientSecret is the secret of that client; default none, for a public client.
	ClientSecret Secret
	// Scopes are requested; default openid, profile and email. Some providers give a refresh token only with offline_access.
	Scopes []string
	// Refresh is the interval after which the claims of a session are read again with its refresh token. Without one the session
	// ends then. Default 15m.
	Refresh time.Duration
	// Userinfo adds the claims of the provider's userinfo endpoint that the ID token does not have; default false.
	Userinfo bool
}

// Upstream is an MCP server (over stdio if Command or Isolate.Image is set, else HTTP), an API (OpenAPI, GraphQL, gRPC), programs that are tools, or hosts for requests of programs.
type Upstream struct {
	// Name is the key in the file: a letter, then letters, digits, "-" and "_".
	Name string
	// ID is tool.Identifier(Name), unique among the upstreams.
	ID string
	// Description is a short description for models, of at most 200 characters.
	Description string

	// Command is the program to start, looked up in PATH if it has no slash. An upstream has a command or a URL, or
	// an image, of which it replaces the entry point.
	Command string
	// Args are its arguments, without the program's name.
	Args []string
	// Env is added to the minimal environment of every upstream.
	Env Secrets
	// Dir is its working directory (key cwd), absolute; default the directory of the file.
	Dir string
	// Isolate runs the process in a gVisor sandbox: true for one without a network and without files of this machine, a mapping for one
	// with what it names; default none.
	Isolate *Isolation

	// URL is the endpoint of a server that speaks streamable HTTP or legacy SSE.
	URL string
	// Headers are sent with every request.
	Headers Secrets
	// Socket is the path of a Unix socket to reach the URL through, absolute; default TCP.
	Socket string
	// Transport is the transport for the URL; default auto.
	Transport string
	// TLS is the TLS of the connections to the URL and to the document of an API; default the authorities of the system, and no client
	// certificate. Logins do not use it.
	TLS tlsfiles.Files
	// Auth configures how to get an OAuth token for the URL; default by discovery, when the
	// server requires one and a person has logged in.
	Auth Auth

	// OpenAPI is the document of an HTTP API, of which each operation becomes a tool: a URL or a file. With it, url is that of the API; default the document's.
	OpenAPI string
	// GraphQL is a GraphQL API, of which each query and mutation becomes a tool: its URL, or a file with its schema (SDL, or JSON of introspection) and url.
	GraphQL string
	// GRPC is a gRPC server, of which each method becomes a tool: its URL (https, or http without encryption), or a file with a descriptor set and url.
	GRPC string
	// Variables are the values of variables in the base URL that the document names.
	Variables map[string]string
	// Query are parameters that are sent in the query of every request to the API, such as an API key.
	Query Secrets
	// Basic is the user for the API.
	Basic Basic

	// Tools are programs of this machine that become tools, by name. Each call runs one in a sandbox of its own, as isolate says.
	Tools []commandtool.Tool

	// Egress lets programs send HTTP requests to hosts, by tools that the gateway has; default none. It has the labels external and untrusted.
	Egress *webaccess.Access

	// Include are globs (as path.Match) of the wire names of tools to take; default all. With openapi they are globs of operationIds, tag:GLOB
	// or path:GLOB, in which ** matches several segments, with graphql also query:GLOB and mutation:GLOB, with grpc service:GLOB.
	Include []string
	// Exclude are globs of tools to leave out. They have precedence.
	Exclude []string
	// Rename gives tools other names in programs, by wire name.
	Rename map[string]string
	// Trust is the policy for the definitions of its tools; default that of the file.
	Trust Trust

	// Privacy is the mode of this upstream; default that of the section privacy.
	Privacy PrivacyMode

	// Labels are words for the data that is read from it, or sent to it: private, untrusted, external, or a custom word.
	Labels []string
	// ToolLabels are further labels of tools, by globs (as path.Match) over their names, on the wire or in programs, and of methods (resources/read).
	ToolLabels map[string][]string

	// NoTraceContext sends it no trace context (traceparent), not even that of a client; key trace_context, default true.
	NoTraceContext bool

	// Timeout bounds one call of one tool; default 60s.
	Timeout time.Duration
	// Concurrency bounds concurrent calls. More wait; default 32.
	Concurrency int
	// MaxMessage bounds one message of the upstream; default 64MiB.
	MaxMessage Size
	// Instances says where its process runs if gateways share a store: at each, or at one of them for all; default each.
	Instances string
	// Eager starts it with the gateway, and restarts it when it ends; default: at the first call.
	Eager bool
	// Idle is how long it may be without a call before it is stopped, 0 for never; default 10m.
	Idle time.Duration
	// Disabled keeps the entry in the file but leaves it out of the gateway.
	Disabled bool
	// Managed: it has secrets of secret managers, which may have other values when it connects again.
	Managed bool
	// Problem describes references without a value, such as "the variable A is not set",
	// "" if all have one. Unless it is "", the other fields must not be used to connect.
	Problem string
}

// Sandbox holds the limits of one execution and the paths of its programs.
type Sandbox struct {
	// Timeout bounds the wall clock time; default 60s.
	Timeout time.Duration
	// Memory bounds the memory of the sandbox, including the interpreter; default 512MiB.
	Memory Size
	// Processes bounds the processes and threads together; default 32.
	Processes int
	// OpenFiles bounds the open files of each process; default 256.
	OpenFiles int
	// CPU bounds the processor time of all processes together; default 60s.
	CPU time.Duration
	// FileSize bounds each file that a program writes; default 256MiB.
	FileSize Size
	// Workspace bounds the size of /workspace; default 256MiB.
	Workspace Size
	// Inodes bounds the files and folders of /workspace; default 50000.
	Inodes int
	// Output bounds stdout and stderr together that the model gets; default 16KiB.
	Output Size
	// Calls bounds the tool calls of one execution; default 1000.
	Calls int
	// Concurrency bounds the concurrent calls of one execution; default 16.
	Concurrency int
	// Traffic bounds the bytes between a program and its tools, in both directions together; default 1GiB.
	Traffic Size

	// Parallel bounds concurrent programs, without those that wait for a person; default 4.
	Parallel int
	// Queue bounds the programs that wait in the queue, which are 256 MiB at most; default 64. Programs of workflows do not count.
	Queue int
	// QueueWait bounds the time of a program in the queue; default 30s. Programs of workflows wait without a limit.
	QueueWait time.Duration
	// Pool configures the pool of started sandboxes.
	Pool Pool
	// Reuse says who may share a sandbox, one program after the other, each in processes of its own: principal lets the
	// programs of one principal with the same data-flow labels, never gives each program a new one; default principal.
	Reuse string
	// SessionIdle is how long the interpreter of an idle session is kept; default 10m.
	SessionIdle time.Duration
	// Masked are paths below the host's /usr that are hidden from programs, in addition to /usr/local/etc and others that always are.
	Masked []string

	// Remote is the machine that programs run on, ssh://[USER@]HOST[:PORT][/PATH/TO/sallyport], or workers for those that have
	// joined at the servers of the store; default "": this machine.
	Remote string
	// Placement are the labels that a worker must have to run programs, each KEY=VALUE; default none.
	Placement []string
	// Runsc is the path of runsc; default the one that is found.
	Runsc string
	// Python is the path of the Python interpreter; default the one that is found.
	Python string
	// Node is the path of node; default the one that is found.
	Node string

	// Typecheck type-checks programs while they run, if a checker is found; default true.
	Typecheck bool
	// Pyright is the path of the checker of Python; default the one that is found.
	Pyright string
	// Tsc is the path of the checker of TypeScript; default the one that is found.
	Tsc string
}

// The values of Sandbox.Reuse, and of Upstream.Instances.
const (
	ReusePrincipal = "principal"
	ReuseNever     = "never"
	InstancesEach  = "each"
	InstancesOne   = "one"
)

// Pool bounds the started sandboxes that wait for programs.
type Pool struct {
	// Min is the number of waiting sandboxes of each interpreter when the gateway is idle; default 1.
	Min int
	// Max is the greatest number of waiting sandboxes, 0 for no pool; default 4.
	Max int
	// Memory bounds the memory of all waiting sandboxes together; default 512MiB.
	Memory Size
}

// Environment is an interpreter plus dependencies that executions can select by name.
type Environment struct {
	// Description is a short description for models, of at most 200 characters.
	Description string
	// Image is an OCI image by digest, NAME@sha256:DIGEST; default the host's /usr.
	Image string
	// Root is a directory to use instead of an image; default the host's /usr.
	Root string
	// Python are the packages for Python.
	Python PythonPackages
	// TypeScript are the packages for TypeScript.
	TypeScript NodePackages
	// Install lets the model install what is missing, by install_dependencies: true until the gateway ends, keep for good; default false.
	Install bool
	// Keep has the installed packages outlive the gateway.
	Keep bool
}

// PythonPackages are the packages of an environment for Python.
type PythonPackages struct {
	// Interpreter is the path of the interpreter; default the one that is found.
	Interpreter string
	// Base is a venv, a uv environment or a conda prefix of the host, which is used unchanged. With "*", "?" or [a-z] in it, it is a
	// pattern: a client chooses one of the folders that match, by configure_environment.
	Base string
	// Requirements are packages in the form of a requirements file: name[extras]==version and the like, no URLs, no options.
	Requirements []string
	// Index is the URL of the package index; default "": that of PyPI.
	Index string
	// Source allows source distributions; default false. Their build runs code in the sandbox that installs.
	Source bool
}

// NodePackages are the packages of an environment for TypeScript.
type NodePackages struct {
	// Interpreter is the path of node; default the one that is found.
	Interpreter string
	// Packages are names with versions, as in "zod@3.25.0".
	Packages []string
	// Registry is the URL of the registry; default "": that of npm.
	Registry string
}

// Default returns a Config with every default and no upstream.
func Default() Config {
	return Config{Registry: registry.URL, Mode: ModeCode, Trust: TrustPin, Observe: true, Search: Search{Learn: true}, Skills: Skills{Review: true}, Workflows: defaultWorkflows(), Tasks: defaultTasks(), Audit: Audit{Code: AuditDigest, Keep: 90 * 24 * time.Hour, Size: GiB}, HTTP: HTTP{Body: 8 * MiB, Grace: 20 * time.Second, Limits: HTTPLimits{Requests: access.Rate{Count: 6000, Per: time.Minute}, Executions: access.Rate{Count: 600, Per: time.Minute}}}, Approval: defaultApproval(), Journal: defaultJournal(), Records: defaultRecords(), Store: defaultStore(), SecretManagers: secretstore.DefaultManagers(), Sandbox: Sandbox{
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
		Reuse:       ReusePrincipal,
		SessionIdle: 10 * time.Minute,
		Typecheck:   true,
	}}
}

// defaultEmbeddings holds the defaults of an endpoint.
func defaultEmbeddings() *Embeddings { return &Embeddings{Timeout: 300 * time.Millisecond} }

// defaultUpstream holds the defaults of each upstream in a file of dir.
func defaultUpstream(dir string) Upstream {
	return Upstream{
		Dir: dir, Transport: "auto", Auth: Auth{Store: "auto"}, Timeout: 60 * time.Second, Concurrency: 32, MaxMessage: 64 * MiB, Instances: InstancesEach, Idle: 10 * time.Minute,
	}
}
