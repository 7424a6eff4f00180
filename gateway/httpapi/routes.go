package httpapi

import (
	"net/http"
	"reflect"

	"sallyport/gateway/execution"
	"sallyport/gateway/timeline"
	"sallyport/gateway/workspaces"
	"sallyport/internal/tool"
)

// To add a route: add a line in routes, a method of api that answers it, and types for its request and response;
// every field needs a doc comment. Errors are *tool.Error; their kinds have a status.

// route is one operation of the API.
type route struct {
	method string
	// path is a pattern of [http.ServeMux], without a method.
	path string
	// summary is a short summary.
	summary string
	// name is the operationId in the OpenAPI document.
	name string
	// models says that a model should have it as a tool.
	models bool
	// params are the query parameters; others are refused.
	params []param
	// scope is the scope that the caller needs, see [tool.May]; "" for none.
	scope tool.Scope
	// engine says that it needs the workflow engine, which not every process has.
	engine bool
	// tasks is set if it needs tasks, which not every process has.
	tasks bool
	// body is the maximum size of the body in bytes, if larger than maxBody.
	body int64
	// in is the type of the request body, nil for none; out that of the response.
	in, out reflect.Type
	serve   func(r *http.Request) (any, error)
	// raw, if set, writes the response itself, of one of the types in media. Its error is answered as a problem.
	raw   func(w http.ResponseWriter, r *http.Request) error
	media []string
	// stream answers with events, if there is no other response or the client accepts them. events are their types.
	stream func(w http.ResponseWriter, r *http.Request) error
	events events
	// hasETag says that a raw response has an ETag.
	hasETag bool
	// fails are the statuses of problems beyond those of every route, for the OpenAPI document.
	fails []int
}

