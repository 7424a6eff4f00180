package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// catalogueServer serves catalogues as MCP servers over HTTP, one per path. It does not use the SDK's server because
// definitions must arrive byte for byte, including those with schemas that the SDK rejects.
type catalogueServer struct {
	http *http.Server
	base string
	done sync.WaitGroup
}

func serveCatalogues(all []Catalogue) (*catalogueServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve catalogues: %w", err)
	}
	mux := http.NewServeMux()
	for _, c := range all {
		mux.Handle("/"+c.Name, c)
	}
	s := &catalogueServer{http: &http.Server{Handler: mux}, base: "http://" + listener.Addr().String() + "/"}
	s.done.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

func (s *catalogueServer) close() error {
	err := s.http.Close()
	s.done.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// message is a request, or a notification, which has no id.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
	}
}

// ServeHTTP implements [http.Handler]: a server without sessions, streams and anything but tools.
func (c Catalogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "there are no streams and no sessions here", http.StatusMethodNotAllowed)
		return
	}
	var m message
	data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err := errors.Join(err, json.Unmarshal(data, &m)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer, err := marshal(c.answer(m))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(answer)
}

func (c Catalogue) answer(m message) map[string]any {
	answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	switch m.Method {
	case "initialize":
		answer["result"] = map[string]any{
			"protocolVersion": m.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": c.Name, "version": "1"},
		}
	case "tools/list":
		answer["result"] = map[string]any{"tools": c.Tools}
	case "tools/call":
		answer["result"] = map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": notConnected}}}
	case "ping":
		answer["result"] = map[string]any{}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
	}
	return answer
}
