package main_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/browser"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// paintedRecords is the number of executions that are on record when pages are painted: as many as are kept.
const paintedRecords = 100_000

// paintedPages are the pages that show executions.
var paintedPages = map[string]string{"overview": "/", "executions": "/ui/executions", "last-page": "/ui/executions?offset=99950", "failed": "/ui/executions?status=timeout", "search": "/ui/executions?text=invoice+99", "search-one": "/ui/executions?text=customer+4242+are", "search-all": "/ui/executions?text=customer", "savings": "/ui/savings"}

// BenchmarkFirstPaint is the time from the request of a page of the dashboard to its first paint in a browser (its First Contentful
// Paint), with as many executions on record as are kept. It takes a minute to write them.
func BenchmarkFirstPaint(b *testing.B) {
	dir := testutil.ShortDir(b)
	oldest := writeExecutions(b, filepath.Join(dir, "data"), paintedRecords)
	settings := "upstreams: {}\nsandbox: {runsc: " + testutil.Runsc(b) + ", pool: {max: 0, min: 0}}\nhttp: {tokens: {test: a-token-for-a-test}, operators: [test]}\n"
	if err := os.WriteFile(filepath.Join(dir, "upstreams.yaml"), []byte(settings), 0o600); err != nil {
		b.Fatal(err)
	}
	serve := exec.CommandContext(b.Context(), testutil.Binary(b), "serve", "--http", "127.0.0.1:0", "--config", filepath.Join(dir, "upstreams.yaml"), "--data", filepath.Join(dir, "data"))
	serve.Env = append(os.Environ(), "TMPDIR="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir)
	url, _ := startListening(b, serve)
	url = strings.TrimSuffix(url, "/mcp")
	tab := browser.Open(b).Page(b)
	tab.Go(url + "/login")
	tab.Fill("#token", "a-token-for-a-test")
	tab.Follow("main button.primary")
	began := time.Now()
	tab.Go(url + "/ui/executions")
	b.Logf("the first list after the start takes %v", time.Since(began))
	tab.WaitText("main", "of 100,000")
	paintedPages["execution"] = "/ui/executions/" + oldest
	for name, path := range paintedPages {
		b.Run(name, func(b *testing.B) {
			painted := 0.0
			for b.Loop() {
				tab.Go(url + path)
				painted += firstPaint(b, tab)
			}
			b.ReportMetric(painted/float64(b.N), "first-paint-ms")
		})
	}
}

// firstPaint waits until a page was painted, and returns the milliseconds from its request to that.
func firstPaint(b *testing.B, tab *browser.Page) (ms float64) {
	b.Helper()
	testutil.Eventually(b, "the page is painted", time.Minute, func() bool {
		ms = browser.Eval[float64](tab, `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`)
		return ms > 0
	})
	return ms
}

// writeExecutions puts executions on record in a data directory: of 50 principals, with three calls each and an output, one of ten failed.
// It returns the id of the oldest one.
func writeExecutions(b *testing.B, data string, n int) (oldest string) {
	b.Helper()
	records, err := store.Open(filepath.Join(data, cli.RecordsFolder), &store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	settings := &atomic.Pointer[config.Config]{}
	standard := config.Default()
	settings.Store(&standard)
	h, err := history.Open(history.Options{Records: records, Settings: settings, Logger: slog.New(slog.DiscardHandler), Meter: &execution.Meter{}, EstimateTokens: true, OnTokens: func(int, int) {}})
	if err != nil {
		b.Fatal(err)
	}
	h.Start()
	var work sync.WaitGroup
	room := make(chan struct{}, 64)
	for i := range n {
		room <- struct{}{}
		id := execution.NewID()
		if i == 0 {
			oldest = id
		}
		work.Go(func() {
			addExecution(b.Context(), h, i, id, time.Now().Add(-time.Duration(n-i)*time.Second))
			<-room
		})
	}
	work.Wait()
	h.Close()
	if err := records.Close(); err != nil {
		b.Fatal(err)
	}
	return oldest
}

func addExecution(ctx context.Context, h *history.History, i int, id string, started time.Time) {
	e := &execution.Result{ID: id, Language: "python"}
	e.Status, e.Duration = sandbox.OK, time.Second
	e.Stdout.Text = fmt.Sprintf("%d invoices of customer %d are open\n", i%7, i)
	if i%10 == 0 {
		e.Status = sandbox.TimedOut
	}
	code := fmt.Sprintf("# Open invoices of customer %d\nfrom servers.crm import list_invoices\n", i) + strings.Repeat("invoices = list_invoices(limit=50)\n", 20)
	h.Add(tool.WithPrincipal(ctx, fmt.Sprintf("oauth:person-%d", i%50)), execution.Program{Code: code}, e, started, &toolcall.Execution{Root: e.ID, Calls: &toolcall.List{}}, nil)
}
