package httpapi

import (
	"net/http"
	"reflect"

	"sallyport/gateway/execution"
	"sallyport/gateway/workspaces"
	"sallyport/internal/tool"
)

// To add a route: a line in routes, a method of api that answers it, and types for its request and response;
// every field has a doc comment. What fails is a *tool.Error: problem.go has the status of each kind.

// route is one thing that can be asked for.
type route struct {
	method string
	// path is a pattern of [http.ServeMux], without a method.
	path string
	// does says in a few words what it is for.
	does string
	// name is what a model or a client calls it, as the OpenAPI document's operationId.
	name string
	// models says that a model should have it as a tool.
	models bool
	// params are those of the query; any other is refused.
	params []param
	// scope is what the caller must have, see [tool.May]; "" is nothing.
	scope tool.Scope
	// engine says that it needs the engine of workflows, which not every process has.
	engine bool
	// body is how large the body may be, in bytes, where that is more than usual.
	body int64
	// in is the type of the body, nil for none; out that of the answer.
	in, out reflect.Type
	serve   func(r *http.Request) (any, error)
	// raw answers by itself, where it is there: what is of the types in media. Its error is answered as usual.
	raw   func(w http.ResponseWriter, r *http.Request) error
	media []string
	// stream answers with events instead: where there is no other answer, and to who asks for them. Events are those that there are.
	stream func(w http.ResponseWriter, r *http.Request) error
	events events
	// tagged says that an answer by itself has an ETag.
	tagged bool
	// fails are statuses of problems that are no matter of every route, for the OpenAPI document.
	fails []int
}

