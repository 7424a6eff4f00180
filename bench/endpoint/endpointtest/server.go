// Package endpointtest is an endpoint in both APIs that works on the tasks of
// package suite by their scripts. It takes nothing that a real one would refuse, and
// demands of each request that it begins as the one before ended.
package endpointtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/bench/agent"
	"sallyport/bench/endpoint"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/internal/testutil/tlstest"
)

// Key is the required key, Model the only model.
const (
	Key   = "sk-test-0123456789"
	Model = "scripted-1"
)

// Server is an endpoint. Its fields are set before the first request.
type Server struct {
	*httptest.Server
	// World has the paths that are in prompts.
	World func() *suite.World
	// Tasks are those that it knows.
	Tasks []*suite.Task
	// Override returns the response to a turn in place of the script's, or nil; the script continues at the next turn.
	Override func(turn int) *agent.Move

	tb        testing.TB
	api       apiDialect
	mu        sync.Mutex
	before    []http.HandlerFunc
	turnCount int
	current   *conversation
}

// conversation is the current conversation.
type conversation struct {
	task       *suite.Task
	player     *suite.Player
	seen       request
	turns      int
	overridden bool
}

// request is the common form of all APIs' requests.
type request struct {
	defined []tokencount.Definition
	// said are the messages as they came, without marks.
	said   []json.RawMessage
	prompt string
	// results are those of the last turn.
	results []tokencount.Result
	// marked says that the endpoint is to keep what it has read.
	marked bool
}

// apiDialect is the server side of an API.
type apiDialect interface {
	path() string
	allowed(r *http.Request) bool
	// marks reports whether results that are errors are marked as such.
	marks() bool
	// read reads a request strictly.
	read(body []byte) (request, error)
	// write is an answer. Its calls are numbered from first on.
	write(m agent.Move, first int) any
	refuse(kind, message string) any
}

