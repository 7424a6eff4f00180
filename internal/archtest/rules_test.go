package archtest

// A room is one package of the house, or a folder of them, and what of the house it may import.
// Rooms are tried in order and the first that matches a package counts, so a narrow one stands above a wide one.
type room struct {
	name    string   // "gateway", or "sandbox/..." for the package and all below it
	imports []string // patterns like name; a room may always import itself
	tests   []string // what its test files may import as well
	why     string
}

// product is what the verbs wire together.
var product = []string{"gateway/...", "codegen/...", "sandbox/...", "index/...", "internal/...", "tools/upstreams"}

// verbs are the packages of the groups of verbs, which are strangers to each other.
func verbs() (all []room) {
	for _, name := range []string{"accesscmd", "auditcmd", "benchcmd", "clientscmd", "doctorcmd", "server", "toolscmd", "topcmd", "upstreamscmd", "workflowcmd"} {
		r := room{"cmd/sallyport/internal/" + name, append([]string{"cmd/sallyport/internal/cli", "cmd/sallyport/internal/engine"}, product...), nil,
			"what several groups of verbs need is in cli: groups do not import each other"}
		if name == "benchcmd" {
			r.imports = append(r.imports, "bench/agent", "bench/endpoint", "bench/tokencount", "bench/local", "bench/stats", "bench/suite")
		}
		all = append(all, r)
	}
	return append(all, room{"cmd/sallyport/internal/cli", product, nil,
		"cli is what verbs share, and knows none of them"})
}

