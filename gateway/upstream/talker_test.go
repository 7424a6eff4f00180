package upstream_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// talker is an upstream that does more than answer: it has resources and prompts,
// reports progress, asks, and changes what it offers, well or badly.
type talker struct {
	modes []string
	mu    sync.Mutex
	out   io.Writer
	asked map[string]chan json.RawMessage // our requests, by id
	lists map[string]int                  // how often each list was asked for
	extra []string                        // names that were added to every list
	last  json.RawMessage                 // what the last late question was answered with
}

type talk struct {
	ID     json.RawMessage            `json:"id"`
	Method string                     `json:"method"`
	Params map[string]json.RawMessage `json:"params"`
}

func newTalker(mode string, out io.Writer) *talker {
	return &talker{modes: strings.Split(mode, ","), out: out, asked: map[string]chan json.RawMessage{}, lists: map[string]int{}}
}

func (s *talker) is(mode string) bool { return slices.Contains(s.modes, mode) }

func (s *talker) run() {
	if path := os.Getenv("STARTS"); path != "" {
		(&rawServer{}).countStart()
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var req talk
		if json.Unmarshal(line, &req) != nil {
			continue
		}
		if req.Method == "" {
			s.hear(req.ID, line)
		} else {
			s.handle(req)
		}
	}
}

func (s *talker) hear(id json.RawMessage, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.asked[string(id)]; answer != nil {
		delete(s.asked, string(id))
		answer <- line
	}
}

func (s *talker) write(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *talker) result(req talk, result string) {
	s.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
}

// ask sends a request and returns where the whole answer comes.
func (s *talker) ask(id, method, params string) chan json.RawMessage {
	answer := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.asked[id] = answer
	s.mu.Unlock()
	s.write(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	return answer
}

const talkCapabilities = `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"logging":{},"completions":{},"x-own":{"n":9007199254740993}}`

func (s *talker) handle(req talk) {
	switch req.Method {
	case "server/discover":
		if s.is("modern") {
			s.result(req, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+s.capabilities()+`,"instructions":"Be kind.","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"talker","version":"3"}}}`)
			return
		}
		s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, req.ID)
	case "initialize":
		s.result(req, `{"protocolVersion":"2025-11-25","capabilities":`+s.capabilities()+`,"serverInfo":{"name":"talker","version":"3"},"instructions":"Be kind."}`)
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		s.list(req)
	case "tools/call":
		go s.call(req)
	case "notifications/initialized", "notifications/cancelled":
	case "subscriptions/listen":
		s.listen(req)
	default:
		s.method(req)
	}
}

func (s *talker) capabilities() string {
	if s.is("toolsonly") {
		return `{"tools":{}}`
	}
	return talkCapabilities
}

// method answers what is no tool, with the params that came.
func (s *talker) method(req talk) {
	params, _ := json.Marshal(req.Params)
	switch req.Method {
	case "resources/read":
		contents := map[string]string{
			`"mem://text"`: `[{"uri":"mem://text","mimeType":"text/plain","text":"words","_meta":{"n":9007199254740993}}]`,
			`"mem://blob"`: `[{"uri":"mem://blob","mimeType":"image/png","blob":"AAE="}]`,
			`"mem://both"`: `[{"uri":"mem://a","text":"one"},{"uri":"mem://b","blob":""},7]`,
		}[string(req.Params["uri"])]
		if contents == "" {
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such resource"}}`, req.ID)
			return
		}
		s.result(req, `{"contents":`+contents+`,"ttlMs":5}`)
	case "ping":
		s.result(req, `{}`)
	default:
		s.result(req, fmt.Sprintf(`{"method":%q,"params":%s,"big":9007199254740993}`, req.Method, params))
	}
	if req.Method == "resources/subscribe" {
		s.write(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%s}}`, req.Params["uri"])
	}
}

var talkTools = []string{"progress", "ask", "asks", "late", "answered", "params", "grow", "counts", "log", "wait", "input", "endless", "busy", "odd_type", "many_questions", "bye"}

func (s *talker) list(req talk) {
	s.mu.Lock()
	s.lists[req.Method]++
	page := s.lists[req.Method]
	extra := slices.Clone(s.extra)
	s.mu.Unlock()
	member, entries := "", []string{}
	switch req.Method {
	case "tools/list":
		member = "tools"
		for _, name := range append(slices.Clone(talkTools), extra...) {
			entries = append(entries, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"_meta":{"big":9007199254740993}}`, name))
		}
		if s.is("names") {
			for _, name := range []string{"日本語", "a-b", "a_b", "class", "secret_read", "secret_write"} {
				entries = append(entries, fmt.Sprintf(`{"name":%q}`, name))
			}
		}
	case "resources/list":
		member, entries = "resources", []string{
			`{"uri":"mem://text","name":"text","title":"Text","description":"Some words.","mimeType":"text/plain","size":9007199254740993}`,
			`{"uri":"mem://text","name":"again"}`, `{"name":"no uri"}`, `7`, `{"uri":"mem://odd","name":[],"mimeType":1}`,
		}
	case "resources/templates/list":
		member, entries = "resourceTemplates", []string{`{"uriTemplate":"mem://{id}","name":"one","icons":[]}`, `{"uriTemplate":5}`}
	case "prompts/list":
		member, entries = "prompts", []string{
			`{"name":"greet","title":"Greet","description":"Says hello.","arguments":[{"name":"who","required":true,"description":"Whom."},{"name":7},"x",{"name":"how"}]}`,
			`{"name":"plain","arguments":{}}`, `{"arguments":[]}`,
		}
	}
	for i := range entries {
		if s.is("huge") && i == 1 {
			entries[i] = `{"name":"huge","uri":"mem://huge","uriTemplate":"huge","description":"` + strings.Repeat("x", 10<<20) + `"}`
		}
	}
	for _, name := range extra {
		if member != "tools" {
			entries = append(entries, fmt.Sprintf(`{"name":%q,"uri":"mem://%s","uriTemplate":%q}`, name, name, name))
		}
	}
	cursor := ""
	switch {
	case s.is("loops"):
		cursor = `,"nextCursor":"again"`
	case s.is("endless-pages") && member != "tools":
		cursor, entries = fmt.Sprintf(`,"nextCursor":"%d"`, page), nil
	case s.is("bad") && member == "resources":
		s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no disk"}}`, req.ID)
		return
	case s.is("bad") && member == "prompts":
		s.result(req, `["nonsense"]`)
		return
	case s.is("hang") && member != "tools":
		return
	}
	s.result(req, fmt.Sprintf(`{%q:[%s]%s,"resultType":"complete"}`, member, strings.Join(entries, ","), cursor))
}

