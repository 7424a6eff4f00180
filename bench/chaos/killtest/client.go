package killtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answer is what a client was told about a job.
type answer struct {
	status string // of the program or the run; "lost" without an answer, "refused" for an error
	text   string
	resume string   // the execution to resume
	asks   []string // the approvals that it waits for
}

// lost reports whether the client does not know what was done.
func (a answer) lost() bool { return a.status == "lost" }

// door is a way to the gateway: the JSON API or MCP.
type door interface {
	// execute runs the program of a job, or resumes an execution.
	execute(ctx context.Context, j *job, resume string) answer
	// find returns what to resume after a lost answer: "" if no execution of the job is known.
	find(ctx context.Context, j *job) (string, error)
}

// requestTime bounds one request: a program may wait for its turn.
const requestTime = 2 * time.Minute

// api is a principal at the JSON API.
type api struct {
	base, token string
	// transport is the way to the gateway; lost is called when a request had no answer, or one that says nothing about what was done.
	transport http.RoundTripper
	lost      func()
	// resend: a client that resumes its last execution sends its program, too. That execution may be an older one.
	resend bool
}

// ask sends a request and reads its answer. status is 0 without an answer.
func (c api) ask(ctx context.Context, method, path string, body, into any) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var data []byte
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			return 0, "", err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+"/api"+path, bytes.NewReader(data))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.web().Do(request)
	if err != nil {
		c.lost()
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	if data, err = io.ReadAll(response.Body); err != nil || response.StatusCode >= http.StatusInternalServerError {
		c.lost()
	}
	if err != nil {
		return 0, "", err
	}
	if response.StatusCode != http.StatusOK || into == nil {
		return response.StatusCode, string(data), nil
	}
	return response.StatusCode, string(data), json.Unmarshal(data, into)
}

// refusal is the answer for a request that was not served: 5xx says nothing about what was done.
func refusal(status int, text string, err error) answer {
	if err == nil && strings.Contains(text, noSandbox) {
		return answer{status: "busy", text: text}
	}
	if err != nil || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return answer{status: "lost", text: fmt.Sprint(status, text, err)}
	}
	return answer{status: "refused", text: text}
}

type approvalBrief struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// Arguments names the call, Reason the step of a run.
	Arguments string `json:"arguments"`
	Reason    string `json:"reason"`
	Doubt     bool   `json:"doubt"`
}

func (c api) execute(ctx context.Context, j *job, resume string) answer {
	body := map[string]any{"code": j.code, "language": j.language}
	switch {
	case resume == "last" && c.resend:
		body["resume"] = resume
	case resume != "":
		body = map[string]any{"resume": resume}
	}
	var got struct {
		ID, Status, Output string
		Error              *struct{ Type, Message string }
		Approvals          []approvalBrief
	}
	status, text, err := c.ask(ctx, http.MethodPost, "/execute", body, &got)
	if err != nil || status != http.StatusOK {
		return refusal(status, text, err)
	}
	a := answer{status: got.Status, text: text, resume: got.ID}
	for _, one := range got.Approvals {
		a.asks = append(a.asks, one.ID)
	}
	return a
}

// find looks in the list of executions, as a person would.
func (c api) find(ctx context.Context, j *job) (string, error) {
	var list struct{ Executions []struct{ ID string } }
	if status, text, err := c.ask(ctx, http.MethodGet, "/executions?limit=5", nil, &list); err != nil || status != http.StatusOK {
		return "", fmt.Errorf("list executions: %d %s: %w", status, text, err)
	}
	for _, e := range list.Executions {
		var one struct{ Code string }
		if status, text, err := c.ask(ctx, http.MethodGet, "/executions/"+e.ID, nil, &one); err != nil || status != http.StatusOK {
			return "", fmt.Errorf("show execution %s: %d %s: %w", e.ID, status, text, err)
		}
		if strings.Contains(one.Code, j.done()) {
			return e.ID, nil
		}
	}
	return "", nil
}

// model is a client that speaks MCP, as the harness of a model does.
type model struct{ api }

// RoundTrip implements [http.RoundTripper]: it adds the token.
func (c api) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	return c.transport.RoundTrip(r)
}

func (c api) web() *http.Client { return &http.Client{Transport: c, Timeout: 2 * requestTime} }

var approvalID = regexp.MustCompile(`\ba-[a-z0-9]{20,}\b`)

func (m model) execute(ctx context.Context, j *job, resume string) answer {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	arguments := map[string]any{"code": j.code, "language": j.language}
	switch {
	case resume == "last" && m.resend:
		arguments["resume"] = resume
	case resume != "":
		arguments = map[string]any{"code": "", "resume": resume}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "killtest", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: m.base + "/mcp", HTTPClient: m.web(), MaxRetries: -1}, nil)
	if err != nil {
		m.lost()
		return answer{status: "lost", text: err.Error()}
	}
	defer func() { _ = session.Close() }()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: arguments})
	if err != nil {
		m.lost()
		return answer{status: "lost", text: err.Error()}
	}
	var b strings.Builder
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return m.read(j, b.String(), result.IsError)
}

// toResume matches the id of an execution to resume.
var toResume = regexp.MustCompile(`resume=\\?"(e-[a-z0-9]+)\\?"`)

const (
	// noStore is the error for new work, and calls of programs, while the store does not answer: nothing was done.
	noStore = "the store of records does not answer"
	// noSandbox is the error while no worker can be reached.
	noSandbox = "the sandbox could not be started"
	// notWritten is the error of a program with calls that could not be put on record, while the store did not answer: they were not made.
	notWritten = "the journal cannot be written"
)

// read understands the text as a model would.
func (m model) read(j *job, text string, failed bool) answer {
	a := answer{status: "failed", text: text, resume: "last"}
	switch {
	case strings.HasPrefix(text, "held"):
		a.status, a.asks = "held", approvalID.FindAllString(text, -1)
	case strings.HasPrefix(text, "interrupted") && toResume.MatchString(text):
		a.status, a.resume = "interrupted", toResume.FindStringSubmatch(text)[1]
	case strings.HasPrefix(text, "JOB "): // maybe of another job
		a.status = "ok"
	case failed && (strings.HasPrefix(text, noStore) || strings.HasPrefix(text, noSandbox)):
		a.status, a.resume = "busy", ""
	case failed:
		a.status = "refused"
	}
	return a
}

func (m model) find(context.Context, *job) (string, error) { return "last", nil }

// launch starts the run of a workflow, or finds it: the key of the request is the job.
func (c api) launch(ctx context.Context, j *job) answer {
	var got struct {
		ID, Status string
		Waiting    []struct{ Approval string }
		Error      *struct{ Message string }
	}
	body := map[string]any{"key": j.id, "wait": 30, "inputs": map[string]any{"job": j.id}}
	status, text, err := c.ask(ctx, http.MethodPost, "/workflows/"+j.workflow+"/runs", body, &got)
	if err != nil || status != http.StatusOK {
		return refusal(status, text, err)
	}
	a := answer{status: got.Status, text: text, resume: got.ID}
	for _, w := range got.Waiting {
		if w.Approval != "" {
			a.asks = append(a.asks, w.Approval)
		}
	}
	return a
}
