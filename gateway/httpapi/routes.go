package httpapi

import (
	"net/http"
	"reflect"

	"sallyport/gateway/execution"
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
	// does is a short summary.
	does string
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
	// tagged says that a raw response has an ETag.
	tagged bool
	// fails are the statuses of problems beyond those of every route, for the OpenAPI document.
	fails []int
}

// routes returns all routes.
func (a *api) routes() []route {
	return []route{
		raw("/openapi.json", "the OpenAPI document", a.serveOpenAPI, "application/json").named("get_openapi").
			takes(choice("profile", "for whom: tools names all that a model should have and nothing else, clients names all", profiles...)),
		open(get("/health", "how the gateway is", a.health)).named("get_health"),
		open(get("/readyz", "whether it can do its work: 503 where it cannot", a.ready)).named("get_readiness").failsWith(http.StatusServiceUnavailable),
		get("/approvals", "pending and recently answered approvals", a.approvals).named("list_approvals"),
		get("/approvals/{id}", "one of them", a.approval).named("get_approval"),
		post(tool.ScopeOperate, "/approvals/{id}", "allow or deny a pending call", a.decide).named("answer_approval"),
		post(tool.ScopeExecute, "/execute", "run a program in a sandbox", a.execute).named("execute_code").forModels().bodies(maxProgram).
			streams(a.executeStream, events{eventStarted: of[ProgramBegun](), eventOutput: of[execution.Printed](), eventDropped: of[Dropped](), eventResult: of[Executed](), eventError: of[Problem]()}).
			failsWith(http.StatusNotFound, http.StatusServiceUnavailable),
		get("/tools", "the available tools", a.tools).named("list_tools").
			takes(word("upstream", "only of this one"), limit(usualTools, maxTools), text("cursor", 300, "next of the previous page")),
		get("/tools/search", "find tools by what they do", a.searchTools).named("search_tools").forModels().failsWith(http.StatusNotFound).
			takes(text("q", 4<<10, "what a tool should do, or a name; without it upstreams are listed, or the tools of one"), choice("detail", "level of detail", details...),
				text("upstream", 200, "only of this one"), number("limit", 1, 200, 0, "how many at most; without it what fits the budget"),
				number("budget", 1, 20_000, 0, "how many tokens the answer may cost a model, as text; without it 400"), choice("language", "of signatures", "python", "typescript")),
		post(tool.ScopeCall, "/tools/call/{upstream}/{tool}", "call one tool", a.callTool).named("call_tool").forModels().bodies(maxProgram).
			failsWith(http.StatusConflict, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout),
		get("/tools/info/{upstream}/{tool}", "all about one tool", a.toolInfo).named("get_tool"),
		get("/executions", "the last executions, the newest first", a.executions).named("list_executions").
			takes(word("status", "only with this status: ok, failed, held, timeout ..."), choice("language", "only programs in this", "python", "typescript"), word("principal", "only what this one ran"),
				moment("since", "only started at or after this time"), limit(usualExecutions, maxExecutions), word("cursor", "next of the previous page")),
		get("/executions/{id}", "one execution with its program and its calls", a.execution).named("get_execution"),
		get("/executions/{id}/calls", "its calls with arguments and results, from its journal", a.calls).named("list_execution_calls").
			takes(number("after", 0, 1<<30, 0, "how many are left out from the start"), limit(usualCalls, maxCalls)),
		get("/executions/live", "the running executions, the oldest first", a.live).named("list_live_executions"),
		route{method: http.MethodGet, path: "/executions/{id}/output", does: "the output of a running execution, live, until its end", scope: tool.ScopeRead}.named("follow_execution").failsWith(http.StatusConflict).
			streams(a.output, events{eventStarted: of[ProgramBegun](), eventOutput: of[execution.Printed](), eventDropped: of[Dropped](), eventEnded: of[ProgramEnded](), eventError: of[Problem]()}),
		post(tool.ScopeExecute, "/executions/{id}/cancel", "stop it", a.cancelExecution).named("cancel_execution"),
		get("/upstreams", "the state of the upstreams", a.upstreams).named("list_upstreams"),
		forOperators(get("/upstreams/held", "definitions of tools that wait for an operator", a.held)).named("list_held_tools"),
		post(tool.ScopeOperate, "/upstreams/held/{tool}", "approve one of them, and list those still held", a.approveHeld).named("approve_held_tool").failsWith(http.StatusConflict),
		get("/skills", "the skills that programs can import", a.skills).named("list_skills"),
		get("/skills/{name}", "one of them, with its code", a.skill).named("get_skill").takes(number("version", 1, 1<<30, 0, "another version than the current one")),
		get("/workspaces", "the workspaces of the caller", a.workspaces).named("list_workspaces").failsWith(http.StatusNotFound),
		get("/workspaces/{name}/files", "the files of one", a.files).named("list_files").takes(text("prefix", 1000, "only paths with this prefix")),
		reads(raw("/workspaces/{name}/files/{path...}", "the bytes of a file", a.readFile, "application/octet-stream")).named("read_file"),
		changes(http.MethodPut, "/workspaces/{name}/files/{path...}", "write a file: the body is its bytes", a.writeFile).named("write_file").bodies(workspaces.MaxFile).
			failsWith(http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage),
		changes(http.MethodDelete, "/workspaces/{name}/files/{path...}", "remove a file", a.removeFile).named("remove_file").failsWith(http.StatusPreconditionFailed),
		get("/savings", "the tokens that programs kept out of models' contexts", a.savings).named("get_savings").takes(number("days", 1, maxDays, usualDays, "how many days back; 1 is by the hour")),
		forOperators(get("/audit", "the audit log, the newest first", a.audit)).named("list_audit").failsWith(http.StatusNotFound).
			takes(word("kind", "only of this kind; * stands for any text"), word("tool", "only of this tool; * stands for any text"), word("principal", "only of this one"), word("execution", "only of this one"),
				choice("decision", "only with this decision", "allow", "deny", "ask"), moment("since", "only at or after this time"), limit(usualEvents, maxEvents), word("cursor", "next of the previous page")),
		metrics(raw("/metrics", "metrics for Prometheus", a.metrics, "text/plain")).named("get_metrics").failsWith(http.StatusNotFound),
		forEngine(get("/workflows", "the available workflows", workflowAPI{a}.listWorkflows)).named("list_workflows"),
		forEngine(get("/workflows/{name}", "one of them, with its inputs and steps", workflowAPI{a}.workflow)).named("get_workflow"),
		forEngine(post(tool.ScopeWorkflow, "/workflows/{name}/plan", "show what a run would do, without running it", workflowAPI{a}.plan)).named("plan_workflow").bodies(maxValues),
		forEngine(post(tool.ScopeWorkflow, "/workflows/{name}/runs", "start a run", workflowAPI{a}.launch)).named("start_workflow").bodies(maxValues),
		forEngine(get("/runs", "the last runs, the newest first", workflowAPI{a}.runs)).named("list_runs").
			takes(word("workflow", "only of this one"), choice("status", "only with this status", runStatuses...), limit(usualRuns, maxRuns)),
		forEngine(get("/runs/{id}", "the current state of a run", workflowAPI{a}.run)).named("get_run").
			takes(number("wait", 1, maxWait, 0, "seconds to wait until it is over or waits for a person")),
		forEngine(get("/runs/{id}/events", "the events of a run", workflowAPI{a}.events)).named("list_run_events").
			takes(number("after", 0, 1<<30, 0, "how many are left out from the start"), number("wait", 1, maxWait, 0, "seconds to wait if there are none"),
				limit(maxPage, maxPage), choice("values", "whether to include inputs and outputs", "all", "none")),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/cancel", "stop it", workflowAPI{a}.cancel)).named("cancel_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/resume", "resume one that failed, was canceled or was interrupted", workflowAPI{a}.resume)).named("resume_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/replay", "start a new run that repeats everything from a step on", workflowAPI{a}.replay)).named("replay_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/answer", "answer a form", workflowAPI{a}.answerForm)).named("answer_form").bodies(maxValues),
	}
}

