package archtest

// A room is a rule: which packages of the module a package, or all packages in a folder, may import.
// The first rule that matches a package applies, so a specific rule comes before a general one.
type importRule struct {
	name    string   // "gateway", or "sandbox/..." for the package and all below it
	imports []string // patterns like name; a package may always import itself
	tests   []string // what its test files may import in addition
	why     string
}

// product are the packages that the verbs use.
var product = []string{"gateway/...", "codegen/...", "sandbox/...", "index/...", "internal/...", "tools/upstreams"}

// commandRules returns the rules of the packages with verbs, which do not import each other.
func commandRules() (all []importRule) {
	for _, name := range []string{"accesscmd", "auditcmd", "benchcmd", "clientscmd", "configcmd", "doctorcmd", "environmentscmd", "examplecmd", "plugincmd", "server", "taskcmd", "toolscmd", "topcmd", "upstreamscmd", "vmcmd", "clustercmd", "workflowcmd"} {
		r := importRule{"cmd/sallyport/internal/" + name, append([]string{"cmd/sallyport/internal/cli", "cmd/sallyport/internal/engine"}, product...), nil,
			"packages of verbs do not import each other: what several of them need is in cli"}
		if name == "benchcmd" {
			r.imports = append(r.imports, "bench/agent", "bench/endpoint", "bench/tokencount", "bench/local", "bench/stats", "bench/suite")
		}
		if name == "examplecmd" {
			r.imports = append(r.imports, "examples")
		}
		all = append(all, r)
	}
	all = append(all, importRule{"cmd/sallyport/internal/initcmd", append([]string{"cmd/sallyport/internal/cli", "cmd/sallyport/internal/clientscmd"}, product...), nil,
		"init asks what import and install need, and lets them do it"})
	return append(all, importRule{"cmd/sallyport/internal/cli", product, nil,
		"cli is shared by the verbs, so it imports none of them"})
}