// routes returns all routes.
func (a *api) routes() []route {
	return append(taskRoutes{a.opts.Tasks}.routes(), []route{
		raw("/openapi.json", "the OpenAPI document", a.serveOpenAPI, "application/json").withName("get_openapi").
			withParams(choice("profile", "which operations have an operationId: tools, only those that a model should have; clients, all", profiles...)),
		public(get("/health", "how the gateway is", a.health)).withName("get_health"),
		public(get("/readyz", "whether it can do its work: 503 where it cannot", a.ready)).withName("get_readiness").failsWith(http.StatusServiceUnavailable),
		get("/approvals", "pending and recently answered approvals", a.approvals).withName("list_approvals"),
		get("/approvals/{id}", "one of them", a.approval).withName("get_approval"),
		post(tool.ScopeOperate, "/approvals/{id}", "allow or deny a pending call", a.decide).withName("answer_approval"),
		post(tool.ScopeExecute, "/execute", "run a program in a sandbox", a.execute).withName("execute_code").forModels().withMaxBody(maxProgram).
			withStream(a.executeStream, events{eventStarted: typeOf[ProgramBegun](), eventOutput: typeOf[execution.Printed](), eventDropped: typeOf[Dropped](), eventResult: typeOf[Executed](), eventError: typeOf[Problem]()}).
			failsWith(http.StatusNotFound, http.StatusServiceUnavailable),
		get("/tools", "the available tools", a.tools).withName("list_tools").
			withParams(word("upstream", "only of this one"), limit(defaultTools, maxTools), text("cursor", 300, "next of the previous page")),
		get("/tools/search", "find tools by what they do", a.searchTools).withName("search_tools").forModels().failsWith(http.StatusNotFound).
			withParams(text("q", 4<<10, "what a tool should do, or a name; without it upstreams are listed, or the tools of one"), choice("detail", "level of detail", details...),
				text("upstream", 200, "only of this one"), number("limit", 1, 200, 0, "how many at most; without it 20, or what fits the budget"),
				number("budget", 1, 20_000, 0, "how many tokens the answer may cost a model, as text; without it 400"), choice("language", "of signatures", "python", "typescript")),
		post(tool.ScopeCall, "/tools/call/{upstream}/{tool}", "call one tool", a.callTool).withName("call_tool").forModels().withMaxBody(maxProgram).
			failsWith(http.StatusConflict, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout),
		get("/tools/info/{upstream}/{tool}", "all about one tool", a.toolInfo).withName("get_tool"),
		get("/executions", "the last executions, the newest first", a.executions).withName("list_executions").
			withParams(word("status", "only with this status: ok, failed, held, timeout ..."), choice("language", "only programs in this", "python", "typescript"), word("principal", "only what this one ran"),
				text("text", 200, "only with this text in the title, program, output, error, client or a tool"),
				moment("since", "only started at or after this time"), limit(defaultExecutions, maxExecutions), word("cursor", "next of the previous page")),
		get("/executions/{id}", "one execution with its program and its calls", a.execution).withName("get_execution"),
		get("/executions/{id}/calls", "its calls with arguments and results, from its journal", a.calls).withName("list_execution_calls").
			withParams(number("after", 0, 1<<30, 0, "how many are left out from the start"), limit(defaultCalls, maxCalls)),
		get("/executions/live", "the running executions, the oldest first", a.live).withName("list_live_executions"),
		route{method: http.MethodGet, path: "/executions/{id}/output", summary: "the output of a running execution, live, until its end", scope: tool.ScopeRead}.withName("follow_execution").failsWith(http.StatusConflict).
			withStream(a.output, events{eventStarted: typeOf[ProgramBegun](), eventOutput: typeOf[execution.Printed](), eventDropped: typeOf[Dropped](), eventEnded: typeOf[ProgramEnded](), eventError: typeOf[Problem]()}),
		post(tool.ScopeExecute, "/executions/{id}/cancel", "stop it", a.cancelExecution).withName("cancel_execution"),
		get("/upstreams", "the state of the upstreams", a.upstreams).withName("list_upstreams"),
		forOperators(get("/upstreams/held", "definitions of tools that wait for an operator, or were rejected", heldRoutes{a.service}.list)).withName("list_held_tools"),
		post(tool.ScopeOperate, "/upstreams/held/{tool}", "approve one of them, and list those still held", heldRoutes{a.service}.approve).withName("approve_held_tool").failsWith(http.StatusConflict),
		post(tool.ScopeOperate, "/upstreams/held/{tool}/reject", "reject one of them, and list those still held", heldRoutes{a.service}.reject).withName("reject_held_tool").failsWith(http.StatusConflict),
		post(tool.ScopeOperate, "/upstreams/restart/{upstream}", "end the session of an upstream, and connect again", processRoutes{a.service}.restart).withName("restart_upstream").failsWith(http.StatusBadGateway),
		forOperators(get("/upstreams/log/{upstream}", "the end of the stderr of an upstream's process", processRoutes{a.service}.log)).withName("get_upstream_log").
			withParams(word("after", "only the lines since next of an earlier answer; 0 is the beginning")),
		forOperators(get("/plugins", "the plugins, and why some do not run", a.plugins)).withName("list_plugins").failsWith(http.StatusNotFound),
		forOperators(get("/cluster", "the gateways that share the store, and the workers", a.cluster)).withName("get_cluster").failsWith(http.StatusNotFound),
		get("/skills", "the skills that programs can import", a.skills).withName("list_skills"),
		get("/skills/{name}", "one of them, with its code", a.skill).withName("get_skill").withParams(number("version", 1, 1<<30, 0, "another version than the current one")),
		get("/workspaces", "the workspaces of the caller", a.workspaces).withName("list_workspaces").failsWith(http.StatusNotFound),
		get("/workspaces/{name}/files", "the files of one", a.files).withName("list_files").withParams(text("prefix", 1000, "only paths with this prefix")),
		forReaders(raw("/workspaces/{name}/files/{path...}", "the bytes of a file", a.readFile, "application/octet-stream")).withName("read_file"),
		changes(http.MethodPut, "/workspaces/{name}/files/{path...}", "write a file: the body is its bytes", a.writeFile).withName("write_file").withMaxBody(workspaces.MaxFile).
			failsWith(http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage),
		changes(http.MethodDelete, "/workspaces/{name}/files/{path...}", "remove a file", a.removeFile).withName("remove_file").failsWith(http.StatusPreconditionFailed),
		get("/savings", "the tokens that programs kept out of models' contexts", a.savings).withName("get_savings").withParams(number("days", 1, maxDays, defaultDays, "how many days back; 1 is by the hour")),
		forOperators(get("/timeline", "programs, failures, durations, queue, tools and clients over time", timelineRoute(a.service))).withName("get_timeline").
			withParams(choice("range", "how far back, 24h unless given", timeline.Ranges()...), word("tool", "only the calls of this tool, with p50_ms and p99_ms of them")),
		get("/budgets", "what was used of the budgets today, the most used first", budgetRoute(a.service)).withName("list_budgets"),
		forOperators(get("/audit", "the audit log, the newest first", a.audit)).withName("list_audit").failsWith(http.StatusNotFound).
			withParams(word("kind", "only of this kind; * matches any text"), word("tool", "only of this tool; * matches any text"), word("principal", "only of this one"), word("execution", "only of this one"),
				choice("decision", "only with this decision", "allow", "deny", "ask"), moment("since", "only at or after this time"), word("gateway", "from the copies in a shared store: of this chain, machine or id, or all; omitted: the log of this gateway"),
				limit(defaultEvents, maxEvents), word("cursor", "next of the previous page")),
		forMetrics(raw("/metrics", "metrics for Prometheus", a.metrics, "text/plain")).withName("get_metrics").failsWith(http.StatusNotFound),
		forEngine(get("/workflows", "the available workflows", workflowAPI{a}.listWorkflows)).withName("list_workflows"),
		forEngine(get("/workflows/{name}", "one of them, with its inputs and steps", workflowAPI{a}.workflow)).withName("get_workflow"),
		forEngine(post(tool.ScopeWorkflow, "/workflows/{name}/plan", "show what a run would do, without running it", workflowAPI{a}.plan)).withName("plan_workflow").withMaxBody(maxValues),
		forEngine(post(tool.ScopeWorkflow, "/workflows/{name}/runs", "start a run", workflowAPI{a}.launch)).withName("start_workflow").withMaxBody(maxValues),
		forEngine(get("/runs", "the last runs, the newest first", workflowAPI{a}.runs)).withName("list_runs").
			withParams(word("workflow", "only of this one"), choice("status", "only with this status", runStatuses...), limit(defaultRuns, maxRuns)),
		forEngine(get("/runs/{id}", "the current state of a run", workflowAPI{a}.run)).withName("get_run").
			withParams(number("wait", 1, maxWait, 0, "seconds to wait until it is over or waits for a person")),
		forEngine(get("/runs/{id}/events", "the events of a run", workflowAPI{a}.events)).withName("list_run_events").
			withParams(number("after", 0, 1<<30, 0, "how many are left out from the start"), number("wait", 1, maxWait, 0, "seconds to wait if there are none"),
				limit(maxPage, maxPage), choice("values", "whether to include inputs and outputs", "all", "none")),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/cancel", "stop it", workflowAPI{a}.cancel)).withName("cancel_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/resume", "resume one that failed, was canceled or was interrupted", workflowAPI{a}.resume)).withName("resume_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/replay", "start a new run that repeats everything from a step on", workflowAPI{a}.replay)).withName("replay_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/answer", "answer a form", workflowAPI{a}.answerForm)).withName("answer_form").withMaxBody(maxValues),
	}...)
}

