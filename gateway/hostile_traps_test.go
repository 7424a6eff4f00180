package gateway_test

import (
	"time"

	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

func short(up *config.Upstream)       { up.Timeout = time.Second }
func patient(up *config.Upstream)     { up.Timeout = time.Minute }
func lenient(up *config.Upstream)     { up.MaxMessage = 128 << 20; up.Timeout = time.Minute }
func tight(up *config.Upstream)       { up.MaxMessage = 1 << 20 }
func echoes(parts ...string) []string { return append(parts, `{"say":"hello"}`) }

const hello = `{"say":"hello"}`

// overStdio are the traps of a process.
var overStdio = []trap{
	{mode: upstreamtest.Good, args: hello, says: echoes()},
	{mode: "junk-first", args: hello, says: echoes()},
	{mode: "junk-between", args: hello, says: echoes()},
	{mode: "partial-junk", args: hello, says: echoes()},
	{mode: "partial-frames", args: hello, says: echoes()},
	{mode: "partial-end", kind: tool.Upstream, says: []string{"bad.echo: upstream failed: exited with status 0"}},
	{mode: "frame-no-end", set: patient, kind: tool.Upstream, says: []string{"more than 64 MiB"}},
	{mode: "frame-no-end", set: lenient, kind: tool.Upstream, says: []string{"more than 128 MiB"}},
	{mode: "batch", says: []string{"batched"}},
	{mode: "batch-deep", kind: tool.Upstream, says: []string{"nested deeper than 1000 levels"}},

	{mode: "hang-start", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"upstream bad"}},
	{mode: "silent-discover", args: hello, waits: true, says: echoes()},
	{mode: "hang-discover", args: hello, patience: time.Minute, says: echoes()},
	{mode: "never-answers", set: short, kind: tool.Timeout, says: []string{"bad.echo gave no answer within "}},
	{mode: "slow-drip", set: short, kind: tool.Timeout, says: []string{"bad.echo gave no answer within "}},

	{mode: "exit-start", kind: tool.Upstream, says: []string{"exited with status 7", "no licence"}},
	{mode: "exit-initialize", kind: tool.Upstream, says: []string{"exited with status 7", "no licence"}},
	{mode: "exit-list", kind: tool.Upstream, says: []string{"exited with status 7", "no licence"}},
	{mode: "exit-call", kind: tool.Upstream, says: []string{"exited with status 7", "no licence", "may or may not have taken effect"}},
	{mode: "crash-loop", waits: true, kind: tool.Upstream, says: []string{"no licence"}, check: wantParked},
	{mode: "ignore-term", waits: true, args: hello, says: echoes()},
	{mode: "grandchild", args: hello, says: echoes()},
	{mode: "grandchild-session", args: hello, says: echoes(), strays: 1},
	{mode: "grandchildren-stay", args: hello, says: echoes()},
	{mode: "exit-leaves-grandchild", kind: tool.Upstream, says: []string{"exited with status 7", "no licence"}},
	{mode: "closes-stdout", waits: true, kind: tool.Upstream, says: []string{"closed its output"}},

	{mode: "flood-stderr", args: hello, set: patient, says: echoes()},
	{mode: "flood-pings", set: patient, kind: tool.Upstream, says: []string{"without reading the answers"}},
	{mode: "changes-for-ever", args: hello, says: echoes()},

	{mode: "asks-without-call", args: hello, says: echoes()},
	{mode: "asks-for-ever", set: patient, kind: tool.Upstream, says: []string{"without reading the answers"}},
	{mode: "input-required", kind: tool.Failed, says: []string{"requires input", "nobody is here"}},
}