// routes are all that there are.
func (a *api) routes() []route {
	return []route{
		raw("/openapi.json", "the OpenAPI document", a.serveOpenAPI, "application/json").named("get_openapi").
			takes(choice("profile", "for whom: tools names all that a model should have and nothing else, clients names all", profiles...)),
		open(get("/health", "how the gateway is", a.health)).named("get_health"),
		open(get("/readyz", "whether it can do its work: 503 where it cannot", a.ready)).named("get_readiness").failsWith(http.StatusServiceUnavailable),
		get("/approvals", "what waits for a person, and what was answered lately", a.approvals).named("list_approvals"),
		get("/approvals/{id}", "one of them", a.approval).named("get_approval"),
		post(tool.ScopeOperate, "/approvals/{id}", "allow or deny a call that waits", a.decide).named("answer_approval"),
		post(tool.ScopeExecute, "/execute", "run a program in a sandbox", a.execute).named("execute_code").forModels().bodies(maxProgram).
			streams(a.executeStream, events{eventStarted: of[ProgramBegun](), eventOutput: of[execution.Printed](), eventDropped: of[Dropped](), eventResult: of[Executed](), eventError: of[Problem]()}).
			failsWith(http.StatusNotFound, http.StatusServiceUnavailable),
		get("/tools", "the tools that there are", a.tools).named("list_tools").
			takes(word("upstream", "only of this one"), limit(usualTools, maxTools), text("cursor", 300, "where to go on: next of the page before")),
		get("/tools/search", "find tools by what they do", a.searchTools).named("search_tools").forModels().failsWith(http.StatusNotFound).
			takes(text("q", 4<<10, "what a tool should do, or a name; without it upstreams are listed, or the tools of one"), choice("detail", "how much is told of each", details...),
				text("upstream", 200, "only of this one"), number("limit", 1, 200, 0, "how many at most; without it what fits the budget"),
				number("budget", 1, 20_000, 0, "how many tokens the answer may cost a model, as text; without it 400"), choice("language", "of signatures", "python", "typescript")),
		post(tool.ScopeCall, "/tools/call/{upstream}/{tool}", "call one tool", a.callTool).named("call_tool").forModels().bodies(maxProgram).
			failsWith(http.StatusConflict, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout),
		get("/tools/info/{upstream}/{tool}", "all about one tool", a.toolInfo).named("get_tool"),
		get("/executions", "the last executions, the newest first", a.executions).named("list_executions").
			takes(word("status", "only those that ended so: ok, failed, held, timeout ..."), choice("language", "only programs in this", "python", "typescript"), word("principal", "only what this one ran"),
				moment("since", "only those that began then or later"), limit(usualExecutions, maxExecutions), word("cursor", "where to go on: next of the page before")),
		get("/executions/{id}", "one execution with its program and its calls", a.execution).named("get_execution"),
		get("/executions/{id}/calls", "its calls with arguments and results, as far as its journal is kept", a.calls).named("list_execution_calls").
			takes(number("after", 0, 1<<30, 0, "how many are left out from the start"), limit(usualCalls, maxCalls)),
		get("/executions/live", "the executions that go on, the oldest first", a.live).named("list_live_executions"),
		route{method: http.MethodGet, path: "/executions/{id}/output", does: "what one that goes on prints, as it does, until its end", scope: tool.ScopeRead}.named("follow_execution").failsWith(http.StatusConflict).
			streams(a.output, events{eventStarted: of[ProgramBegun](), eventOutput: of[execution.Printed](), eventDropped: of[Dropped](), eventEnded: of[ProgramEnded](), eventError: of[Problem]()}),
		post(tool.ScopeExecute, "/executions/{id}/cancel", "stop it", a.cancelExecution).named("cancel_execution"),
		get("/upstreams", "how the upstreams stand", a.upstreams).named("list_upstreams"),
		forOperators(get("/upstreams/held", "definitions of tools that wait for an operator", a.held)).named("list_held_tools"),
		post(tool.ScopeOperate, "/upstreams/held/{tool}", "approve one of them, and say what is held then", a.approveHeld).named("approve_held_tool").failsWith(http.StatusConflict),
		get("/skills", "the skills that programs can import", a.skills).named("list_skills"),
		get("/skills/{name}", "one of them, with its code", a.skill).named("get_skill").takes(number("version", 1, 1<<30, 0, "another version than the current one")),
		get("/workspaces", "the workspaces that there are", a.workspaces).named("list_workspaces").failsWith(http.StatusNotFound),
		get("/workspaces/{name}/files", "the files of one", a.files).named("list_files").takes(text("prefix", 1000, "only those whose paths begin so")),
		reads(raw("/workspaces/{name}/files/{path...}", "the bytes of a file", a.readFile, "application/octet-stream")).named("read_file"),
		changes(http.MethodPut, "/workspaces/{name}/files/{path...}", "write a file: the body is its bytes", a.writeFile).named("write_file").bodies(workspaces.MaxFile).
			failsWith(http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage),
		changes(http.MethodDelete, "/workspaces/{name}/files/{path...}", "remove a file", a.removeFile).named("remove_file").failsWith(http.StatusPreconditionFailed),
		get("/savings", "the tokens that programs kept out of models' contexts", a.savings).named("get_savings").takes(number("days", 1, maxDays, usualDays, "how many days back; of one day by the hour")),
		forOperators(get("/audit", "the audit log, the newest first", a.audit)).named("list_audit").failsWith(http.StatusNotFound).
			takes(word("kind", "only of this kind; * stands for any text"), word("tool", "only of this tool; * stands for any text"), word("principal", "only of this one"), word("execution", "only of this one"),
				choice("decision", "only with this decision", "allow", "deny", "ask"), moment("since", "only what was then or later"), limit(usualEvents, maxEvents), word("cursor", "where to go on: next of the page before")),
		metrics(raw("/metrics", "numbers for Prometheus", a.metrics, "text/plain")).named("get_metrics").failsWith(http.StatusNotFound),
		forEngine(get("/workflows", "the workflows that there are", workflowAPI{a}.listWorkflows)).named("list_workflows"),
		forEngine(get("/workflows/{name}", "one of them, with its inputs and steps", workflowAPI{a}.workflow)).named("get_workflow"),
		forEngine(post(tool.ScopeWorkflow, "/workflows/{name}/plan", "what a run would do, which does nothing", workflowAPI{a}.plan)).named("plan_workflow").bodies(maxValues),
		forEngine(post(tool.ScopeWorkflow, "/workflows/{name}/runs", "start a run", workflowAPI{a}.launch)).named("start_workflow").bodies(maxValues),
		forEngine(get("/runs", "the last runs, the newest first", workflowAPI{a}.runs)).named("list_runs").
			takes(word("workflow", "only of this one"), choice("status", "only with this status", runStatuses...), limit(usualRuns, maxRuns)),
		forEngine(get("/runs/{id}", "one run as it stands", workflowAPI{a}.run)).named("get_run").
			takes(number("wait", 1, maxWait, 0, "seconds that the answer may take: until it is over or waits for a person")),
		forEngine(get("/runs/{id}/events", "what happened in it", workflowAPI{a}.events)).named("list_run_events").
			takes(number("after", 0, 1<<30, 0, "how many are left out from the start"), number("wait", 1, maxWait, 0, "seconds that the answer may take where there are none"),
				limit(maxPage, maxPage), choice("values", "whether inputs and outputs are among it", "all", "none")),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/cancel", "stop it", workflowAPI{a}.cancel)).named("cancel_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/resume", "go on with one that failed, was canceled or was left", workflowAPI{a}.resume)).named("resume_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/replay", "a new run that does all again from a step on", workflowAPI{a}.replay)).named("replay_run"),
		forEngine(post(tool.ScopeWorkflow, "/runs/{id}/answer", "answer a form", workflowAPI{a}.answerForm)).named("answer_form").bodies(maxValues),
	}
}

