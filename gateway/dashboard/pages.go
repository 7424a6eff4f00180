package dashboard

import (
	"net/http"

	"sallyport/gateway/connections"
	"sallyport/internal/access"
	"sallyport/internal/tool"
)

// To add a page: a row in table, a method of Dashboard that gets its data, and a file in templates/ that defines a
// template of the name in the row. The template's dot is a *view; what the method returned is .Data. Style is in
// static/style.css, words for times, numbers and states in funcs.go, and {{call .Live "NAME" data seconds}} shows
// another template that stays up to date by itself. A template calls functions, never methods.

// page is one thing that can be asked for: what is shown, or what a form does.
type page struct {
	method, path string
	// title is that of the page, unless its method gives it another.
	title string
	// group and label are where it stands in the navigation; "" is not there.
	group, label string
	// scope is what the caller must be allowed to do; operator says that only operators may.
	scope    tool.Scope
	operator bool
	// configures says that it changes the settings: see [access.Caller.MayConfigure].
	configures bool
	// form is the maximum size of its form, in bytes; 0 is maxForm.
	form int64
	// show returns what the template shows; do does what a form says, and returns where to go then. The show of a form shows what
	// was typed again, with the result.
	template string
	show     func(r *request) (any, error)
	do       func(r *request) (next string, err error)
	// data returns what a script of a page is answered, as JSON.
	data func(r *request) (any, error)
}

func (p page) pattern() string { return p.method + " " + p.path }

// operation is the name of a page in the table of roles.
func (p page) operation() string { return access.PageOperation(p.method, p.path) }

// The groups of the navigation, in their order.
const (
	groupHome      = "Overview"
	groupActivity  = "Activity"
	groupDecisions = "Decisions"
	groupTools     = "Tools"
	groupRecords   = "Records"
)