// onBoth are traps in what is said; they are tried over both transports.
var onBoth = []trap{
	{mode: "frame-17m", set: patient, check: wantLength(17 << 20)},
	{mode: "frame-2m", set: tight, kind: tool.Upstream, says: []string{"bad.echo: upstream failed: sent a message of more than 1 MiB"}},
	{mode: "invalid-utf8", says: []string{"a\ufffd\ufffd\ufffd\ufffdb"}},
	{mode: "deep", kind: tool.Upstream, says: []string{"bad.echo returned an invalid result: it is nested deeper than 1000 levels"}, check: wantNext},
	{mode: "deep-1100", kind: tool.Upstream, says: []string{"nested deeper than 1000 levels"}, check: wantNext},
	{mode: "deep-900", says: []string{"kept"}},
	{mode: "duplicate-member", says: []string{"second"}}, // the last counts, as nearly everywhere
	{mode: "answers-unknown-ids", args: hello, says: echoes()},
	{mode: "answers-twice", says: []string{"first"}, check: wantSame("first")},
	{mode: "result-and-error", kind: tool.Failed, says: []string{"bad.echo: both"}},

	{mode: "hang-initialize", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"upstream bad"}},
	{mode: "hang-list", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"upstream bad"}},
	{mode: "hang-call", set: short, kind: tool.Timeout, says: []string{"bad.echo gave no answer within "}},

	{mode: "flood-notifications", args: hello, set: patient, says: echoes()},
	{mode: "flood-list-changed", args: hello, set: patient, says: echoes()},
	{mode: "flood-unknown", args: hello, set: patient, says: echoes()},
	{mode: "flood-progress", args: hello, set: patient, says: echoes()},

	{mode: "cursor-loop", args: hello, says: echoes(), check: wantTools(1)},
	{mode: "endless-pages", args: hello, says: echoes(), check: wantTools(1001)},
	{mode: "many-tools", args: hello, set: patient, says: echoes(), check: wantTools(10_000)},
	{mode: "duplicate-names", args: hello, says: echoes(), check: wantTools(1)},
	{mode: "hostile-names", args: hello, says: echoes(), check: wantCleanNames},
	{mode: "list-is-object", kind: tool.Upstream, says: []string{"cannot connect to upstream bad: tools/list: the result is not a list of tools"}},
	{mode: "list-is-null", kind: tool.Upstream, says: []string{"cannot connect to upstream bad: tools/list: the result is not a list of tools"}},
	{mode: "list-fails", kind: tool.Upstream, says: []string{"out of"}},
	{mode: "version-unknown", kind: tool.Upstream, says: []string{"unsupported protocol version", "1999-01-01"}},
	{mode: "version-number", kind: tool.Upstream, says: []string{"cannot connect to upstream bad"}},
	{mode: "version-huge", kind: tool.Upstream, says: []string{"unsupported protocol version"}},
	{mode: "initialize-fails", kind: tool.Upstream, says: []string{"go away"}},
	{mode: "hidden-text", args: hello, says: echoes(), waits: true, check: wantHeld("hidden", "its definition looks like an attack")},
	{mode: "changes-each-time", args: hello, says: echoes(), waits: true, check: wantHeld("moving", "its definition changed")},

	{mode: "schema-deep-ref", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-self-ref", args: `{}`, says: []string{`{}`}},
	{mode: "schema-doubling", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-remote-ref", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-lookahead", args: `{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}`, says: []string{`aaa!`}},
	{mode: "schema-enum", args: `{"a":"value 7"}`, kind: tool.NotFound, says: []string{"there is no tool bad.echo"}, check: wantSkipped("echo", "its definition has")},
	{mode: "schema-no-type", args: `{"a":"x"}`, says: []string{`{"a":"x"}`}},
	{mode: "schema-true", args: hello, says: echoes()},
	{mode: "schema-missing", args: hello, says: echoes()},
	{mode: "schema-nonsense", args: hello, says: echoes()}, // what cannot be checked here the upstream checks
	{mode: "schema-nested", args: hello, says: echoes(), check: wantSkipped("nested", "nested deeper than 1000 levels")},
	{mode: "schema-nested-1100", args: hello, says: echoes(), check: wantSkipped("nested", "nested deeper than 1000 levels")},

	{mode: "result-unknown-types", check: wantRaw(`"depth":9007199254740993`)},
	{mode: "result-big-integers", check: wantRaw(`{"n":9007199254740993,"m":-18446744073709551617}`)},
	{mode: "result-big-error", check: wantBigError},
	{mode: "result-no-object", kind: tool.Upstream, says: []string{"invalid result"}},
	{mode: "result-null", kind: tool.Upstream, says: []string{"invalid result"}},
	{mode: "result-odd-members", kind: tool.Upstream, says: []string{"invalid result: content is not a list"}},
	{mode: "result-many-blocks", check: wantBlocks(20_000)},
	{mode: "error-odd", kind: tool.Failed, says: []string{"bad.echo: an error without a message"}, check: wantNext},
	{mode: "error-big", kind: tool.Failed, says: []string{"bad.echo: "}},
}

