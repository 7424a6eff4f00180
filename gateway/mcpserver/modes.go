package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/config"
	"sallyport/internal/suggest"
)

// The mode of a client is in the URL (?mode=direct), else in the settings, by the name and version that the client reports.
// The prefix of its ID tells which server has a session of an older client.

const (
	// modeHeader has the mode that the URL of a request names. It is always set or removed here.
	modeHeader = "Sallyport-Mode"
	// The prefixes of session IDs.
	codeSession, directSession = "c-", "d-"
)

// ModeOf returns the mode of the client with a name and a version, which may be empty.
type ModeOf func(name, version string) config.Mode

// modeInURL returns the mode that a query names, "" for none.
func modeInURL(query url.Values) (config.Mode, error) {
	var modes []string
	for _, value := range query["codemode"] {
		mode, ok := map[string]config.Mode{"off": config.ModeDirect, "on": config.ModeCode}[value]
		if !ok {
			return "", fmt.Errorf("unknown codemode %.40q: use on or off", value)
		}
		modes = append(modes, string(mode))
	}
	for _, value := range query["mode"] {
		if !slices.Contains(config.Modes(), value) {
			hint := "use " + strings.Join(config.Modes(), ", ")
			if near := suggest.Of(value, config.Modes()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return "", fmt.Errorf("unknown mode %.40q: %s", value, hint)
		}
		modes = append(modes, value)
	}
	switch modes = slices.Compact(modes); len(modes) {
	case 0:
		return "", nil
	case 1:
		return config.Mode(modes[0]), nil
	}
	return "", errors.New("the URL names more than one mode")
}

// route passes each request to the server of its mode; fixed is the mode of a path, "" for none.
func (s *site) route(fixed config.Mode) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mode, err := modeInURL(r.URL.Query())
		if err == nil && mode == config.ModeCode && s.tools == nil {
			err = errors.New("mode code is not served here: use direct or search")
		}
		if err != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(invalidRequest(nil, err.Error()).marshal())
			return
		}
		if mode == "" {
			mode = fixed
		}
		r.Header.Set(modeHeader, string(mode))
		if s.tools != nil && s.modeOf(r, mode) == config.ModeCode {
			s.tools.ServeHTTP(w, r)
			return
		}
		s.direct.ServeHTTP(w, r)
	})
}

// modeOf returns the mode of a request whose URL names one, or "".
func (s *site) modeOf(r *http.Request, named config.Mode) config.Mode {
	switch session := r.Header.Get(sessionHeader); {
	case named != "":
		return named
	case strings.HasPrefix(session, directSession):
		return config.ModeDirect // or search, which the same server tells apart
	case session != "" || s.mode == nil:
		return config.ModeCode
	}
	b, _ := r.Body.(bufferedBody)
	return s.mode(clientInMessage(b.data))
}

// clientInMessage returns the name and the version of the client that sends a message: in the parameters of initialize, or in
// the _meta of a modern request.
func clientInMessage(message []byte) (name, version string) {
	type implementation struct{ Name, Version string }
	var m struct {
		Params struct {
			ClientInfo implementation `json:"clientInfo"`
			Meta       struct {
				ClientInfo implementation `json:"io.modelcontextprotocol/clientInfo"`
			} `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(message, &m) // what it has of a wrong type stays empty
	if m.Params.Meta.ClientInfo.Name != "" {
		return m.Params.Meta.ClientInfo.Name, m.Params.Meta.ClientInfo.Version
	}
	return m.Params.ClientInfo.Name, m.Params.ClientInfo.Version
}

// searches reports whether the client of a request sees the tools of mode search.
func (d *Direct) searches(req mcp.Request) bool {
	if d.opts.Search == nil {
		return false
	}
	if extra := req.GetExtra(); extra != nil {
		if mode := extra.Header.Get(modeHeader); mode != "" {
			return mode == string(config.ModeSearch)
		}
	}
	return d.opts.Mode != nil && d.opts.Mode(clientInfo(req)) == config.ModeSearch
}

// Stdin is standard input of which the first message may have been read, to learn who the client is.
type Stdin struct {
	in   *bufio.Reader
	file *os.File
}

// OpenStdin returns standard input.
func OpenStdin() *Stdin {
	file := os.Stdin //nolint:forbidigo // in place of the SDK's transport, which takes the same
	return &Stdin{bufio.NewReaderSize(file, 64<<10), file}
}

// Client waits for the first message and returns the name and the version of the client that it has. They are empty if ctx
// ends first, and if the message is longer than a buffer.
func (s *Stdin) Client(ctx context.Context) (name, version string) {
	line := make(chan []byte, 1)
	go func() { // ends with the input, at the latest with the process
		line <- firstLine(s.in)
	}()
	select {
	case message := <-line:
		return clientInMessage(message)
	case <-ctx.Done():
		return "", ""
	}
}

// firstLine returns the first line that is not blank, which stays in the buffer; a part of it if it does not fit.
func firstLine(in *bufio.Reader) []byte {
	for {
		data, _ := in.Peek(in.Buffered())
		start := bytes.TrimLeft(data, " \t\r\n")
		if line, _, whole := bytes.Cut(start, []byte("\n")); whole {
			return bytes.Clone(line)
		}
		if _, err := in.Peek(len(data) + 1); err != nil { // the input has ended, or the buffer is full
			return bytes.Clone(start)
		}
	}
}

// Read implements [io.Reader].
func (s *Stdin) Read(p []byte) (int, error) { return s.in.Read(p) }

// Close implements [io.Closer].
func (s *Stdin) Close() error { return s.file.Close() }

var _ io.ReadCloser = (*Stdin)(nil)
