// Package load runs many concurrent clients of a gateway's API: programs in both languages, calls, streams, slow
// readers and clients that disconnect. Each has one request at a time, and obeys Retry-After.
package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options configure a load.
type Options struct {
	// URL is the gateway's, without a path; Token is sent if it is set.
	URL, Token string
	// Clients is the number of concurrent clients, For how long they run.
	Clients int
	For     time.Duration
	// Call is a line of Python that calls a tool of an upstream.
	Call string
	// Patience bounds a client's wait before a retry; 0 means 2 s.
	Patience time.Duration
}

// Report is the result.
type Report struct {
	// Answers counts responses by status, Programs executions by outcome.
	Answers  map[int]int
	Programs map[string]int
	// Left is the number of clients that disconnected, Streams the number of events that were read.
	Left, Streams int
	// Took are the durations of requests that ran a program.
	Took []time.Duration
	// Wrong describes the first few unexpected responses; Failed is their total number.
	Wrong  []string
	Failed int
}

// maxWrong is the maximum number of wrong responses that are reported.
const maxWrong = 10

// Percentile returns a percentile of Took, which it sorts.
func (r *Report) Percentile(p float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	slices.Sort(r.Took)
	return r.Took[min(len(r.Took)-1, int(p*float64(len(r.Took))))]
}

// runner runs the clients of one load.
type runner struct {
	Options
	client *http.Client

	mu     sync.Mutex
	report Report
}

// Run runs the clients until the time is over, and returns when the last response has arrived.
func Run(ctx context.Context, o Options) Report {
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	transport := &http.Transport{MaxIdleConnsPerHost: o.Clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	r := &runner{Options: o, client: &http.Client{Transport: transport}, report: Report{Answers: map[int]int{}, Programs: map[string]int{}}}
	end := time.Now().Add(o.For)
	var work sync.WaitGroup
	for i := range o.Clients {
		work.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(i), 11)) //nolint:gosec // the same load each time
			for time.Now().Before(end) && ctx.Err() == nil {
				pause(ctx, min(r.one(ctx, dice), time.Until(end)))
			}
		})
	}
	work.Wait()
	return r.report
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// behavior is the behaviour of a client.
type behavior struct {
	code, language string
	stream, slow   bool
	leave          time.Duration // disconnects after that; 0 means never
}

// next returns a client's next request.
func (r *runner) next(dice *rand.Rand) behavior {
	const long = "for i in range(2000): print(i, 'x' * 100)\n'done'"
	switch n := dice.IntN(20); {
	case n < 6:
		return behavior{code: "print('hello')\n6 * 7", language: "python"}
	case n < 11:
		return behavior{code: "const n: number = 6; console.log('hello'); export default n * 7", language: "typescript"}
	case n < 14:
		return behavior{code: r.Call, language: "python"}
	case n < 16:
		return behavior{code: "import time\nfor i in range(5):\n    print(i); time.sleep(0.02)\n'done'", language: "python", stream: true}
	case n < 17:
		return behavior{code: long, language: "python", stream: true, slow: true}
	case n < 18:
		return behavior{code: long, language: "python", slow: true}
	}
	return behavior{code: "import time\ntime.sleep(20)", language: "python", stream: dice.IntN(2) == 0, leave: time.Duration(5+dice.IntN(1500)) * time.Millisecond}
}

// one sends one request, and returns how long the client then waits.
func (r *runner) one(ctx context.Context, dice *rand.Rand) time.Duration {
	m := r.next(dice)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if m.leave > 0 {
		defer time.AfterFunc(m.leave, cancel).Stop()
	}
	begin := time.Now()
	response, err := r.ask(ctx, m)
	if err != nil {
		return r.recordFailure(m, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := read(response.Body, m.slow)
	switch {
	case err != nil:
		return r.recordFailure(m, err)
	case response.StatusCode == http.StatusOK:
		r.recordProgram(m, body, time.Since(begin))
		return 0
	}
	return r.handleRefusal(response, body)
}

func (r *runner) ask(ctx context.Context, m behavior) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"code": m.code, "language": m.language})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/execute", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if m.stream {
		request.Header.Set("Accept", "text/event-stream")
	}
	if r.Token != "" {
		request.Header.Set("Authorization", "Bearer "+r.Token)
	}
	return r.client.Do(request)
}

// read reads a whole body, optionally slowly at its beginning.
func read(body io.Reader, slow bool) (string, error) {
	var b strings.Builder
	for i := 0; slow && i < 10; i++ {
		if _, err := io.CopyN(&b, body, 64); err != nil {
			break // the rest says it again
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, err := io.Copy(&b, body)
	return b.String(), err
}

// recordProgram records the outcome of a program.
func (r *runner) recordProgram(m behavior, body string, took time.Duration) {
	events := 0
	if m.stream {
		events = strings.Count(body, "\nevent: ")
		if strings.HasPrefix(body, "event: ") {
			events++
		}
		_, last, ok := strings.Cut(body, "event: result\ndata: ")
		if !ok && strings.Contains(body, `"status":503`) { // refused after the stream had started
			last = `{"status":"busy"}`
		}
		body, _, _ = strings.Cut(last, "\n")
	}
	var got struct{ Status string }
	err := json.Unmarshal([]byte(body), &got)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Answers[http.StatusOK]++
	r.report.Programs[got.Status]++
	r.report.Streams += events
	r.report.Took = append(r.report.Took, took)
	if err != nil || got.Status != "ok" && got.Status != "busy" {
		r.recordWrong(fmt.Sprintf("200 with %.300q", body))
	}
}

// handleRefusal records a refused request, and returns the delay before the retry.
func (r *runner) handleRefusal(response *http.Response, body string) time.Duration {
	after, err := strconv.Atoi(response.Header.Get("Retry-After"))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Answers[response.StatusCode]++
	honest := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
	if !honest || err != nil || after < 1 || response.Header.Get("Content-Type") != "application/problem+json" {
		r.recordWrong(fmt.Sprintf("%d, Retry-After %q: %.300q", response.StatusCode, response.Header.Get("Retry-After"), body))
	}
	return min(time.Duration(after)*time.Second, r.Patience)
}

// recordFailure records a request without a response.
func (r *runner) recordFailure(m behavior, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.leave > 0 && errors.Is(err, context.Canceled) {
		r.report.Left++
		return 0
	}
	r.recordWrong(fmt.Sprintf("no answer: %v", err))
	return 100 * time.Millisecond
}

// recordWrong is called with mu held.
func (r *runner) recordWrong(what string) {
	r.report.Failed++
	if len(r.report.Wrong) < maxWrong {
		r.report.Wrong = append(r.report.Wrong, what)
	}
}
