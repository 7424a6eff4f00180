package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/bareserver"
	"sallyport/bench/corpus"
	"sallyport/bench/stats"
	"sallyport/internal/sleep"
)

// A start is with so many upstreams, each with so many tools.
const upstreams, toolsEach = 60, 25

// upstreamSet is the set of upstreams of a start: serve's settings for them, and the transport for the SDK's client.
type upstreamSet struct {
	kind     string
	count    int
	settings string
	dial     func(ctx context.Context, i int) mcp.Transport
	// last is the name of a tool of the last one.
	last string
}

// startup is what a start of serve with 60 upstreams takes, without a cache and with one: its first answers compared with those of
// the SDK's least server, the first search of all without a cache compared with the SDK's client that connects to the same 60 at once.
func startup(ctx context.Context, b *bench) error {
	from, err := b.source()
	if err != nil {
		return err
	}
	servers := corpus.Deal(from.Tools(upstreams*toolsEach), upstreams)
	for _, open := range []func([]corpus.Server) (*upstreamSet, func() error, error){b.overStdio, b.overHTTP} {
		t, done, err := open(servers)
		if err != nil {
			return err
		}
		if err := errors.Join(b.startups(ctx, t), done()); err != nil {
			return fmt.Errorf("%s: %w", t.kind, err)
		}
	}
	return nil
}

// overStdio has a process for each server: this program, which reads its list of a file.
func (b *bench) overStdio(servers []corpus.Server) (*upstreamSet, func() error, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	file := func(i int) string { return filepath.Join(dir, servers[i].Name+".json") }
	t := newUpstreamSet("stdio", servers, func(i int) string {
		return fmt.Sprintf("command: %q, env: {%s: %q}", self, upstreamVar, file(i))
	})
	for i, s := range servers {
		if err := os.WriteFile(file(i), s.List(), 0o600); err != nil {
			return nil, nil, err
		}
	}
	t.dial = func(ctx context.Context, i int) mcp.Transport {
		command := exec.CommandContext(ctx, self)
		command.Env = []string{upstreamVar + "=" + file(i)}
		return &mcp.CommandTransport{Command: command}
	}
	return t, func() error { return nil }, nil
}

// overHTTP has all servers in this process, behind one socket.
func (b *bench) overHTTP(servers []corpus.Server) (*upstreamSet, func() error, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, nil, err
	}
	socket := filepath.Join(dir, "up.sock")
	stop, err := bareserver.ServeAt(socket, listing(servers))
	if err != nil {
		return nil, nil, err
	}
	t := newUpstreamSet("HTTP", servers, func(i int) string { return fmt.Sprintf("url: %q, socket: %q", listingURL(i), socket) })
	t.dial = func(_ context.Context, i int) mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: listingURL(i), HTTPClient: bareserver.Through(socket)}
	}
	return t, stop, nil
}

func newUpstreamSet(kind string, servers []corpus.Server, settings func(i int) string) *upstreamSet {
	var b strings.Builder
	b.WriteString("upstreams:\n")
	for i, s := range servers {
		fmt.Fprintf(&b, "  %s: {%s}\n", s.Name, settings(i))
	}
	last := servers[len(servers)-1]
	return &upstreamSet{kind: kind, count: len(servers), settings: b.String(), last: last.Tools[len(last.Tools)-1].Tool.ID.Name}
}

// startTimes has the times of a start's stages, in milliseconds since the process was started.
type startTimes struct{ initialized, listed, searched float64 }

func (b *bench) startups(ctx context.Context, t *upstreamSet) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if _, err := b.startWith(ctx, t, dir); err != nil { // fills the cache
		return err
	}
	for _, way := range startModes(dir) {
		var starts, bare []startTimes
		_, _, err := byTurns(ctx, max(1, min(b.n, 10)), func() {}, func() (float64, error) {
			s, err := b.startWith(ctx, t, way.dir)
			starts = append(starts, s)
			return 0, err
		}, func() (float64, error) {
			s, err := b.startBare(ctx)
			if err == nil && way.connects {
				s.searched, err = t.direct(ctx)
			}
			bare = append(bare, s)
			return 0, err
		})
		if err != nil {
			return err
		}
		b.addStarts(t.kind, way, starts, bare)
	}
	return nil
}

// startMode is how much a serve knows when it starts.
type startMode struct {
	name, dir, note string
	// connects says that it has to connect to all upstreams before it can search them.
	connects bool
}

func startModes(known string) []startMode {
	return []startMode{
		{"no cache", "", "nothing is known: the first search waits for all 60", true},
		{"cache, connects to none", known, "the tools are known from the run before: no upstream is started until it is called", false},
	}
}