// Packages import only lower layers: cmd, the interfaces (mcpserver, httpapi, dashboard), workflow, gateway, its four peers, internal.
var importRules = append(commandRules(), []importRule{
	{"cmd/...", append([]string{"cmd/sallyport/internal/..."}, product...), []string{"bench/endpoint/...", "bench/suite", "bench/tokencount", "bench/chaos/killtest", "examples"}, // a model to work with, clients of a gateway that is killed
		"cmd wires everything together; only its verb bench uses the packages of make bench"},
	{"examples", []string{"internal/walkthrough"}, nil,
		"the examples are files, which the verb example runs"},
	{"bench/tokencount", []string{"bench/ordered"}, nil,
		"tokens are counted from the transcript only"},
	{"bench/ordered", nil, nil,
		"it handles JSON only"},
	{"bench/stats", nil, nil,
		"statistics are computed from the measurements only"},
	{"bench/suite", []string{"bench/tokencount", "tools/upstreams"}, []string{"internal/testutil/..."},
		"a task depends on its world, not on the product or the agent"},
	{"bench/...", []string{"gateway/...", "codegen/...", "sandbox/...", "index/...", "internal/...", "bench/...", "tools/upstreams"}, nil,
		"a benchmark uses the product as a client or through a package's API, never through cmd"},
	{"gateway/compat", gatewayPackages("sandbox", "sandbox/bridge", "internal/..."), []string{"gateway", "gateway/mcpserver", "gateway/httpserver"}, // the real gateway, through the servers
		"it says what other servers would: the servers above it speak the protocols"},
	{"gateway/mcpserver/naming", []string{"internal/..."}, nil,
		"the names that clients see depend on the IDs of tools only"},
	{"gateway/mcpserver/statekey", []string{"internal/store"}, nil,
		"a key is a file, or a record in a store that gateways share"},
	{"gateway/mcpserver/session", []string{"gateway/mcpserver/stream", "internal/store", "internal/tool"}, nil,
		"a session of another gateway is opened without the protocol's server"},
	{"gateway/mcpserver/stream", nil, nil,
		"what is written to clients is changed without the protocol's server"},
	{"gateway/mcpserver/outbox", nil, nil,
		"the order of notifications is independent of what they are"},
	{"gateway/mcpserver/views", []string{"gateway/catalog", "internal/..."}, nil,
		"which tools an interface may call depends on what upstreams offer, not on the protocol's server"},
	{"gateway/mcpserver/taskid", []string{"internal/..."}, nil,
		"an ID depends on the task and its caller only"},
	{"gateway/mcpserver/ticket", nil, nil,
		"a ticket is signed text about a pending call"},
	{"gateway/mcpserver", gatewayPackages("gateway/mcpserver/naming", "gateway/mcpserver/ticket", "gateway/mcpserver/outbox", "gateway/mcpserver/session", "gateway/mcpserver/statekey", "gateway/mcpserver/stream", "gateway/mcpserver/taskid", "gateway/mcpserver/views", "gateway", "gateway/compat", "gateway/workflow/...", "gateway/task", "internal/..."), []string{"gateway/httpserver", "gateway/upstream/upstreamtest"}, // MCP over HTTP, through the server, and a server with tasks
		"a handler decodes, calls a method of the gateway and encodes; it gets what it needs from the gateway"},
	{"gateway/httpapi", gatewayPackages("gateway", "gateway/workflow/...", "gateway/task", "internal/..."), []string{"gateway/upstream/...", "sandbox/..."}, // the results of the methods
		"a handler decodes, calls a method of the gateway and encodes; it gets what it needs from the gateway"},
	{"gateway/settingsedit", []string{"internal/..."}, nil,
		"editing the settings file is independent of the gateway, which puts it into force"},
	{"gateway/addition", []string{"sandbox/image", "internal/..."}, []string{"gateway/settingsedit"}, // the real editor
		"an entry of the settings is made from what registries say and people give; others put it into force"},
	{"gateway/rehearsal", []string{"gateway/toolcall", "gateway/catalog", "gateway/history", "gateway/auditor", "gateway/guard", "internal/..."}, nil,
		"calls on record are decided by rules; higher packages say which"},
	{"gateway/dashboard", gatewayPackages("gateway", "gateway/addition", "gateway/settingsedit", "gateway/rehearsal", "gateway/workflow/...", "gateway/task", "internal/..."), []string{"gateway/upstream/...", "gateway/trust", "gateway/typecheck", "sandbox/bridge"}, // the states that pages show, and faults of programs
		"a page calls a method of the gateway and shows the result; it gets what it needs from the gateway"},
	{"gateway/signin", []string{"internal/..."}, nil,
		"signing in at an OpenID provider knows the provider and the caller that it gives, and neither pages nor the gateway"},
	{"gateway/httpserver", []string{"gateway/signin", "internal/..."}, nil,
		"the server authenticates requests and passes them to the handlers that it is given"},
	{"gateway/task/rules", []string{"internal/..."}, nil,
		"a plan is made from words and definitions only"},
	{"gateway/task", []string{"gateway/task/rules", "gateway/toolcall", "gateway/execution", "gateway/toolsearch", "gateway/history", "internal/..."}, []string{"gateway", "gateway/approvals", "gateway/budgets"}, // the real gateway
		"a task searches tools and runs programs through the gateway that it is given"},
	{"gateway/workflow/...", gatewayPackages("gateway", "gateway/workflow/...", "gateway/task", "internal/..."), []string{"sandbox/...", "codegen/...", "gateway/upstream/..."}, // the real gateway
		"a workflow calls tools only through Gateway.Call, which applies policy, privacy, limits and audit"},
	{"gateway/upstream/process", []string{"internal/..."}, nil,
		"starting and stopping a process is independent of the protocol"},
	{"gateway/upstream/budget", []string{"internal/..."}, nil,
		"memory accounting is independent of the content of messages"},
	{"gateway/upstream/jsontext", []string{"internal/..."}, nil,
		"parsing a text is independent of the request"},
	{"gateway/upstream/paramheader", nil, nil,
		"headers of arguments depend on a schema and arguments only"},
	{"gateway/upstream/deferred", []string{"internal/..."}, nil,
		"waiting for a result is independent of the connection: a session sends the requests"},
	{"gateway/upstream/capability", []string{"internal/..."}, nil,
		"what is declared depends on what the caller supports only"},
	{"gateway/upstream/backoff", nil, nil,
		"it computes delays"},
	{"gateway/upstream/subscription", nil, nil,
		"what callers subscribe to is independent of the connection"},
	{"gateway/upstream/serial", nil, nil,
		"the order of calls is independent of what they are"},
	{"gateway/upstream/inprocess", nil, nil,
		"serving tools of this process is independent of what they are"},
	{"gateway/upstream/webapi", []string{"internal/..."}, nil,
		"requests to an HTTP API are independent of what describes it"},
	{"gateway/upstream/apitools", []string{"gateway/upstream/inprocess", "gateway/upstream/webapi", "internal/..."}, nil,
		"tools of an API are served and called in the same way, whatever describes it"},
	{"gateway/upstream/openapi", []string{"gateway/upstream/apitools", "gateway/upstream/inprocess", "gateway/upstream/webapi", "internal/..."}, nil,
		"the tools of an API are made from its document and served in this process"},
	{"gateway/upstream/graphql", []string{"gateway/upstream/apitools", "gateway/upstream/inprocess", "gateway/upstream/webapi", "internal/..."}, nil,
		"the tools of an API are made from its schema and served in this process"},
	{"gateway/upstream/grpc", []string{"gateway/upstream/apitools", "gateway/upstream/inprocess", "gateway/upstream/webapi", "internal/..."}, nil,
		"the tools of a server are made from its descriptors and served in this process"},
	{"gateway/upstream/commandtools", []string{"gateway/upstream/inprocess", "gateway/upstream/process", "internal/..."}, nil,
		"the tools of programs are served in this process; the gateway starts their sandboxes"},
	{"gateway/upstream/webtools", []string{"gateway/upstream/inprocess", "gateway/upstream/webapi", "internal/..."}, nil,
		"the tools that send requests are served in this process"},
	{"gateway/upstream", []string{"gateway/upstream/commandtools", "gateway/upstream/inprocess", "gateway/upstream/webtools", "gateway/upstream/process", "gateway/upstream/backoff", "gateway/upstream/budget", "gateway/upstream/capability", "gateway/upstream/deferred", "gateway/upstream/jsontext", "gateway/upstream/paramheader", "gateway/upstream/serial", "gateway/upstream/subscription", "gateway/upstream/openapi", "gateway/upstream/graphql", "gateway/upstream/grpc", "gateway/upstream/webapi", "internal/..."}, []string{"gateway/upstream/upstreamtest"}, // the server with tasks
		"the peers under gateway are independent: an upstream session needs no sandbox and no index"},
	{"gateway/upstream/oauth", []string{"internal/..."}, []string{"gateway/upstream/oauth/oauthtest"}, // the server that tests log in to
		"getting a token is independent of sessions: a session uses an Authorizer"},
	{"gateway/upstream/...", []string{"gateway/upstream", "internal/..."}, nil,
		"tests of sessions are above upstream and below the gateway"},
	{"gateway/resultschema", []string{"internal/..."}, nil,
		"result schemas are learned from calls only"},
	{"gateway/typecheck", []string{"internal/..."}, []string{"sandbox", "codegen/..."}, // real checkers, in real sandboxes, on real wrappers
		"a checker communicates with a language server over a pipe; the gateway starts it in a sandbox"},
	{"gateway/misuse", []string{"codegen", "internal/..."}, nil,
		"the text of a program is compared with results; the gateway hands both in"},
	{"gateway/feedback", []string{"internal/..."}, nil,
		"feedback is learned from tool ids and query words only"},
	{"gateway/embeddings", []string{"internal/..."}, nil,
		"it computes vectors of texts and ranks ids by them; the gateway defines the text of a tool"},
	{"gateway/trust", []string{"internal/..."}, nil,
		"trust is decided from the definition and the lock file only"},
	{"gateway/toolcall", []string{"internal/..."}, nil,
		"the types of a call are independent of the middleware"},
	{"gateway/execution", []string{"gateway/toolcall", "gateway/typecheck", "sandbox/...", "internal/..."}, nil,
		"a program and its result are plain values that all higher packages may use"},
	{"gateway/workspaces", []string{"gateway/toolcall", "gateway/execution", "sandbox", "internal/..."}, nil,
		"it opens files by name for a caller; higher packages read and run them"},
	{"gateway/environments", []string{"gateway/toolcall", "gateway/execution", "sandbox/...", "internal/..."}, []string{"codegen/runtime"}, // the real guest
		"an environment is built in sandboxes that the gateway provides"},
	{"gateway/isolation", []string{"gateway/upstream/process", "sandbox", "sandbox/checkpoint", "sandbox/deps", "sandbox/egress/...", "sandbox/image", "internal/..."}, []string{"gateway", "gateway/upstream/...", "codegen/runtime", "sandbox/image/imagetest", "sandbox/sandboxtest"}, // real sessions over the process, real sandboxes
		"it starts the process of an upstream in a sandbox; the session that speaks with it is independent"},
	{"gateway/history", []string{"gateway/toolcall", "gateway/execution", "sandbox/...", "internal/..."}, nil,
		"executions are recorded from their results and calls only"},
	{"gateway/timeline", []string{"gateway/toolcall", "gateway/execution", "sandbox", "internal/..."}, nil,
		"counts over time are independent of the components that are counted"},
	{"gateway/cluster", []string{"gateway/toolcall", "sandbox/workers", "internal/..."}, []string{"sandbox"}, // the interpreters of a worker
		"what a cluster is made of does not depend on what runs there"},
	{"gateway/approvals", []string{"gateway/toolcall", "gateway/execution", "sandbox", "internal/..."}, nil,
		"people are asked about a call by its decision; higher packages have the rules"},
	{"gateway/connections", []string{"gateway/toolcall", "gateway/upstream/oauth", "internal/..."}, []string{"gateway", "gateway/auditor", "gateway/upstream/oauth/oauthtest"}, // real sessions of several principals
		"a login of a principal is independent of the session that uses it"},
	{"gateway/catalog", []string{"gateway/toolcall", "gateway/trust", "gateway/resultschema", "gateway/upstream/...", "codegen/...", "index/...", "internal/..."}, nil,
		"the catalog is independent of callers and of decisions about calls"},
	{"gateway/confine", []string{"gateway/toolcall", "gateway/catalog", "internal/..."}, nil,
		"which tools exist for a caller depends on the settings and the catalog, and not on decisions about calls"},
	{"gateway/guard", []string{"gateway/toolcall", "gateway/catalog", "gateway/execution", "gateway/privacy", "gateway/workspaces", "gateway/history", "gateway/approvals", "gateway/auditor", "internal/..."}, nil,
		"a call is decided by its definition, from the catalog, and the labels that were read"},
	{"gateway/toolsearch", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/confine", "gateway/guard", "gateway/trust", "gateway/feedback", "gateway/embeddings", "codegen/...", "index/...", "internal/..."}, nil,
		"it ranks hits from the catalog and other sources; higher packages define the sources"},
	{"gateway/replay", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/privacy", "gateway/history", "gateway/guard", "internal/..."}, nil,
		"a call is answered from a journal and the annotations of its tool; higher packages run programs"},
	{"gateway/executor", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/confine", "gateway/workspaces", "gateway/environments", "gateway/history", "gateway/approvals", "gateway/auditor", "gateway/budgets", "gateway/guard", "gateway/replay", "gateway/typecheck", "gateway/misuse", "codegen/...", "sandbox/...", "internal/..."}, nil,
		"it runs a program with lower packages; skills and callers are above"},
	{"gateway/skills", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/environments", "gateway/history", "gateway/auditor", "gateway/guard", "gateway/toolsearch", "codegen/...", "sandbox/...", "index", "internal/..."}, nil,
		"it saves, finds and reads skills; the executor that it is given runs their code"},
	{"gateway/plugin/folder", []string{"internal/..."}, nil,
		"a manifest and a lock file are read without running anything"},
	{"gateway/plugin", []string{"gateway/plugin/folder", "gateway/toolcall", "codegen/bundle", "sandbox", "internal/..."}, []string{"gateway", "gateway/execution", "gateway/dashboard", "gateway/auditor"}, // the real gateway, a page with what a plugin shows, and what is on record
		"a plugin answers requests from its sandbox; higher packages connect it to calls, programs and results"},
	{"gateway/budgets", []string{"gateway/toolcall", "internal/..."}, nil,
		"what a principal uses is counted from calls and amounts only; higher packages measure them"},
	{"gateway/reload", []string{"internal/..."}, nil,
		"it puts settings into force through a function of the gateway"},
	{"gateway/alerts", []string{"internal/..."}, nil,
		"alerts are sent from what others report; the gateway reports it"},
	{"gateway/auditor", []string{"gateway/toolcall", "gateway/execution", "internal/..."}, nil,
		"it records calls and results; the gateway provides the digests of definitions"},
	{"gateway/privacy", []string{"gateway/toolcall", "internal/..."}, nil,
		"privacy is a middleware that depends on calls and settings only"},
	{"gateway", gatewayPackages("gateway/confine", "gateway/isolation", "gateway/upstream/...", "gateway/trust", "gateway/resultschema", "gateway/typecheck", "gateway/feedback", "gateway/embeddings", "codegen/...", "sandbox/...", "index/...", "internal/..."), nil,
		"the gateway wires its packages; handlers and the workflow engine are above it"},
	{"codegen/...", []string{"internal/..."}, nil,
		"the peers under gateway are independent: codegen turns tools into files in memory and runs nothing"},
	{"sandbox/runsc", []string{"internal/..."}, nil,
		"runsc is an adapter to one program; higher packages decide what a sandbox is used for"},
	{"sandbox/egress/edge", nil, []string{"internal/testutil/..."},
		"it sends the requests of one sandbox to one host; higher packages say what they get"},
	{"sandbox/egress", []string{"sandbox/egress/edge", "internal/hostdial"}, []string{"internal/testutil/..."},
		"it decides about names and connections of one sandbox; higher packages say which are allowed"},
	{"sandbox/checkpoint", []string{"internal/..."}, nil,
		"it keeps files and reads logs of runsc; higher packages start sandboxes from them"},
	{"sandbox/rights", nil, []string{"internal/testutil"},
		"it reads what the kernel allows; higher packages start sandboxes"},
	{"sandbox/zygote", nil, nil,
		"it speaks the protocol of one process; higher packages decide what it forks for"},
	{"sandbox/image", []string{"internal/..."}, nil,
		"it unpacks an image to a directory; higher packages use the directory"},
	{"sandbox/deps", []string{"sandbox", "internal/..."}, []string{"codegen/runtime", "sandbox/image/..."},
		"it installs packages in a sandbox, whose files become a layer of other sandboxes"},
	{"sandbox/bridge", []string{"internal/..."}, nil,
		"the bridge turns frames into calls of a Caller; it is independent of the runtime and the gateway"},
	{"sandbox/...", []string{"internal/..."}, []string{"codegen/runtime"}, // the real guest, in real sandboxes
		"the peers under gateway are independent, and a worker uses the sandbox without the gateway"},
	{"index/...", []string{"internal/..."}, nil,
		"the peers under gateway are independent: the index ranks documents and needs no upstream"},
	{"tools", nil, []string{"internal/testutil", "internal/testutil/browser"},
		"tools holds the scripts of the build and their tests, one of which looks at the site"},
	{"tools/pictures", nil, []string{"internal/testutil", "internal/testutil/ptytest"},
		"tools/pictures records what terminals show of the binary, which it only starts"},
	{"tools/upstreams", []string{"internal/packed"}, nil,
		"the pinned npm servers are listed once, for make and for the programs that install them"},
	{"tools/editor", nil, []string{"internal/testutil"},
		"the editor of the dashboard is bundled from npm packages, and committed"},
	{"tools/vectors", []string{"index", "internal/testutil/ireval"}, nil,
		"the built-in data of index/wordvec is generated from tools as index reads them, manually and never in a build"},
	{"tools/names", []string{"internal/names", "internal/pii"}, nil,
		"the built-in data of internal/names is generated manually and never in a build, and evaluated together with pii"},
	{"internal/jsontype", nil, nil,
		"JSON types are shared by all packages, so they use only the standard library"},
	{"internal/tool", []string{"internal/jsontype"}, nil,
		"internal/tool has the types that all packages share, so it uses only the standard library and internal/jsontype"},
	{"internal/argcheck", []string{"internal/suggest", "internal/sanitize", "internal/tool"}, nil,
		"arguments are checked from the schema and the arguments only"},
	{"internal/testutil/refpage", []string{"internal/testutil", "internal/testutil/golden"}, nil,
		"a page of the reference is written from the facts that a test gives it"},
	{"internal/...", []string{"internal/..."}, nil,
		"internal is the lowest layer: it imports no higher package"},
}...)

