package access

// metricsOperations are the operations that [Metrics] may do.
var metricsOperations = []string{"get_metrics", "get_health", "get_readiness"}

// leastRole are the operations that each role may do in addition to those of the roles before it. A new operation of the API
// or of the dashboard needs an entry; docs/reference/roles.md is generated from it.
var leastRole = map[Role][]string{
	Viewer: {
		"get_openapi", "get_health", "get_readiness", "list_approvals", "get_approval", "list_tools", "search_tools", "get_tool",
		"list_executions", "get_execution", "list_execution_calls", "list_live_executions", "follow_execution", "list_upstreams",
		"list_skills", "get_skill", "list_workspaces", "list_files", "read_file", "get_savings", "list_budgets", "list_workflows", "get_workflow",
		"list_runs", "get_run", "list_run_events", "list_tasks", "get_task",

		pages + "GET /{$}", pages + "GET /ui/connect", pages + "GET /ui/executions", pages + "GET /ui/executions/{id}", pages + "GET /ui/runs", pages + "GET /ui/runs/{id}",
		pages + "GET /ui/runs/{id}/log", pages + "GET /ui/tasks", pages + "GET /ui/tasks/{id}", pages + "GET /ui/workflows",
		pages + "GET /ui/workflows/{name}", pages + "GET /ui/approvals", pages + "GET /ui/waiting", pages + "GET /ui/quarantine",
		pages + "GET /ui/upstreams", pages + "GET /ui/upstreams/{id}", pages + "GET /ui/connections", pages + "GET /ui/catalogue",
		pages + "GET /ui/catalogue/{upstream}/{tool}", pages + "GET /ui/skills", pages + "GET /ui/skills/{name}", pages + "GET /ui/savings",
	},
	User: {
		"mcp", "execute_code", "call_tool", "cancel_execution", "write_file", "remove_file", "plan_workflow", "start_workflow",
		"cancel_run", "resume_run", "replay_run", "answer_form", "start_task", "cancel_task", "resume_task",

		pages + "POST /ui/catalogue/{upstream}/{tool}", pages + "GET /ui/playground", pages + "POST /ui/playground",
		pages + "POST /ui/playground/skill", pages + "GET /ui/playground/completions", pages + "POST /ui/playground/check",
		pages + "POST /ui/executions/{id}/cancel", pages + "POST /ui/runs/{id}/answer", pages + "POST /ui/runs/{id}/cancel",
		pages + "POST /ui/runs/{id}/resume", pages + "POST /ui/runs/{id}/replay", pages + "POST /ui/tasks/{id}/cancel",
		pages + "POST /ui/tasks/{id}/resume", pages + "POST /ui/workflows/{name}/runs", pages + "GET /ui/connections/{id}",
		pages + "POST /ui/connections/{id}", pages + "GET /ui/finish-login",
	},
	RoleOperator: {
		"answer_approval", "restart_upstream", "get_upstream_log", "get_metrics", "get_timeline", "list_held_tools", "get_cluster",

		pages + "POST /ui/approvals/{id}", pages + "GET /ui/policy", pages + "POST /ui/policy", pages + "POST /ui/upstreams/{id}/restart",
		pages + "GET /ui/users", pages + "GET /ui/cluster", pages + "POST /ui/cluster/workers/{name}",
	},
	Admin: {
		"approve_held_tool", "reject_held_tool", "list_audit", "list_plugins",

		pages + "POST /ui/quarantine", pages + "GET /ui/audit", pages + "POST /ui/audit", pages + "GET /ui/policy/edit", pages + "POST /ui/policy/edit",
		pages + "GET /ui/add-upstream", pages + "POST /ui/add-upstream", pages + "GET /ui/upstreams/{id}/test",
		pages + "GET /ui/upstreams/{id}/edit", pages + "POST /ui/upstreams/{id}/edit", pages + "POST /ui/upstreams/{id}/switch",
		pages + "POST /ui/playground/workflow",
	},
}