// Imports run down only: cmd, then the two faces, then workflow, then gateway, then its four peers, then internal.
var rooms = append(verbs(), []room{
	{"cmd/...", append([]string{"cmd/sallyport/internal/..."}, product...), []string{"bench/endpoint/...", "bench/suite"}, // a model to work with
		"cmd wires everything together; its verb bench alone measures with what make bench measures with"},
	{"bench/tokencount", []string{"bench/ordered"}, nil,
		"what a conversation costs is reckoned from what was said alone"},
	{"bench/ordered", nil, nil,
		"JSON is JSON"},
	{"bench/stats", nil, nil,
		"what many measurements come to is reckoned from them alone"},
	{"bench/suite", []string{"bench/tokencount", "tools/upstreams"}, []string{"internal/testutil/..."},
		"a task knows the world that it is asked of, and neither the product nor who plays it"},
	{"bench/...", []string{"gateway/...", "codegen/...", "sandbox/...", "index/...", "internal/...", "bench/...", "tools/upstreams"}, nil,
		"a benchmark drives the product from outside, as a client or through a package's public door, never through cmd"},
	{"gateway/mcpserver", gatewayRooms("gateway", "gateway/workflow/...", "internal/..."), []string{"gateway/httpserver"}, // MCP over HTTP, through the front door
		"a face decodes, calls one of Gateway's verbs and encodes; what it needs from below, the gateway tells it"},
	{"gateway/httpapi", gatewayRooms("gateway", "gateway/workflow/...", "internal/..."), []string{"gateway/upstream/...", "sandbox/..."}, // what the verbs answer
		"a face decodes, calls one of Gateway's verbs and encodes; what it needs from below, the gateway tells it"},
	{"gateway/dashboard", gatewayRooms("gateway", "gateway/workflow/...", "internal/..."), []string{"gateway/upstream/...", "gateway/trust"}, // the states that pages show
		"a face decodes, calls one of Gateway's verbs and shows what it gives; what it needs from below, the gateway tells it"},
	{"gateway/httpserver", []string{"internal/..."}, nil,
		"the front door hands requests on to faces that it is given; it knows who came, and no verb"},
	{"gateway/workflow/...", gatewayRooms("gateway", "gateway/workflow/...", "internal/..."), []string{"sandbox/...", "codegen/...", "gateway/upstream/..."}, // the real house
		"a workflow calls tools through Gateway.Call, the one door, where policy, privacy, limits and audit are"},
	{"gateway/upstream/process", []string{"internal/..."}, nil,
		"a program is started and ended without knowing what is said to it"},
	{"gateway/upstream/budget", []string{"internal/..."}, nil,
		"memory is counted without knowing what messages say"},
	{"gateway/upstream/jsontext", []string{"internal/..."}, nil,
		"a text is read without knowing what it is an answer to"},
	{"gateway/upstream", []string{"gateway/upstream/process", "gateway/upstream/budget", "gateway/upstream/jsontext", "internal/..."}, nil,
		"the peers under gateway are strangers to each other: a session to an upstream knows no sandbox and no index"},
	{"gateway/upstream/oauth", []string{"internal/..."}, []string{"gateway/upstream/oauth/oauthtest"}, // what tests log in to
		"a token for an upstream is got without knowing sessions: a session asks an Authorizer"},
	{"gateway/upstream/...", []string{"gateway/upstream", "internal/..."}, nil,
		"what tests and proves a session stands above it and below the gateway"},
	{"gateway/resultschema", []string{"internal/..."}, nil,
		"what results look like is learned and kept from calls alone"},
	{"gateway/typecheck", []string{"internal/..."}, []string{"sandbox", "codegen/..."}, // real checkers, in real sandboxes, on real wrappers
		"a checker speaks with a language server over a pipe; who starts it, and in what sandbox, is the gateway's matter"},
	{"gateway/feedback", []string{"internal/..."}, nil,
		"which tools were used after which words is learned and kept from ids and words alone"},
	{"gateway/embeddings", []string{"internal/..."}, nil,
		"an endpoint turns texts into vectors and ranks ids by them; what is a tool's text is the gateway's matter"},
	{"gateway/trust", []string{"internal/..."}, nil,
		"whether a definition may be trusted is decided from its text and the lock file alone"},
	{"gateway/toolcall", []string{"internal/..."}, nil,
		"a call's way is the same whatever stands on it"},
	{"gateway/execution", []string{"gateway/toolcall", "gateway/typecheck", "sandbox/...", "internal/..."}, nil,
		"a program and its result are plain values, which every room above may pass on"},
	{"gateway/workspaces", []string{"gateway/toolcall", "gateway/execution", "sandbox", "internal/..."}, nil,
		"files are opened by name for a caller; what reads and runs them stands above"},
	{"gateway/environments", []string{"gateway/toolcall", "gateway/execution", "sandbox/...", "internal/..."}, nil,
		"an environment is made in sandboxes that the gateway lends"},
	{"gateway/history", []string{"gateway/toolcall", "gateway/execution", "sandbox/...", "internal/..."}, nil,
		"what ran is recorded from its result and its calls alone"},
	{"gateway/approvals", []string{"gateway/toolcall", "gateway/execution", "sandbox", "internal/..."}, nil,
		"people are asked about a call by what the verdict says; the rules stand above"},
	{"gateway/catalog", []string{"gateway/toolcall", "gateway/trust", "gateway/resultschema", "gateway/upstream/...", "codegen/...", "index/...", "internal/..."}, nil,
		"what upstreams offer is known without knowing who calls it or what is decided about calls"},
	{"gateway/guard", []string{"gateway/toolcall", "gateway/catalog", "gateway/execution", "gateway/privacy", "gateway/workspaces", "gateway/history", "gateway/approvals", "gateway/auditor", "internal/..."}, nil,
		"what becomes of a call is decided from its definition and what was read; the catalog tells the definition"},
	{"gateway/toolsearch", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/guard", "gateway/trust", "gateway/feedback", "gateway/embeddings", "codegen/...", "index/...", "internal/..."}, nil,
		"a query becomes ranked hits of what the catalog and other sources have; what a source is, stands above"},
	{"gateway/replay", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/privacy", "gateway/history", "gateway/guard", "internal/..."}, nil,
		"a call is answered from a journal and from what its tool says of itself; programs are run above"},
	{"gateway/executor", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/workspaces", "gateway/environments", "gateway/history", "gateway/approvals", "gateway/auditor", "gateway/guard", "gateway/replay", "gateway/typecheck", "codegen/...", "sandbox/...", "internal/..."}, nil,
		"a program is run with what the rooms below give it; skills and those who run programs stand above"},
	{"gateway/skills", []string{"gateway/toolcall", "gateway/execution", "gateway/catalog", "gateway/environments", "gateway/history", "gateway/auditor", "gateway/guard", "gateway/toolsearch", "codegen/...", "sandbox/...", "index", "internal/..."}, nil,
		"a skill is saved, found and read here; its code is run by the executor that the library is given"},
	{"gateway/auditor", []string{"gateway/toolcall", "gateway/execution", "internal/..."}, nil,
		"what is put on record comes from calls and results; the digests of definitions are told by the gateway"},
	{"gateway/privacy", []string{"gateway/toolcall", "internal/..."}, nil,
		"personal data is a middleware's matter, which knows calls and settings alone"},
	{"gateway", gatewayRooms("gateway/upstream/...", "gateway/trust", "gateway/resultschema", "gateway/typecheck", "gateway/feedback", "gateway/embeddings", "codegen/...", "sandbox/...", "index/...", "internal/..."), nil,
		"the gateway is the wiring of its rooms; a face or the workflow engine stands on it"},
	{"codegen/...", []string{"internal/..."}, nil,
		"the peers under gateway are strangers to each other: codegen turns tools into files in memory and runs nothing"},
	{"sandbox/runsc", []string{"internal/..."}, nil,
		"runsc is one adapter to one program; what a sandbox is for is decided above it"},
	{"sandbox/image", []string{"internal/..."}, nil,
		"an image becomes a directory; what is done with it is decided above"},
	{"sandbox/deps", []string{"sandbox", "internal/..."}, []string{"codegen/runtime", "sandbox/image/..."},
		"packages are installed in a sandbox and become a layer of others"},
	{"sandbox/bridge", []string{"internal/..."}, nil,
		"the bridge turns frames into calls of the one-method Caller that it is handed; it knows no runtime and no gateway"},
	{"sandbox/...", []string{"internal/..."}, []string{"codegen/runtime"}, // the real guest, in real sandboxes
		"the peers under gateway are strangers to each other, and a worker uses the sandbox without the gateway"},
	{"index/...", []string{"internal/..."}, nil,
		"the peers under gateway are strangers to each other: the index ranks documents and knows no upstream"},
	{"tools", nil, nil,
		"tools holds the scripts of the build and their test"},
	{"tools/upstreams", nil, nil,
		"the pinned npm servers are named once, for make and for whoever installs them from the program"},
	{"tools/vectors", []string{"index", "internal/testutil/ireval"}, nil,
		"what index/wordvec has built in is learned from tools as index reads them, when somebody says so and never in a build"},
	{"tools/names", []string{"internal/names", "internal/pii"}, nil,
		"what internal/names has built in is made when somebody says so and never in a build, and judged beside what is found by form"},
	{"internal/jsontype", nil, nil,
		"what values have in common is a part of the vocabulary, and stands on the standard library alone"},
	{"internal/tool", []string{"internal/jsontype"}, nil,
		"internal/tool is the vocabulary that all others share, so it stands on the standard library alone, and on the shapes that a tool's results have"},
	{"internal/argcheck", []string{"internal/suggest", "internal/sanitize", "internal/tool"}, nil,
		"arguments are checked against a schema from the two texts alone"},
	{"internal/...", []string{"internal/..."}, nil,
		"internal is the ground floor: nothing there imports a room above"},
}...)