// An owner is a rule for a library: only its packages may import the library, so that it can be replaced in one place.
type libraryOwner struct {
	library  string   // an import path and all below it, foreign or of the standard library
	packages []string // patterns of the packages that may import it
	tests    []string // patterns of the packages whose test files may import it in addition
	why      string
}

var libraryOwners = []libraryOwner{
	{"github.com/modelcontextprotocol/go-sdk", []string{"gateway/upstream/...", "gateway/mcpserver", "gateway/mcpserver/session", "bench/..."},
		[]string{"cmd/...", "gateway/..."},
		"only client and server of the protocol use the SDK's types; other packages use internal/tool"},
	{"github.com/blevesearch", []string{"index/...", "bench/search/baseline"}, nil,
		"bleve is an implementation detail of index; the benchmark uses it as a baseline"},
	{"gvisor.dev/gvisor", []string{"sandbox/egress"}, nil,
		"the network of a sandbox ends in gVisor's TCP/IP stack; other packages use runsc as a program"},
	{"golang.org/x/net", []string{"sandbox/egress"}, nil,
		"names are resolved for sandboxes in one place"},
	{"github.com/RoaringBitmap", []string{"index"}, nil,
		"bleve's interface of segments uses it for deleted documents"},
	{"github.com/gorilla/websocket", []string{"sandbox/bridge"}, nil,
		"the bridge is the only connection out of a sandbox, so one package reads its frames"},
	{"github.com/vektah/gqlparser", []string{"gateway/upstream/graphql"}, nil,
		"one package reads GraphQL"},
	{"gopkg.in/yaml.v3", []string{"internal/config", "internal/settingsfile", "gateway/upstream/openapi", "internal/skill", "internal/yamledit", "internal/clients", "internal/yamlstrict", "internal/keyschema", "gateway/plugin/folder", "gateway/workflow/spec", "gateway/workflow/flowtest", "bench/firsttry"}, []string{"cmd/..."}, // as Lima reads its configuration
		"yamlstrict reads YAML of people strictly, with positions of errors; yamledit and settingsfile edit it, clients reads other programs' settings"},
	{"github.com/pelletier/go-toml", []string{"internal/clients"}, nil,
		"other programs' settings are read and written in one place"},
	{"github.com/tailscale/hujson", []string{"internal/clients"}, nil,
		"other programs' settings are read and written in one place"},
	{"github.com/zalando/go-keyring", []string{"internal/secret"}, []string{"gateway/upstream/oauth", "internal/clients"}, // its keyring in memory
		"only one package reads the keyring"},
	{"github.com/zitadel/oidc", []string{"gateway/httpserver", "gateway/signin", "internal/testutil/authserver"}, []string{"gateway/..."},
		"the HTTP server checks access tokens, and people sign in; in tests it is the authorization server"},
	{"github.com/go-jose/go-jose", []string{"internal/testutil/authserver"}, nil,
		"zitadel/oidc's storage interface, which the authorization server of the tests implements, uses its key types"},
	{"github.com/evanw/esbuild", []string{"codegen/...", "tools/editor"}, []string{"cmd/..."}, // as people bundle their programs
		"esbuild is an implementation detail of codegen, and bundles the editor of the dashboard"},
	{"github.com/nats-io", []string{"internal/store", "internal/natsconn", "internal/natsstream", "gateway/upstream/single", "sandbox/workers", "internal/testutil/natscluster"}, []string{"cmd/sallyport"}, // a client without permissions
		"records are kept and links to workers and to other gateways are made in one package each, which share how to connect and what carries a link"},
	{"github.com/robfig/cron", []string{"internal/store"}, nil,
		"schedules are parsed and evaluated where they are stored"},
	{"github.com/nyaruka/phonenumbers", []string{"internal/pii"}, nil,
		"only one package recognizes personal data"},
	{"cel.dev/cel-go", []string{"internal/expr"}, nil,
		"one package defines cost limits and error messages of expressions, for policy and workflows"},
	{"github.com/spf13", []string{"cmd/..."}, nil,
		"only cmd parses the command line; other packages take plain arguments"},
	{"github.com/dlclark/regexp2", []string{"internal/tokens"}, nil,
		"its expressions look ahead, and take more than linear time; they see text only to count tokens"},
	{"go.opentelemetry.io", []string{"internal/telemetry/..."}, nil,
		"one package defines and exports telemetry; other packages use its spans and counters"},
	{"github.com/prometheus", []string{"internal/telemetry/..."}, nil,
		"one package defines and exports telemetry; other packages use its spans and counters"},
	{"google.golang.org/protobuf", []string{"internal/telemetry/...", "gateway/upstream/grpc", "internal/testutil/grpcserver"}, nil,
		"OTLP and gRPC upstreams are the only protobuf here"},
	{"google.golang.org/grpc", []string{"internal/testutil/grpcserver"}, nil,
		"it is the server of tests: the client of connect is smaller"},
	{"connectrpc.com", []string{"gateway/upstream/grpc"}, nil,
		"one package speaks gRPC"},
	{"github.com/opencontainers/runtime-spec", []string{"sandbox/..."}, nil,
		"only the sandbox writes an OCI bundle"},
	{"github.com/google/go-containerregistry", []string{"sandbox/image/..."}, nil,
		"one package pulls and verifies images; other packages use directories"},
	{"github.com/klauspost/compress", []string{"internal/packed"}, nil,
		"embedded files are decompressed in one place"},
	{"github.com/chromedp", []string{"internal/testutil/browser"}, nil,
		"only tests use a real browser, and one package drives it"},
	{"os/exec", []string{"internal/desktop", "sandbox", "sandbox/runsc", "sandbox/egress", "sandbox/remote", "gateway/isolation", "gateway/upstream", "gateway/upstream/process", "cmd/...", "bench/...", "gateway/upstream/upstreamtest", "internal/testutil", "internal/testutil/apiserver", "internal/testutil/graphqlserver", "internal/testutil/helmchart", "internal/testutil/natscluster", "internal/testutil/netcluster", "sandbox/image/imagetest"}, []string{"..."},
		"processes are started for the runtime, ssh to a remote runtime, stdio upstreams, desktop notifications and the doctor, egress changes the command of the runtime; other packages in sandbox, isolation, and testutil, only look up programs, which .golangci.yml checks"},
}

