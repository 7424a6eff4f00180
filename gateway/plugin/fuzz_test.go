package plugin_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"sallyport/gateway/plugin"
	"sallyport/gateway/plugin/folder"
	"sallyport/internal/config"
	"sallyport/sandbox"
)

// sayer is a sandbox that says some bytes and then nothing, whatever it is told.
type sayer struct {
	*bytes.Reader
	end chan struct{}
}

func (s *sayer) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	<-s.end
	return 0, io.EOF
}

func (s *sayer) Write(p []byte) (int, error) { return len(p), nil }
func (s *sayer) Close() error                { close(s.end); return nil }
func (s *sayer) Done() <-chan struct{}       { return s.end }

// FuzzMessages has a plugin say anything in place of messages: each call ends, with a value or an error.
func FuzzMessages(f *testing.F) {
	const ready = `{"ready":{"run":{"input":{"type":"object"}}}}` + "\n"
	for _, said := range []string{"", ready, ready + `{"id":1,"value":7}` + "\n", ready + `{"id":1,"fault":{"type":"E","message":"m","line":3}}` + "\n",
		ready + `{"ask":1,"fetch":{"url":"https://example.com"}}` + "\n", ready + `{"id":2}` + "\n", `{"fault":{}}` + "\n", "{", ready + ready} {
		f.Add([]byte(said))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		cfg := config.Default()
		p := folder.Plugin{Manifest: folder.Manifest{Name: "a", Entry: "main.py", Tools: []string{"run"}, Timeout: 20 * time.Millisecond}}
		trial := plugin.NewTrial(&cfg, p, func(sandbox.Service) (plugin.Conn, error) {
			return &sayer{bytes.NewReader(said), make(chan struct{})}, nil
		}, "")
		defer trial.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if value, err := trial.Call(ctx, "run", nil); err == nil && !bytes.Contains(said, []byte(`"id"`)) {
			t.Errorf("%q makes the value %s", said, value)
		}
	})
}

// FuzzTypes has a plugin in TypeScript declare anything.
func FuzzTypes(f *testing.F) {
	for _, code := range []string{script, "export function run(a: {b?: string[] | null}, c = 3): Promise<number> { return 1 }", "type A = A[]; export function run(a: A) {}", "export const run = (a: Record<string, 'x' | 'y'>) => a"} {
		f.Add(code)
	}
	f.Fuzz(func(_ *testing.T, code string) {
		cfg := config.Default()
		p := folder.Plugin{Manifest: folder.Manifest{Name: "a", Entry: "main.ts", Tools: []string{"run"}, Timeout: time.Second}, Content: map[string][]byte{"main.ts": []byte(code)}}
		trial := plugin.NewTrial(&cfg, p, func(sandbox.Service) (plugin.Conn, error) {
			return &sayer{bytes.NewReader([]byte(`{"ready":{"run":{}}}` + "\n")), make(chan struct{})}, nil
		}, "")
		defer trial.Close()
		_, _ = trial.Offer(context.Background()) // it ends, and does not panic
	})
}
