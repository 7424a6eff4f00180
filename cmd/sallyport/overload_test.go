package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil/load"
)

// rawSite is a site whose API is asked by hand.
type rawSite struct{ *site }

func (b rawSite) address() string {
	address, _, _ := strings.Cut(strings.TrimPrefix(b.url, "http://"), "/")
	return address
}

// send opens a connection and sends a request, whose body may be less than its header says.
func (b rawSite) send(t *testing.T, header, body string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST /execute HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer a-token-for-a-test\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", b.address(), header, body)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// run sends a program.
func (b rawSite) run(t *testing.T, header, code string) net.Conn {
	t.Helper()
	body, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		t.Fatal(err)
	}
	return b.send(t, fmt.Sprintf("%sContent-Length: %d", header, len(body)), string(body))
}

func (b rawSite) inside(t *testing.T) {
	t.Helper()
	select {
	case <-b.gate.inside:
	case <-time.After(30 * time.Second):
		t.Fatal("the program does not come to the gate")
	}
}

// last is the newest execution on record.
func (b rawSite) last(t *testing.T) (status string) {
	t.Helper()
	got, err := (&http.Client{Transport: withToken{}}).Get("http://" + b.address() + "/executions?limit=1")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var list struct{ Executions []struct{ Status string } }
	if err := json.NewDecoder(got.Body).Decode(&list); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", got.StatusCode, err)
	}
	if len(list.Executions) == 0 {
		return ""
	}
	return list.Executions[0].Status
}

// checkMemory fails if the gateway needs more than so many MiB for what do does.
func (b rawSite) checkMemory(t *testing.T, most int64, do func()) {
	t.Helper()
	before, _, err := load.Memory(b.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	do()
	after, _, err := load.Memory(b.cmd.Process.Pid)
	if err != nil || (after-before)>>20 > most {
		t.Errorf("%d MiB more, at most %d; %v", (after-before)>>20, most, err)
	}
}

// readStatus returns the status of the answer.
func readStatus(conn net.Conn) (int, error) {
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// TestBesieged has many clients at the API of the built binary, and such as read slowly, say half of what they have to say,
// say too much, and go away in the middle.
func TestBesieged(t *testing.T) {
	b := rawSite{newSite(t, ", limits: {requests: 0, executions: 0}")}
	t.Run("many clients", func(t *testing.T) {
		r := load.Run(t.Context(), load.Options{URL: "http://" + b.address(), Token: "a-token-for-a-test", Clients: 16, For: 2 * time.Second, Call: "from servers.everything import echo\necho('hi')"})
		if r.Failed > 0 || r.Answers[http.StatusOK] == 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a client goes away in the middle", func(t *testing.T) {
		for _, header := range []string{"", "Accept: text/event-stream\r\n"} {
			conn := b.run(t, header, "import time\nfrom servers.gate import enter\nprint('on its way')\nenter()\ntime.sleep(600)")
			b.inside(t)
			gone := time.Now()
			_ = conn.Close()
			await(t, "the sandbox is gone", func() bool { return len(b.sandboxes()) == 0 })
			if took := time.Since(gone); took > 20*time.Second {
				t.Errorf("it ran on for %s", took)
			}
			await(t, "it is on record as canceled", func() bool { return b.last(t) == "canceled" })
		}
	})
	t.Run("a client reads nothing", func(t *testing.T) {
		b.checkMemory(t, 32, func() {
			conn := b.run(t, "Accept: text/event-stream\r\n", "from servers.gate import enter\nfor i in range(80_000): print(i, 'x' * 99)\nenter()\n'done'")
			b.inside(t) // with 8 MB that are not read yet
			b.gate.open <- struct{}{}
			await(t, "it is on record", func() bool { return b.last(t) == "ok" })
			_ = conn.Close()
		})
	})
	t.Run("clients say half of it", func(t *testing.T) {
		b.checkMemory(t, 32, func() {
			for range 200 {
				b.send(t, "Content-Length: 3000000", `{"code": "`)
			}
			conn := b.run(t, "", "6 * 7")
			if status, err := readStatus(conn); err != nil || status != http.StatusOK {
				t.Errorf("another client: %d, %v", status, err)
			}
		})
	})
	t.Run("a gigabyte", func(t *testing.T) {
		b.checkMemory(t, 32, func() {
			conn := b.send(t, "Content-Length: 1073741824", `{"code": "`)
			if status, err := readStatus(conn); err != nil || status != http.StatusRequestEntityTooLarge {
				t.Errorf("said in advance: %d, %v", status, err)
			}
			conn = b.send(t, "Transfer-Encoding: chunked", "a\r\n{\"code\": \"\r\n")
			chunk, sent := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10)), 0
			for sent < 1<<30 {
				n, err := io.WriteString(conn, chunk)
				if sent += n; err != nil {
					break
				}
			}
			if sent > 64<<20 {
				t.Errorf("%d MiB of a body were taken", sent>>20)
			}
		})
	})
	b.terminate(t)
	b.waitStopped(t)
}