// startBare starts the least server of the SDK, over stdio as serve is, and has its tool listed.
func (b *bench) startBare(ctx context.Context) (s startTimes, err error) {
	begin := time.Now()
	session, err := b.alone(ctx)
	if err != nil {
		return s, err
	}
	s.initialized = milliseconds(time.Since(begin))
	_, err = session.ListTools(ctx, nil)
	s.listed = milliseconds(time.Since(begin))
	return s, errors.Join(err, session.Close())
}

func (b *bench) addStarts(kind string, w startMode, starts, bare []startTimes) {
	const least = "; bare: the least server of the SDK, over stdio, is started and answers the same"
	for _, part := range []struct {
		what, bare string
		figure     func(startTimes) float64
	}{
		{"initialize", least, func(s startTimes) float64 { return s.initialized }},
		{"tools/list", least, func(s startTimes) float64 { return s.listed }},
		{"search of all", "; bare: the SDK's client connects to the same 60 at once and has listed all tools", func(s startTimes) float64 { return s.searched }},
	} {
		var took, alone []float64
		for i := range starts {
			took, alone = append(took, part.figure(starts[i])), append(alone, part.figure(bare[i]))
		}
		r := row{Case: fmt.Sprintf("%d upstreams, %s, %s: %s", upstreams, kind, w.name, part.what), Unit: "ms",
			Note: "from serve's start to the answer; " + w.note + part.bare, Compared: stats.Compare(took, alone)}
		if r.Bare.P50 == 0 { // not measured: a bare client has no cache of tools
			r.Compared, r.Note = stats.Compare(took, nil), "from serve's start to the answer; "+w.note+"; nothing bare does the same work"
		}
		b.add(r)
	}
}

// startWith starts serve and stops it; "" is a folder that knows nothing.
func (b *bench) startWith(ctx context.Context, t *upstreamSet, dir string) (s startTimes, err error) {
	begin := time.Now()
	g, err := b.start(ctx, setup{dir: dir, upstreams: t.settings})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s.initialized = milliseconds(time.Since(begin))
	if _, err := g.sessions[0].ListTools(ctx, nil); err != nil {
		return s, err
	}
	s.listed = milliseconds(time.Since(begin))
	err = g.searchAll(ctx, t.last)
	s.searched = milliseconds(time.Since(begin))
	return s, err
}

// searchAll searches until the answer is of all upstreams; it has to tell of a tool of the last one.
func (g *instance) searchAll(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		found, err := g.sessions[0].CallTool(ctx, &mcp.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": name}})
		if err != nil {
			return err
		}
		text := textOf(found)
		if strings.Contains(text, "(not searched: ") {
			if err := sleep.For(ctx, 5*time.Millisecond); err != nil { // asking without a pause would slow what is waited for
				return err
			}
			continue
		}
		if !strings.Contains(text, name) {
			return fmt.Errorf("search_tools does not know %s: %.500s", name, text)
		}
		return nil
	}
	return ctx.Err()
}

// direct connects to all servers at once and lists their tools.
func (t *upstreamSet) direct(ctx context.Context) (float64, error) {
	var all sync.WaitGroup
	sessions, errs := make([]*mcp.ClientSession, t.count), make([]error, t.count)
	begin := time.Now()
	for i := range t.count {
		all.Go(func() { sessions[i], errs[i] = connectAndList(ctx, t.dial(ctx, i)) })
	}
	all.Wait()
	took := milliseconds(time.Since(begin))
	for i, session := range sessions {
		if session != nil {
			all.Go(func() { errs[i] = errors.Join(errs[i], session.Close()) })
		}
	}
	all.Wait()
	return took, errors.Join(errs...)
}

// connectAndList connects to a server and lists its tools, page by page.
func connectAndList(ctx context.Context, transport mcp.Transport) (*mcp.ClientSession, error) {
	session, err := client().Connect(ctx, transport, nil)
	if err != nil {
		return nil, err
	}
	count := 0
	for _, err := range session.Tools(ctx, nil) {
		if err != nil {
			return session, err
		}
		count++
	}
	if count == 0 {
		return session, errors.New("a server lists no tools")
	}
	return session, nil
}

// beListing is an upstream over stdio, the least that is one: it lists what is in a file.
func beListing(path string, in *json.Decoder, out *json.Encoder) error {
	list, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err := in.Decode(&request); errors.Is(err, io.EOF) { // the client has gone
			return nil
		} else if err != nil {
			return err
		}
		if request.ID == nil {
			continue
		}
		if err := out.Encode(answerOf(request.ID, request.Method, list)); err != nil {
			return err
		}
	}
}

// answerOf is what a server with nothing but a list answers.
func answerOf(id json.RawMessage, method string, list []byte) map[string]any {
	answer := map[string]any{"jsonrpc": "2.0", "id": id}
	switch method {
	case "initialize":
		answer["result"] = json.RawMessage(bareserver.Hello)
	case "tools/list":
		answer["result"] = json.RawMessage(list)
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "method not found"}
	}
	return answer
}