// get returns a read-only route.
func get[Out any](path, does string, serve func(r *http.Request) (Out, error)) route {
	return route{method: http.MethodGet, path: path, summary: does, scope: tool.ScopeRead, out: reflect.TypeFor[Out](),
		serve: func(r *http.Request) (any, error) { return serve(r) }}
}

// post returns a route with a body, which is parsed strictly.
func post[In, Out any](scope tool.Scope, path, does string, serve func(r *http.Request, in In) (Out, error)) route {
	return route{method: http.MethodPost, path: path, summary: does, scope: scope, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](),
		serve: func(r *http.Request) (any, error) {
			var in In
			if err := readBody(r, &in); err != nil {
				return nil, err
			}
			return serve(r, in)
		}}
}

// raw returns a read-only route that writes its response itself.
func raw(path, does string, serve func(w http.ResponseWriter, r *http.Request) error, media ...string) route {
	return route{method: http.MethodGet, path: path, summary: does, raw: serve, media: media, hasETag: true}
}

// events are the types of a stream's events, by event name.
type events = map[string]reflect.Type

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// withStream lets a route answer with events.
func (rt route) withStream(stream func(w http.ResponseWriter, r *http.Request) error, are events) route {
	rt.stream, rt.events = stream, are
	return rt
}

// failsWith sets the statuses of problems beyond those of every route.
func (rt route) failsWith(statuses ...int) route {
	rt.fails = statuses
	return rt
}

// withName sets the name of a route: a verb and an object, in snake case.
func (rt route) withName(name string) route {
	rt.name = name
	return rt
}

// withParams sets the query parameters of a route; [queryOf] returns their values.
func (rt route) withParams(params ...param) route {
	rt.params = params
	return rt
}

// forModels marks a route that a model should have as a tool.
func (rt route) forModels() route {
	rt.models = true
	return rt
}

// forEngine makes a route fail without a workflow engine.
func forEngine(r route) route {
	r.engine = true
	return r
}

// withMaxBody sets the maximum size of a route's body, in bytes.
func (rt route) withMaxBody(most int64) route {
	rt.body = most
	return rt
}

// forOperators restricts a route to operators.
func forOperators(r route) route {
	r.scope = tool.ScopeOperate
	return r
}

// changes returns a route that changes a file. The body of a PUT is its content.
func changes[Out any](method, path, does string, serve func(r *http.Request) (Out, error)) route {
	rt := get(path, does, serve)
	rt.method, rt.scope = method, tool.ScopeFiles
	return rt
}

// forReaders makes a route require scope read.
func forReaders(r route) route {
	r.scope = tool.ScopeRead
	return r
}

// forMetrics makes a route require scope metrics.
func forMetrics(r route) route {
	r.scope, r.hasETag = tool.ScopeMetrics, false
	return r
}

// public makes a route public. Its handler returns less without scope read.
func public(r route) route {
	r.scope = ""
	return r
}