func (s *talker) listen(req talk) {
	if s.is("nolisten") {
		s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, req.ID)
		return
	}
	s.mu.Lock()
	s.lists["listen"]++
	s.last = req.ID
	s.lists["watched "+string(req.Params["notifications"])]++
	s.mu.Unlock()
	s.write(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s}}`, req.Params["notifications"])
}

func (s *talker) call(req talk) {
	var name string
	_ = json.Unmarshal(req.Params["name"], &name)
	params, _ := json.Marshal(req.Params)
	var meta, args map[string]json.RawMessage
	_ = json.Unmarshal(req.Params["_meta"], &meta)
	_ = json.Unmarshal(req.Params["arguments"], &args)
	token := string(meta["progressToken"])
	text := func(s string) string {
		quoted, _ := json.Marshal(s)
		return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%s}]}`, quoted)
	}
	switch name {
	case "progress":
		var times int
		_ = json.Unmarshal(args["times"], &times)
		for i := range times {
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":9007199254740993}}`, token, i+1)
		}
		for _, forged := range []string{`"1000001"`, `1`, `999999999`, `null`, `{}`, `1e400`} {
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":666}}`, forged)
		}
		s.result(req, text(token))
	case "log":
		s.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}`, orDefault(args["say"], `"hi"`))
		s.result(req, text("logged"))
	case "ask":
		method := "elicitation/create"
		_ = json.Unmarshal(args["method"], &method)
		s.result(req, text(string(<-s.ask(`"q`+string(req.ID)+`"`, method, `{"message":"Sure?","n":9007199254740993}`))))
	case "asks":
		var refused int
		for i := range 100 {
			if strings.Contains(string(<-s.ask(fmt.Sprint(5000+i), "elicitation/create", `{}`)), `"error"`) {
				refused++
			}
		}
		s.result(req, text(fmt.Sprint(refused)))
	case "late": // the question comes when the call is over
		answer := s.ask(`"late"`, "ping", `{}`)
		<-answer
		s.result(req, text("done"))
		late := <-s.ask(`"later"`, "sampling/createMessage", `{}`)
		s.mu.Lock()
		s.last = late
		s.mu.Unlock()
	case "answered":
		s.mu.Lock()
		last := string(s.last)
		s.mu.Unlock()
		s.result(req, text(last))
	case "params":
		s.result(req, fmt.Sprintf(`{"resultType":"complete","content":[],"structuredContent":%s,"_meta":{"big":9007199254740993}}`, params))
	case "grow":
		var kind string
		_ = json.Unmarshal(args["kind"], &kind)
		s.mu.Lock()
		s.extra = append(s.extra, fmt.Sprintf("extra%d", len(s.extra)))
		s.mu.Unlock()
		for range 5 {
			s.write(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, kind)
		}
		s.result(req, text("grown"))
	case "bye": // ends the subscription
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		s.write(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, last)
		s.result(req, text("ended"))
	case "counts":
		s.mu.Lock()
		counts, _ := json.Marshal(s.lists)
		s.mu.Unlock()
		s.result(req, fmt.Sprintf(`{"content":[],"structuredContent":%s,"resultType":"complete"}`, counts))
	case "wait":
		<-s.ask(`"wait"`, "ping", `{}`)
	default:
		s.rounds(req, name, string(params))
	}
}

// rounds answers in the way of revision 2026-07-28, where questions are results.
func (s *talker) rounds(req talk, name, params string) {
	question := `{"method":"elicitation/create","params":{"message":"Sure?","n":9007199254740993}}`
	switch {
	case name == "input" && req.Params["inputResponses"] == nil:
		s.result(req, `{"resultType":"input_required","inputRequests":{"b":`+question+`,"a":{"method":"roots/list"}},"requestState":"s<1>"}`)
	case name == "input":
		s.result(req, `{"resultType":"complete","content":[],"structuredContent":`+params+`}`)
	case name == "endless":
		s.result(req, `{"resultType":"input_required","inputRequests":{"a":`+question+`}}`)
	case name == "busy":
		s.result(req, `{"resultType":"input_required","requestState":"later"}`)
	case name == "odd_type":
		s.result(req, `{"resultType":"task","content":[]}`)
	case name == "many_questions":
		s.result(req, `{"resultType":"input_required","inputRequests":{`+manyQuestions(question)+`}}`)
	}
}

func manyQuestions(question string) string {
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf(`"q%d":%s`, i, question))
	}
	return strings.Join(all, ",")
}

func orDefault(raw json.RawMessage, otherwise string) string {
	if raw == nil {
		return otherwise
	}
	return string(raw)
}