// dependencies are all direct dependencies and what each is for.
var dependencies = map[string]string{
	"cel.dev/cel-go":                         "expressions in the policy and in workflows: typed, bounded",
	"github.com/blevesearch/bleve/v2":        "the search index over tools",
	"github.com/blevesearch/bleve_index_api": "the types of bleve's interfaces",
	// These two are parts of bleve and add nothing to the binary. Its interface of a segment uses their types; an own
	// segment implementation halves the time to build an index.
	"github.com/RoaringBitmap/roaring/v2":          "the sets in bleve's interface of a segment",
	"github.com/blevesearch/scorch_segment_api/v2": "bleve's interface of a segment",
	"github.com/chromedp/cdproto":                  "DevTools commands that chromedp does not wrap, in tests",
	"github.com/chromedp/chromedp":                 "Chromium, driven over its DevTools protocol, in tests",
	"github.com/dlclark/regexp2/v2":                "cuts text into the pieces of a tokenizer, as its expressions look ahead",
	"github.com/evanw/esbuild":                     "compiles and bundles TypeScript",
	"github.com/go-jose/go-jose/v4":                "the key types of zitadel/oidc's storage interface, in tests",
	"github.com/google/go-cmp":                     "readable differences in tests",
	"github.com/google/go-containerregistry":       "OCI images: pulled, verified, flattened",
	"github.com/gorilla/websocket":                 "the bridge between sandbox and gateway",
	"github.com/klauspost/compress":                "decompression of embedded files; libraries contain it already",
	"github.com/minio/highwayhash":                 "the checksum of each record in the storage engine, which depends on it already",
	"github.com/modelcontextprotocol/go-sdk":       "the protocol, as client and as server",
	"github.com/nats-io/jwt/v2":                    "accounts and users of NATS servers, for workers and tests",
	"github.com/nats-io/nkeys":                     "the keys of these accounts and users",
	"github.com/nats-io/nats-server/v2":            "records and logs, embedded: durable, fenced, and the same on a cluster",
	"github.com/nats-io/nats.go":                   "the client of the embedded NATS server",
	"github.com/nyaruka/phonenumbers":              "the numbering plans of all countries, to recognize telephone numbers",
	"github.com/opencontainers/runtime-spec":       "the types of an OCI bundle",
	"github.com/pelletier/go-toml/v2":              "reading of Codex's settings, which are TOML",
	// These are one library in many modules.
	"go.opentelemetry.io/otel":                                          "traces and metrics: attributes, trace context",
	"go.opentelemetry.io/otel/metric":                                   "metrics: counters, gauges and histograms",
	"go.opentelemetry.io/otel/trace":                                    "traces: spans",
	"go.opentelemetry.io/otel/sdk":                                      "traces: sampling, batches, the description of the process",
	"go.opentelemetry.io/otel/sdk/metric":                               "metrics: sums and histograms, with a bounded number of series",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp":   "export of spans over OTLP",
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp": "export of metrics over OTLP",
	"go.opentelemetry.io/otel/exporters/prometheus":                     "metrics under the names that Prometheus has for them",
	"go.opentelemetry.io/proto/otlp":                                    "the messages of OTLP, for the collector of the tests",
	"google.golang.org/protobuf":                                        "messages of gRPC upstreams by their descriptors, and those of OTLP in tests",
	"google.golang.org/grpc":                                            "the gRPC server of the tests",
	"connectrpc.com/connect":                                            "calls of gRPC upstreams over net/http: smaller in the binary than google.golang.org/grpc",
	"connectrpc.com/grpcreflect":                                        "descriptors of gRPC upstreams, by both versions of reflection",
	"github.com/prometheus/client_golang":                               "the metrics page, with metrics of Go and of the process",
	"github.com/robfig/cron/v3":                                         "parsing and evaluation of schedules: the engine stores times only, and its parser, this one, is not exported",
	"github.com/rogpeppe/go-internal":                                   "testscript for tests of the command line, and the diffs of reviews",
	"github.com/santhosh-tekuri/jsonschema/v6":                          "checks of arguments against a tool's schema",
	"github.com/spf13/cobra":                                            "the command line",
	"github.com/spf13/pflag":                                            "the flags of cobra's commands, as manual pages list them",
	"github.com/vektah/gqlparser/v2":                                    "GraphQL: schemas and selections of fields are parsed and checked as servers do",
	"github.com/tailscale/hujson":                                       "JSON with comments: other clients' settings are edited, not rewritten",
	"github.com/zalando/go-keyring":                                     "the operating system's keyring",
	"github.com/zitadel/oidc/v3":                                        "sign-in at OpenID providers, checks of access tokens over HTTP, and the authorization server of the tests",
	"github.com/yosida95/uritemplate/v3":                                "matching a resource URI to the template of an upstream",
	"golang.org/x/net":                                                  "messages of DNS, which a sandbox asks for the addresses of hosts",
	"gvisor.dev/gvisor":                                                 "its TCP/IP stack, in which the network of a sandbox ends",
	"golang.org/x/oauth2":                                               "OAuth tokens, and their refresh",
	"golang.org/x/sync":                                                 "semaphores: calls wait in order of arrival",
	"golang.org/x/sys":                                                  "system calls that the standard library lacks",
	"golang.org/x/text":                                                 "messages of the schema checker, Unicode normal forms, widths of characters",
	"golang.org/x/time":                                                 "rate limits of unsolicited messages of upstreams",
	"gopkg.in/yaml.v3":                                                  "YAML with positions: upstreams.yaml, workflows, other clients' settings",
}

const maxDependencies = 55

// gatewayPackages returns the packages of the gateway, and others.
func gatewayPackages(others ...string) []string {
	return append([]string{"gateway/toolcall", "gateway/execution", "gateway/privacy", "gateway/workspaces", "gateway/environments", "gateway/history", "gateway/plugin", "gateway/approvals", "gateway/auditor", "gateway/alerts", "gateway/budgets", "gateway/catalog", "gateway/guard", "gateway/replay", "gateway/executor", "gateway/skills", "gateway/timeline", "gateway/toolsearch", "gateway/connections", "gateway/reload", "gateway/cluster"}, others...)
}