// An owner is the only place that may import a library: whoever wants another one changes it in one room.
type owner struct {
	library string   // an import path and all below it, foreign or of the standard library
	rooms   []string // patterns of the packages that may import it
	tests   []string // patterns of the packages whose test files may import it as well
	why     string
}

var owners = []owner{
	{"github.com/modelcontextprotocol/go-sdk", []string{"gateway/upstream/...", "gateway/mcpserver", "bench/..."},
		[]string{"cmd/...", "gateway/..."},
		"the SDK's types stop at the two doors of the protocol; between them the words are internal/tool's"},
	{"github.com/blevesearch", []string{"index/...", "bench/search/baseline"}, nil,
		"bleve is how index searches, not what it offers; the benchmark sets it up as others do, to compare with"},
	{"github.com/RoaringBitmap", []string{"index"}, nil,
		"what bleve names deleted documents with, to segments of ours too"},
	{"github.com/gorilla/websocket", []string{"sandbox/bridge"}, nil,
		"the bridge is the only way out of a sandbox, so there is one place that reads its frames"},
	{"gopkg.in/yaml.v3", []string{"internal/config", "internal/skill", "internal/yamledit", "internal/clients", "internal/yamlstrict", "gateway/workflow/spec", "gateway/workflow/flowtest"}, nil,
		"YAML that a person wrote is read strictly, with carets, in the two packages that do that; yamledit edits it, clients reads other programs' settings"},
	{"github.com/pelletier/go-toml", []string{"internal/clients"}, nil,
		"other programs' settings are read and written in one place"},
	{"github.com/tailscale/hujson", []string{"internal/clients"}, nil,
		"other programs' settings are read and written in one place"},
	{"github.com/zalando/go-keyring", []string{"internal/secret"}, []string{"gateway/upstream/oauth"}, // its keyring in memory
		"there is one place that knows where secrets lie"},
	{"github.com/zitadel/oidc", []string{"gateway/httpserver", "internal/testutil/authserver"}, []string{"gateway/..."},
		"tokens of clients are checked at the front door; in tests it is the authorization server"},
	{"github.com/go-jose/go-jose", []string{"internal/testutil/authserver"}, nil,
		"keys are zitadel/oidc's matter; its storage interface, which the authorization server of the tests has, names their types"},
	{"github.com/evanw/esbuild", []string{"codegen/..."}, []string{"cmd/..."}, // what people bundle their programs with
		"esbuild is how codegen compiles TypeScript, not what it offers"},
	{"github.com/nats-io", []string{"internal/store"}, nil,
		"records and logs are kept in one place, which the next engine would be behind as well"},
	{"github.com/robfig/cron", []string{"internal/store"}, nil,
		"what a schedule may say, and when it is due, is known where it is kept"},
	{"github.com/nyaruka/phonenumbers", []string{"internal/pii"}, nil,
		"what personal data looks like is known in one place"},
	{"cel.dev/cel-go", []string{"internal/expr"}, nil,
		"what expressions may cost, and how what is wrong with one is said, is decided in one place, for policy and workflows alike"},
	{"github.com/spf13", []string{"cmd/..."}, nil,
		"the command line is cmd's alone; everything else takes plain arguments"},
	{"github.com/tiktoken-go/tokenizer", []string{"internal/tokens", "cmd/...", "bench/..."}, nil,
		"a vocabulary costs megabytes and start-up time; only what reports token counts pays for it"},
	{"go.opentelemetry.io", []string{"internal/telemetry/..."}, nil,
		"what is measured and told to others is decided in one place, and all else speaks of spans and counts"},
	{"github.com/prometheus", []string{"internal/telemetry/..."}, nil,
		"what is measured and told to others is decided in one place, and all else speaks of spans and counts"},
	{"google.golang.org/protobuf", []string{"internal/telemetry/..."}, nil,
		"OTLP is the only protobuf here"},
	{"github.com/opencontainers/runtime-spec", []string{"sandbox/..."}, nil,
		"only the sandbox writes an OCI bundle"},
	{"github.com/google/go-containerregistry", []string{"sandbox/image/..."}, nil,
		"an image is pulled and verified in one place, and is a directory to all others"},
	{"github.com/chromedp", []string{"internal/testutil/browser"}, nil,
		"a page is looked at in a real browser in tests alone, and one package knows how that is driven"},
	{"os/exec", []string{"sandbox", "sandbox/runsc", "sandbox/remote", "gateway/upstream", "gateway/upstream/process", "cmd/...", "bench/...", "gateway/upstream/upstreamtest", "internal/testutil", "sandbox/image/imagetest"}, []string{"..."},
		"four places start processes: the runtime, ssh to another machine's runtime, the stdio upstreams, the doctor; the rest of sandbox, and testutil, only look for programs, and .golangci.yml holds it to that"},
}

