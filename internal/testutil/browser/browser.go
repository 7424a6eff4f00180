// Package browser drives the Chromium of `make browser` for tests of pages: [Open] starts it, [Browser.Page] opens a
// tab with its own cookies. It reaches only the loopback interface. Every method fails the test after a timeout of 30
// s; a page that logs an error, violates its Content-Security-Policy, throws, or requests a missing resource fails
// the test at its end, unless the test has read it ([Page.Complaints]).
package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"sallyport/internal/testutil"
)

// timeout is the timeout of every operation, generous for a loaded machine.
const timeout = 30 * time.Second

// Browser is one headless Chromium.
type Browser struct {
	ctx    context.Context //nolint:containedctx // chromedp keeps its browser and tab in it
	folder string
}

// Open starts a Chromium, which ends with the test.
func Open(tb testing.TB) *Browser {
	tb.Helper()
	folder := testutil.Browser(tb)
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(filepath.Join(folder, "chromium")), chromedp.UserDataDir(tb.TempDir()), chromedp.WSURLReadTimeout(timeout),
		chromedp.Env("LD_LIBRARY_PATH="+filepath.Join(folder, "lib"), "FONTCONFIG_FILE="+fonts(tb, folder), "HOME="+tb.TempDir()),
		// A test may run as root, and in a container with a small /dev/shm; the pages are ours.
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("no-zygote", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("headless", "shell"), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("ignore-certificate-errors", true), // servers of tests have certificates of their own
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"),
	)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(alloc)
	tb.Cleanup(func() {
		end()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("start Chromium: %v", err)
	}
	return &Browser{ctx: ctx, folder: folder}
}

// fonts limits Chromium to the fonts of its folder: a page looks the same on every machine.
func fonts(tb testing.TB, folder string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "fonts.conf")
	text := fmt.Sprintf("<fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>", filepath.Join(folder, "fonts"), tb.TempDir())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Page opens a tab of 1280 by 800 with empty cookies, until the test ends.
func (b *Browser) Page(tb testing.TB) *Page {
	tb.Helper()
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Page{tb: tb, ctx: ctx, folder: b.folder, markSeen: make(chan struct{}, 1)}
	if err := chromedp.Do(ctx); err != nil { // a tab ends with the context that is first used
		tb.Fatalf("open a tab: %v", err)
	}
	messages := chromedp.Console(ctx)
	var work sync.WaitGroup
	work.Go(func() { p.collectComplaints(messages) })
	tb.Cleanup(func() {
		for _, complaint := range p.Complaints() {
			tb.Errorf("the page complains: %s", complaint)
		}
		end()
		work.Wait()
	})
	p.Size(1280, 800)
	return p
}