// table has all pages. Those of one group are in the navigation in the order in which they stand here.
func (d *Dashboard) table() []page {
	return append([]page{
		newPage("/{$}", "Overview", "overview", d.overview).in(groupHome, "Overview"),
		newPage(connectPath, "Connect a client", "connect", connectPages{d}.show).in(groupHome, "Connect a client"),

		newPage("/ui/executions", "Executions", "executions", d.executions).in(groupActivity, "Executions"),
		newPage("/ui/executions/{id}", "Execution", "execution", d.execution),
		newAction("/ui/executions/{id}/cancel", "Execution", tool.ScopeExecute, d.cancelExecution),
		newPage("/ui/runs", "Runs", "runs", workflowPages{d}.runs).in(groupActivity, "Runs"),
		newPage("/ui/runs/{id}", "Run", "run", workflowPages{d}.run),
		newPage("/ui/runs/{id}/log", "Log", "run-log", workflowPages{d}.runLog),
		newAction("/ui/runs/{id}/answer", "Run", tool.ScopeWorkflow, workflowPages{d}.answerForm),
		newAction("/ui/runs/{id}/cancel", "Run", tool.ScopeWorkflow, workflowPages{d}.cancelRun),
		newAction("/ui/runs/{id}/resume", "Run", tool.ScopeWorkflow, workflowPages{d}.resumeRun),
		newAction("/ui/runs/{id}/replay", "Run", tool.ScopeWorkflow, workflowPages{d}.replayRun),
		newPage(tasksPath, "Tasks", "tasks", taskPages{d}.list).in(groupActivity, "Tasks"),
		newPage(tasksPath+"/{id}", "Task", "task", taskPages{d}.show),
		newAction(tasksPath+"/{id}/cancel", "Task", tool.ScopeExecute, taskPages{d}.cancel),
		newAction(tasksPath+"/{id}/resume", "Task", tool.ScopeExecute, taskPages{d}.resume),
		newPage("/ui/workflows", "Workflows", "workflows", workflowPages{d}.workflows).in(groupActivity, "Workflows"),
		newPage("/ui/workflows/{name}", "Workflow", "workflow", workflowPages{d}.workflow),
		newAction("/ui/workflows/{name}/runs", "Workflow", tool.ScopeWorkflow, workflowPages{d}.start),

		newPage(approvalsPath, "Approvals", "approvals", d.approvals).in(groupDecisions, "Approvals"),
		newPage(waitingPath, "Waiting", "waiting", d.waitingCount),
		newAction(approvalsPath+"/{id}", "Approvals", tool.ScopeOperate, d.answer).forOperators(),
		newPage("/ui/quarantine", "Quarantine", "quarantine", d.quarantine).in(groupDecisions, "Quarantine"),
		newAction("/ui/quarantine", "Quarantine", tool.ScopeOperate, d.reviewHeld).forOperators(),

		newPage(policyPath, "Policy", "policy", policyPages{editPages{d}}.show).in(groupDecisions, "Policy").forOperators(),
		newForm(policyPath, "Policy", tool.ScopeOperate, "policy", policyPages{editPages{d}}.try).forOperators(),
		newPage(policyPath+"/edit", "Policy", "policy-edit", policyPages{editPages{d}}.edit).forAdmins(),
		newEdit(policyPath+"/edit", "Policy", "policy-edit", policyPages{editPages{d}}.change),

		newPage(upstreamsPath, "Upstreams", "upstreams", d.upstreams).in(groupTools, "Upstreams"),
		newPage(addPath, "Add an upstream", "upstream-add", addPages{editPages{d}}.show).forAdmins(),
		newEdit(addPath, "Add an upstream", "upstream-add", addPages{editPages{d}}.add),
		newPage(upstreamsPath+"/{id}", "Upstream", "upstream", d.upstream),
		newPage(upstreamsPath+"/{id}/test", "Upstream", "upstream-test", addPages{editPages{d}}.test).forAdmins(),
		newPage(upstreamsPath+"/{id}/edit", "Upstream", "upstream-edit", upstreamEdits{editPages{d}}.show).forAdmins(),
		newEdit(upstreamsPath+"/{id}/edit", "Upstream", "upstream-edit", upstreamEdits{editPages{d}}.change),
		newAction(upstreamsPath+"/{id}/switch", "Upstream", tool.ScopeOperate, upstreamEdits{editPages{d}}.turn).forAdmins(),
		newAction(upstreamsPath+"/{id}/restart", "Upstream", tool.ScopeOperate, processPages{d}.restart).forOperators(),
		newPage(connections.Path, "Connections", "connections", connectionPages{d}.list).in(groupTools, "Connections"),
		newPage(connections.Path+"/{id}", "Connection", "connection", connectionPages{d}.show),
		newAction(connections.Path+"/{id}", "Connection", tool.ScopeRead, connectionPages{d}.change),
		{method: http.MethodGet, path: connections.FinishPath, title: "Connection", scope: tool.ScopeRead, do: connectionPages{d}.finish},
		newPage("/ui/catalogue", "Catalogue", "catalogue", d.catalogue).in(groupTools, "Catalogue"),
		newPage("/ui/catalogue/{upstream}/{tool}", "Tool", "tool", d.tool),
		newForm("/ui/catalogue/{upstream}/{tool}", "Tool", tool.ScopeCall, "tool", d.try),
		newPage(playgroundPath, "Playground", "playground", playgroundPages{d}.show).in(groupTools, "Playground").needs(tool.ScopeExecute),
		newAction(playgroundPath, "Playground", tool.ScopeExecute, playgroundPages{d}.run).large(),
		{method: http.MethodPost, path: playgroundPath + "/skill", title: "Playground", scope: tool.ScopeExecute, template: "playground", do: playgroundPages{d}.saveSkill},
		page{method: http.MethodPost, path: playgroundPath + "/workflow", title: "Playground", template: "playground", do: playgroundPages{d}.saveWorkflow}.forAdmins(),
		{method: http.MethodGet, path: completionsPath, title: "Playground", scope: tool.ScopeExecute, data: editorPages{d}.completions},
		{method: http.MethodPost, path: checkPath, title: "Playground", scope: tool.ScopeExecute, form: maxLargeForm, data: editorPages{d}.check},
		newPage("/ui/skills", "Skills", "skills", d.skills).in(groupTools, "Skills"),
		newPage("/ui/skills/{name}", "Skill", "skill", d.skill),

		newPage(usersPath, "Users", "users", userPages{d}.list).in(groupRecords, "Users").forOperators(),
		newPage("/ui/savings", "Savings", "savings", d.savings).in(groupRecords, "Savings"),
		newPage(auditHome, "Audit log", "audit", auditPages{d}.show).in(groupRecords, "Audit log").forOperators(),
		newForm(auditHome, "Audit log", tool.ScopeOperate, "audit-verified", auditPages{d}.verify).forOperators(),
	}, clusterPages{d}.table()...)
}

// newPage is a page that changes nothing.
func newPage(path, title, template string, show func(r *request) (any, error)) page {
	return page{method: http.MethodGet, path: path, title: title, scope: tool.ScopeRead, template: template, show: show}
}

// newAction is what a form does; then another page is shown.
func newAction(path, title string, scope tool.Scope, do func(r *request) (next string, err error)) page {
	return page{method: http.MethodPost, path: path, title: title, scope: scope, do: do}
}

// newForm is what a form does that is shown again, with what was typed.
func newForm(path, title string, scope tool.Scope, template string, show func(r *request) (any, error)) page {
	return page{method: http.MethodPost, path: path, title: title, scope: scope, template: template, show: show}.large()
}

// newEdit is a form that edits the settings. It is shown again until what it says is saved.
func newEdit(path, title, template string, do func(r *request) (next string, err error)) page {
	return page{method: http.MethodPost, path: path, title: title, template: template, do: do}.forAdmins().large()
}

// large lets a form have a program, or the arguments of a call.
func (p page) large() page {
	p.form = maxLargeForm
	return p
}

// needs restricts a page to callers with a scope.
func (p page) needs(scope tool.Scope) page {
	p.scope = scope
	return p
}

// in puts a page into the navigation.
func (p page) in(group, label string) page {
	p.group, p.label = group, label
	return p
}

// forOperators restricts a page to operators.
func (p page) forOperators() page {
	p.operator, p.scope = true, tool.ScopeOperate
	return p
}

// forAdmins restricts a page to callers who may change the settings.
func (p page) forAdmins() page {
	p = p.forOperators()
	p.configures = true
	return p
}