// Every direct dependency and what it is for. A new one needs a line here and a reason to be more than these.
var dependencies = map[string]string{
	"cel.dev/cel-go":                         "expressions in the policy and in workflows: typed, bounded",
	"github.com/blevesearch/bleve/v2":        "search over tools",
	"github.com/blevesearch/bleve_index_api": "the types that bleve's own interfaces speak",
	// These two are parts of bleve: its interface of a segment is spoken in them, and a segment of
	// ours makes an index in half the time. They add nothing to what is built.
	"github.com/RoaringBitmap/roaring/v2":          "the sets in bleve's interface of a segment",
	"github.com/blevesearch/scorch_segment_api/v2": "bleve's interface of a segment",
	"github.com/chromedp/cdproto":                  "the commands of that protocol that chromedp has no verb for",
	"github.com/chromedp/chromedp":                 "Chromium, driven over its DevTools protocol, in tests",
	"github.com/evanw/esbuild":                     "TypeScript to JavaScript",
	"github.com/go-jose/go-jose/v4":                "the key types that zitadel/oidc's storage interface speaks, in tests",
	"github.com/google/go-cmp":                     "readable differences in tests",
	"github.com/google/go-containerregistry":       "OCI images: pulled, verified, flattened",
	"github.com/gorilla/websocket":                 "the bridge between sandbox and gateway",
	"github.com/minio/highwayhash":                 "the checksum that the engine of the records keeps of each; the engine has it built in already",
	"github.com/modelcontextprotocol/go-sdk":       "the protocol, as client and as server",
	"github.com/nats-io/nats-server/v2":            "records and logs, embedded: durable, fenced, and the same on a cluster",
	"github.com/nats-io/nats.go":                   "how one speaks with it",
	"github.com/nyaruka/phonenumbers":              "the numbering plans of all countries, to tell telephone numbers from others",
	"github.com/opencontainers/runtime-spec":       "the types of an OCI bundle",
	"github.com/pelletier/go-toml/v2":              "Codex's settings",
	// These are one library in many modules.
	"go.opentelemetry.io/otel":                                          "traces and metrics as all collectors take them: attributes, the context of a trace",
	"go.opentelemetry.io/otel/metric":                                   "its instruments",
	"go.opentelemetry.io/otel/trace":                                    "its spans",
	"go.opentelemetry.io/otel/sdk":                                      "sampling, batches, the resource",
	"go.opentelemetry.io/otel/sdk/metric":                               "sums and histograms, with bounded series",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp":   "spans over OTLP",
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp": "metrics over OTLP",
	"go.opentelemetry.io/otel/exporters/prometheus":                     "metrics under the names that Prometheus has for them",
	"go.opentelemetry.io/proto/otlp":                                    "the messages of OTLP, for the collector of the tests",
	"google.golang.org/protobuf":                                        "how they are read there",
	"github.com/prometheus/client_golang":                               "the page of metrics, with those of Go and of the process",
	"github.com/robfig/cron/v3":                                         "fields of schedules, checked and reckoned with: the engine keeps times only, and its own parser is this one, unexported",
	"github.com/rogpeppe/go-internal":                                   "testscript: the command line is tested as it is typed; and the diffs of reviews",
	"github.com/santhosh-tekuri/jsonschema/v6":                          "checks of arguments against a tool's schema",
	"github.com/spf13/cobra":                                            "the command line",
	"github.com/spf13/pflag":                                            "the flags of cobra's commands, as manual pages list them",
	"github.com/tailscale/hujson":                                       "JSON with comments: other clients' settings are edited, not rewritten",
	"github.com/tiktoken-go/tokenizer":                                  "token counts, without a network",
	"github.com/zalando/go-keyring":                                     "the operating system's keyring",
	"github.com/zitadel/oidc/v3":                                        "checks of access tokens over HTTP, and the authorization server of the tests",
	"github.com/yosida95/uritemplate/v3":                                "which upstream a resource is of that only a template names",
	"golang.org/x/oauth2":                                               "tokens and their refresh",
	"golang.org/x/sync":                                                 "a queue of calls that is first come, first served",
	"golang.org/x/sys":                                                  "system calls that the standard library lacks",
	"golang.org/x/text":                                                 "the printer that the schema checker words its findings with",
	"golang.org/x/time":                                                 "how much an upstream may say unasked",
	"gopkg.in/yaml.v3":                                                  "upstreams.yaml and workflows",
}

const maxDependencies = 46

// gatewayRooms returns the packages that the gateway is made of, and others.
func gatewayRooms(others ...string) []string {
	return append([]string{"gateway/toolcall", "gateway/execution", "gateway/privacy", "gateway/workspaces", "gateway/environments", "gateway/history", "gateway/approvals", "gateway/auditor", "gateway/catalog", "gateway/guard", "gateway/replay", "gateway/executor", "gateway/skills", "gateway/toolsearch"}, others...)
}