// get returns a read-only route.
func get[Out any](path, does string, serve func(r *http.Request) (Out, error)) route {
	return route{method: http.MethodGet, path: path, does: does, scope: tool.ScopeRead, out: reflect.TypeFor[Out](),
		serve: func(r *http.Request) (any, error) { return serve(r) }}
}

// post returns a route with a body, which is parsed strictly.
func post[In, Out any](scope tool.Scope, path, does string, serve func(r *http.Request, in In) (Out, error)) route {
	return route{method: http.MethodPost, path: path, does: does, scope: scope, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](),
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
	return route{method: http.MethodGet, path: path, does: does, raw: serve, media: media, tagged: true}
}

// events are the types of a stream's events, by event name.
type events = map[string]reflect.Type

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// streams lets a route answer with events.
func (rt route) streams(stream func(w http.ResponseWriter, r *http.Request) error, are events) route {
	rt.stream, rt.events = stream, are
	return rt
}

// failsWith sets the statuses of problems beyond those of every route.
func (rt route) failsWith(statuses ...int) route {
	rt.fails = statuses
	return rt
}

// named sets the name of a route: a verb and an object, in snake case.
func (rt route) named(name string) route {
	rt.name = name
	return rt
}

// takes sets the query parameters of a route, whose values [queryOf] returns.
func (rt route) takes(params ...param) route {
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

// bodies sets the maximum size of a route's body, in bytes.
func (rt route) bodies(most int64) route {
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

// reads makes a route require scope read.
func reads(r route) route {
	r.scope = tool.ScopeRead
	return r
}

// metrics makes a route require scope metrics.
func metrics(r route) route {
	r.scope, r.tagged = tool.ScopeMetrics, false
	return r
}

// open makes a route public. Its handler returns less without scope read.
func open(r route) route {
	r.scope = ""
	return r
}