// New starts an endpoint.
func New(tb testing.TB, api endpoint.API, world func() *suite.World) *Server {
	tb.Helper()
	s := &Server{World: world, Tasks: suite.Tasks(), tb: tb, api: chat{}}
	if api == endpoint.Anthropic {
		s.api = messages{}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST "+s.api.path(), s.turn)
	s.Server = tlstest.NewServer(tb, mux)
	tb.Cleanup(s.stop)
	return s
}

func (s *Server) stop() {
	s.Close()
	s.end()
}

func (s *Server) end() {
	if s.current != nil && s.current.player != nil {
		s.current.player.Stop()
	}
	s.current = nil
}

// Before sets handlers for the first requests for a turn; nil means the normal response.
func (s *Server) Before(first ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = first
}

// TurnCount returns how many turns were requested.
func (s *Server) TurnCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turnCount
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if !s.api.allowed(r) {
		reply(w, http.StatusUnauthorized, s.api.refuse("authentication_error", "invalid key "+r.Header.Get("Authorization")))
		return
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": Model, "object": "model"}}})
}

func (s *Server) turn(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnCount++
	if s.turnCount <= len(s.before) && s.before[s.turnCount-1] != nil {
		s.before[s.turnCount-1](w, r)
		return
	}
	if !s.api.allowed(r) {
		reply(w, http.StatusUnauthorized, s.api.refuse("authentication_error", "invalid key "+r.Header.Get("Authorization")))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	answer, err := s.next(body)
	if err != nil {
		s.tb.Errorf("request %d: %v", s.turnCount, err)
		reply(w, http.StatusBadRequest, s.api.refuse("invalid_request_error", err.Error()))
		return
	}
	reply(w, http.StatusOK, answer)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

// next reads a request, and says what the script does now.
func (s *Server) next(body []byte) (any, error) {
	now, err := s.api.read(body)
	if err != nil {
		return nil, err
	}
	if err := check(now.defined); err != nil {
		return nil, err
	}
	if len(now.results) == 0 && now.prompt != "" {
		if err := s.begin(now); err != nil {
			return nil, err
		}
	} else if err := s.checkContinues(now); err != nil {
		return nil, err
	}
	if !s.api.marks() {
		s.current.mark(now.results)
	}
	usage := s.bill(now, len(body))
	s.show(now)
	move, err := s.move(now.results)
	if err != nil {
		return nil, err
	}
	usage.Output = len(move.Text)/4 + 1
	for _, c := range move.Calls {
		usage.Output += (len(c.Tool) + len(c.Args)) / 4
	}
	move.Usage = usage
	s.current.seen, s.current.turns = now, s.current.turns+1
	return s.api.write(move, s.turnCount*100), nil
}

// begin finds the task by its prompt.
func (s *Server) begin(now request) error {
	s.end()
	world := s.World()
	for _, task := range s.Tasks {
		if world.Expand(task.Prompt) == now.prompt {
			s.current = &conversation{task: task, player: task.Play(world, mode(now.defined))}
			return nil
		}
	}
	return fmt.Errorf("no task has the prompt %.200q", now.prompt)
}

// mode is known by the tools.
func mode(defined []tokencount.Definition) suite.Mode {
	has := func(name string) bool {
		return slices.ContainsFunc(defined, func(d tokencount.Definition) bool { return d.Name == name })
	}
	switch {
	case has(suite.ExecuteCode):
		return suite.Code
	case has(suite.SearchTool):
		return suite.Search
	}
	return suite.Direct
}

// checkContinues checks that a request extends the previous one and its answer.
func (s *Server) checkContinues(now request) error {
	if s.current == nil {
		return errors.New("it continues an unknown conversation")
	}
	before := s.current.seen
	if len(now.said) < len(before.said)+2 {
		return fmt.Errorf("%d messages after %d", len(now.said), len(before.said))
	}
	for i := range before.said {
		if !bytes.Equal(before.said[i], now.said[i]) {
			return fmt.Errorf("message %d was %.300s and is %.300s", i, before.said[i], now.said[i])
		}
	}
	for i, d := range before.defined {
		if i >= len(now.defined) || now.defined[i].Name != d.Name || !bytes.Equal(now.defined[i].InputSchema, d.InputSchema) {
			return fmt.Errorf("tool %d was %s and is another", i, d.Name)
		}
	}
	return nil
}

// bill counts four bytes as a token. What was kept of the request before is read for less, if nothing before it has changed.
func (s *Server) bill(now request, size int) agent.Usage {
	u := agent.Usage{Input: size/4 + 1}
	before := s.current.seen
	if len(before.said) > 0 && len(before.defined) == len(now.defined) {
		for _, d := range before.defined {
			u.Cached += (len(d.Description) + len(d.InputSchema)) / 4
		}
		for _, m := range before.said {
			u.Cached += len(m) / 4
		}
	}
	if now.marked {
		u.Stored = u.Input - u.Cached
	}
	return u
}

// mark marks the errors that the script waits for: without a mark a model knows them by their words.
func (s *conversation) mark(results []tokencount.Result) {
	for i := range results {
		results[i].Error = slices.ContainsFunc(s.task.Programs, func(p suite.Program) bool {
			return p.Fails != "" && strings.Contains(results[i].Text, p.Fails)
		})
	}
}

// show gives the script the definitions that have come in with its results.
func (s *Server) show(now request) {
	if len(now.results) > 0 && len(now.defined) > len(s.current.seen.defined) {
		last := &now.results[len(now.results)-1]
		last.Shows = now.defined[len(s.current.seen.defined):]
	}
}

func (s *Server) move(results []tokencount.Result) (agent.Move, error) {
	if s.Override != nil {
		if m := s.Override(s.current.turns); m != nil {
			s.current.overridden = true
			return *m, nil
		}
	}
	if s.current.overridden && s.current.turns > 0 {
		results, s.current.overridden = nil, false // they are not the script's
	}
	calls, answer, err := s.current.player.Next(results)
	return agent.Move{Text: answer, Calls: calls}, err
}

var named = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check refuses tools as both APIs do.
func check(defined []tokencount.Definition) error {
	seen := map[string]bool{}
	for _, d := range defined {
		var schema map[string]json.RawMessage
		var properties map[string]json.RawMessage
		err := errors.Join(json.Unmarshal(d.InputSchema, &schema), json.Unmarshal(schema["properties"], &properties))
		switch {
		case !named.MatchString(d.Name) || seen[d.Name]:
			return fmt.Errorf("a tool by the name of %q", d.Name)
		case err != nil || string(schema["type"]) != `"object"`:
			return fmt.Errorf("schema of %s: %.200s", d.Name, d.InputSchema)
		}
		for key := range strings.FieldsSeq("$schema oneOf anyOf allOf enum not") {
			if schema[key] != nil {
				return fmt.Errorf("schema of %s has %s at its top", d.Name, key)
			}
		}
		seen[d.Name] = true
	}
	return nil
}

// strict decodes JSON in which nothing may be unknown.
func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
