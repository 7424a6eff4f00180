package typecheck

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func frames(data string) ([]string, error) {
	r := bufio.NewReaderSize(strings.NewReader(data), maxHeader)
	var all []string
	for {
		body, err := readFrame(r)
		if err != nil {
			return all, err
		}
		all = append(all, string(body))
	}
}

func TestReadFrame(t *testing.T) {
	for _, test := range []struct {
		name, data string
		want       []string
		err        error
	}{
		{"nothing", "", nil, io.EOF},
		{"two", "Content-Length: 2\r\n\r\n{}Content-Length: 0\r\n\r\n", []string{"{}", ""}, io.EOF},
		{"other headers, other cases", "content-type: x\r\nCONTENT-LENGTH:3\n\nabc", []string{"abc"}, io.EOF},
		{"cut in the body", "Content-Length: 5\r\n\r\nab", nil, io.ErrUnexpectedEOF},
		{"cut in the headers", "Content-Length: 5\r\n", nil, io.ErrUnexpectedEOF},
		{"no length", "Content-Type: x\r\n\r\n{}", nil, errFrame},
		{"junk", "Exception: no\nat all\n", nil, errFrame},
		{"a negative length", "Content-Length: -1\r\n\r\n", nil, errFrame},
		{"a huge length", "Content-Length: 99999999999999999999\r\n\r\n", nil, errFrame},
		{"a length over the bound", fmt.Sprintf("Content-Length: %d\r\n\r\n", maxMessage+1), nil, errFrame},
		{"two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", nil, errFrame},
		{"a long header", "X: " + strings.Repeat("y", maxHeader) + "\r\n\r\n", nil, errFrame},
		{"many headers", strings.Repeat("X: y\r\n", maxHeaders+1), nil, errFrame},
	} {
		got, err := frames(test.data)
		if fmt.Sprint(got) != fmt.Sprint(test.want) || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %v; want %q, %v", test.name, got, err, test.want, test.err)
		}
	}
}

// FuzzReadFrame: what is read is within the bounds, and written again it is read as the same.
func FuzzReadFrame(f *testing.F) {
	for _, seed := range []string{"Content-Length: 2\r\n\r\n{}", "a: b\nContent-Length: 1\n\nxContent-Length: 0\r\n\r\n", "Content-Length: 9\r\n\r\n", "\r\n\r\n", ":"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		bodies, err := frames(string(data))
		if err == nil {
			t.Fatal("a stream without an end")
		}
		var again bytes.Buffer
		for _, body := range bodies {
			if len(body) > len(data) {
				t.Fatalf("%d bytes out of %d", len(body), len(data))
			}
			fmt.Fprintf(&again, "Content-Length: %d\r\n\r\n%s", len(body), body)
		}
		if same, _ := frames(again.String()); fmt.Sprint(same) != fmt.Sprint(bodies) {
			t.Fatalf("%q is read as %q", bodies, same)
		}
	})
}

// FuzzTake: no message of a server stops us, and what it finds is bounded and clean.
func FuzzTake(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"result":{"items":[{"range":{"start":{"line":1,"character":2}},"severity":1,"code":"reportCallIssue","message":"No parameter named \"x\""}]}}`,
		`{"id":1,"method":"workspace/configuration","params":{"items":[{},{}]}}`, `{"method":"window/logMessage","params":1}`,
		`{"id":1,"result":{"items":[{"range":{"start":{"line":-5}},"code":2345,"message":"Argument of type 'a' is\n  Property 'b' is missing in type 'c' but required in type 'd'."}]}}`, `[]`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range dialects() {
			s := &server{process: sink{}, dialect: d, answers: make(chan message, 1), ended: make(chan struct{})}
			if s.handle(data) != nil || len(s.answers) == 0 {
				continue
			}
			found, _ := findings((<-s.answers).Result)
			for _, w := range d.warnings(found) {
				if w.Line < 1 || w.Message == "" || len([]rune(w.Message)) > maxMessageRunes+1 || strings.ContainsAny(w.Message, "\n\r\x1b\x00\u202e") {
					t.Fatalf("%+v", w)
				}
			}
		}
	})
}

type sink struct{}

func (sink) Read([]byte) (int, error)    { return 0, io.EOF }
func (sink) Write(p []byte) (int, error) { return len(p), nil }
func (sink) Close() error                { return nil }
