package httpapi

import (
	"net/http"
	"reflect"
)

// To add a route: a line in routes, a method of api that answers it, and types for what it takes and gives, whose
// every field has a doc comment. What fails is a *tool.Error: problem.go has the status of each kind.

// route is one thing that can be asked for.
type route struct {
	method string
	// path is a pattern of [http.ServeMux], without a method.
	path string
	// does says in a few words what it is for.
	does string
	// operator says that nobody else may.
	operator bool
	// in is the type of the body, nil for none; out that of the answer.
	in, out reflect.Type
	serve   func(r *http.Request) (any, error)
}

// routes are all that there are.
func (a *api) routes() []route {
	return []route{
		get("/health", "how the gateway is", a.health),
		get("/approvals", "what waits for a person, and what was answered lately", a.approvals),
		get("/approvals/{id}", "one of them", a.approval),
		forOperators(post("/approvals/{id}", "allow or deny a call that waits", a.decide)),
		get("/executions", "the last executions, the newest first (?limit=1 to 1000)", a.executions),
		get("/executions/{id}", "one execution with its program and its calls", a.execution),
	}
}

// get is a route that changes nothing.
func get[Out any](path, does string, serve func(r *http.Request) (Out, error)) route {
	return route{method: http.MethodGet, path: path, does: does, out: reflect.TypeFor[Out](),
		serve: func(r *http.Request) (any, error) { return serve(r) }}
}

// post is a route with a body, which is read strictly.
func post[In, Out any](path, does string, serve func(r *http.Request, in In) (Out, error)) route {
	return route{method: http.MethodPost, path: path, does: does, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](),
		serve: func(r *http.Request) (any, error) {
			var in In
			if err := readBody(r, &in); err != nil {
				return nil, err
			}
			return serve(r, in)
		}}
}

// forOperators has a route answer nobody else.
func forOperators(r route) route {
	r.operator = true
	return r
}