// overHTTP are the traps of a web server.
var overHTTP = []trap{
	{mode: upstreamtest.Good, args: hello, says: echoes()},
	{mode: "http-500", kind: tool.Upstream, says: []string{"HTTP 500"}, check: wantNext},
	{mode: "http-429", kind: tool.Upstream, says: []string{"HTTP 429"}, check: wantNext},
	{mode: "http-html", kind: tool.Upstream, says: []string{"text/html"}},
	{mode: "http-empty", kind: tool.Upstream, says: []string{"the response is not a JSON-RPC message"}, check: wantNext},
	{mode: "http-truncated", kind: tool.Upstream, says: []string{"the response is not a JSON-RPC message"}, check: wantNext},
	{mode: "http-json", says: []string{"plain"}},
	{mode: "http-json-deep", kind: tool.Upstream, says: []string{"nested deeper than 1000 levels"}, check: wantNext},
	{mode: "http-json-odd", kind: tool.Failed, says: []string{"an error without a message"}, check: wantNext},
	{mode: "http-500-huge", kind: tool.Upstream, says: []string{"HTTP 500"}, check: wantNext},
	{mode: "http-huge-header", kind: tool.Upstream, says: []string{"header"}},
	{mode: "http-endless-headers", kind: tool.Upstream, says: []string{"header"}},
	{mode: "http-redirect-away", kind: tool.Upstream, says: []string{"redirects to https://", "another origin"}, check: wantNoCanary},
	{mode: "http-redirect-loop", kind: tool.Upstream, says: []string{"too many redirects"}},
	{mode: "http-gzip-bomb", set: patient, kind: tool.Upstream, says: []string{"more than 64 MiB"}, check: wantNext},
	{mode: "http-hang", set: short, kind: tool.Timeout, says: []string{"gave no answer within "}},
	{mode: "http-slow-headers", set: short, kind: tool.Timeout, says: []string{"gave no answer within "}},
	{mode: "http-slow-body", set: short, kind: tool.Timeout, says: []string{"gave no answer within "}},
	{mode: "http-body-hangs", set: short, kind: tool.Timeout, says: []string{"gave no answer within "}},
	{mode: "http-drip", set: short, kind: tool.Timeout, says: []string{"gave no answer within "}},
	{mode: "http-endless-event", set: patient, kind: tool.Upstream, says: []string{"more than 64 MiB"}, check: wantNext},
	{mode: "http-stream-ends", kind: tool.Upstream, says: []string{"bad.echo: upstream failed"}},
	{mode: "http-reset", kind: tool.Upstream, says: []string{"bad.echo: upstream failed: EOF"}},
	{mode: "http-session-missing", args: hello, says: echoes()}, // the server did not act on it: it is sent again
	{mode: "http-session-always-missing", kind: tool.Upstream, says: []string{"no longer knows the session", "has not taken effect"}, check: wantRequests("tools/call", 2)},
	{mode: "http-all-hang", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"upstream bad"}},
	{mode: "http-unauthorized", kind: tool.Denied, says: []string{"needs authorization: HTTP 401"}, check: wantQuiet},
	{mode: "http-stream-drips", args: hello, says: echoes()},
	{mode: "http-stream-floods", args: hello, says: echoes()},
	{mode: "http-stream-forges", args: hello, says: echoes()},
	{mode: "http-stream-endless-event", args: hello, says: echoes()},

	{mode: "sse-good", args: hello, says: echoes()},
	{mode: "sse-junk", args: hello, says: echoes()},
	{mode: "sse-two-endpoints", args: hello, says: echoes(), check: wantNoCanary},
	{mode: "sse-elsewhere", kind: tool.Upstream, says: []string{"wants messages sent to https://", "another origin"}, check: wantNoCanary},
	{mode: "sse-endpoint-is-none", kind: tool.Upstream, says: []string{"names no address"}},
	{mode: "sse-no-endpoint", patience: 2 * time.Second, kind: tool.Timeout, says: []string{"upstream bad"}},
	{mode: "sse-endless-event", set: patient, kind: tool.Upstream, says: []string{"more than 64 MiB"}},
	{mode: "sse-post-500", kind: tool.Upstream, says: []string{"HTTP 500"}, check: wantNext},
	{mode: "sse-post-hangs", set: short, kind: tool.Timeout, says: []string{"gave no answer within "}},
	{mode: "sse-cut", kind: tool.Upstream, says: []string{"ended the stream"}},
	{mode: "sse-half", kind: tool.Upstream, says: []string{"ended the stream"}},
}