// get is a route that changes nothing.
func get[Out any](path, does string, serve func(r *http.Request) (Out, error)) route {
	return route{method: http.MethodGet, path: path, does: does, scope: tool.ScopeRead, out: reflect.TypeFor[Out](),
		serve: func(r *http.Request) (any, error) { return serve(r) }}
}

// post is a route with a body, which is read strictly.
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

// raw is a route that changes nothing and answers by itself.
func raw(path, does string, serve func(w http.ResponseWriter, r *http.Request) error, media ...string) route {
	return route{method: http.MethodGet, path: path, does: does, raw: serve, media: media, tagged: true}
}

// events are types of what events hold, by their names.
type events = map[string]reflect.Type

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// streams has a route answer with events.
func (rt route) streams(stream func(w http.ResponseWriter, r *http.Request) error, are events) route {
	rt.stream, rt.events = stream, are
	return rt
}

// failsWith says which problems there are besides those of every route, by their statuses.
func (rt route) failsWith(statuses ...int) route {
	rt.fails = statuses
	return rt
}

// named gives a route its name: a verb and what it is about, in snake case.
func (rt route) named(name string) route {
	rt.name = name
	return rt
}

// takes gives a route the parameters of its query, which it asks of [queryOf].
func (rt route) takes(params ...param) route {
	rt.params = params
	return rt
}

// forModels marks a route that a model should have as a tool.
func (rt route) forModels() route {
	rt.models = true
	return rt
}

// forEngine has a route say so where there is no engine.
func forEngine(r route) route {
	r.engine = true
	return r
}

// bodies has a route take larger bodies, of so many bytes.
func (rt route) bodies(most int64) route {
	rt.body = most
	return rt
}

// forOperators restricts a route to operators.
func forOperators(r route) route {
	r.scope = tool.ScopeOperate
	return r
}

// changes is a route that changes a file. The body of a PUT is its bytes.
func changes[Out any](method, path, does string, serve func(r *http.Request) (Out, error)) route {
	rt := get(path, does, serve)
	rt.method, rt.scope = method, tool.ScopeFiles
	return rt
}

// reads has a route answer who may read.
func reads(r route) route {
	r.scope = tool.ScopeRead
	return r
}

// metrics has a route answer who may read numbers.
func metrics(r route) route {
	r.scope, r.tagged = tool.ScopeMetrics, false
	return r
}

// open makes a route public: it says little without scope read.
func open(r route) route {
	r.scope = ""
	return r
}
