package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Page is one tab. It is not safe for concurrent use.
type Page struct {
	tb     testing.TB
	ctx    context.Context //nolint:containedctx // chromedp keeps its browser and tab in it
	folder string

	mu         sync.Mutex
	complaints []string
	markSeen   chan struct{} // receives a mark logged by the page
}

// mark is a console message that flushes earlier messages: they arrive in order.
const mark = "browser: all said before this"

// collectComplaints collects the page's errors, until it is closed.
func (p *Page) collectComplaints(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return
		}
		switch m.Type {
		case chromedp.ConsoleDebug:
			if m.Text == mark {
				p.markSeen <- struct{}{}
			}
		case "error", "warning", "assert", chromedp.ConsoleException:
			p.mu.Lock()
			p.complaints = append(p.complaints, fmt.Sprintf("%s: %s (%s:%d)", m.Type, m.Text, m.URL, m.Line+1))
			p.mu.Unlock()
		}
	}
}

// Complaints returns the page's errors since the last call: console errors and warnings, uncaught exceptions,
// Content-Security-Policy violations, responses of 400 and above.
func (p *Page) Complaints() []string {
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.complaints
	p.complaints = nil
	return all
}

// settle waits until the page's earlier messages are collected. A page that cannot log (scripts off, closed) has
// none.
func (p *Page) settle() {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[any]("void console.debug("+jsString(mark)+")")); err != nil {
		return
	}
	select {
	case <-p.markSeen:
	case <-ctx.Done():
	}
}

func (p *Page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.tb.Fatalf("%s: %v", what, err)
	}
}

func get[T any](p *Page, what string, action chromedp.Action[T]) T {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		p.tb.Fatalf("%s: %v", what, err)
	}
	return value
}

// command runs a DevTools protocol command.
func command[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// Go opens a URL, waits until it has loaded, and returns the status.
func (p *Page) Go(url string) int {
	p.tb.Helper()
	resp := get(p, "open "+url, chromedp.NavigateResponse(url))
	if resp == nil {
		return 0
	}
	return int(resp.Status)
}

// Size sets the window size, in CSS pixels; a width of at most 600 emulates a phone.
func (p *Page) Size(width, height int64) {
	p.tb.Helper()
	var opts []chromedp.EmulateViewportOption
	if width <= 600 {
		opts = append(opts, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
	}
	p.do("set the size", chromedp.EmulateViewport(width, height, opts...))
}

// Scheme sets the user's preferred colour scheme, "dark" or "light".
func (p *Page) Scheme(scheme string) {
	p.tb.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	p.do("set the scheme", command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}))
}

// NoScript disables or enables the page's scripts, from the next page on. Methods that evaluate scripts need them on.
func (p *Page) NoScript(off bool) {
	p.tb.Helper()
	p.do("turn scripts off", command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off}))
}

// Wait waits until an element that matches a CSS selector is visible.
func (p *Page) Wait(selector string) {
	p.tb.Helper()
	p.do("wait for "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
}

// WaitText waits until the first element that matches a CSS selector shows a text.
func (p *Page) WaitText(selector, text string) {
	p.tb.Helper()
	said := p.Text(selector)
	for end := time.Now().Add(timeout); !strings.Contains(said, text); said = p.Text(selector) {
		if time.Now().After(end) {
			p.tb.Fatalf("%s does not show %q but %.2000s", selector, text, said)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Text returns the text of the first element that matches a CSS selector, waiting for one. During navigation there is
// none.
func (p *Page) Text(selector string) string {
	p.tb.Helper()
	expression := "document.querySelector(" + jsString(selector) + ")?.innerText ?? null"
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	for {
		text, err := chromedp.Run(ctx, chromedp.Evaluate[*string](expression))
		if err == nil && text != nil {
			return *text
		}
		if ctx.Err() != nil {
			p.tb.Fatalf("read %s: there is none (%v)", selector, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// URL returns the page's URL.
func (p *Page) URL() string {
	p.tb.Helper()
	return get(p, "read the URL", chromedp.Location())
}

// Follow clicks on a link or a submit button, and waits for the next page. It returns the status, 0 if a script has
// replaced the content instead.
func (p *Page) Follow(selector string) int {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	resp, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	if err != nil {
		p.tb.Fatalf("follow %s: %v", selector, err)
	}
	if resp == nil {
		return 0
	}
	return int(resp.Status)
}

// Fill replaces the text of a field.
func (p *Page) Fill(selector, text string) {
	p.tb.Helper()
	field := chromedp.CSS(selector)
	all := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Commands: []string{"selectAll"}}
	none := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Commands: []string{"deleteBackward"}}
	p.do("fill "+selector, chromedp.WaitVisible(field), chromedp.Focus(field), command(input.DispatchKeyEvent, all), command(input.DispatchKeyEvent, none), chromedp.KeyEvent(text))
}

// Press presses keys in order, given by character or name: Tab, Enter, Escape, ArrowDown, ArrowUp.
func (p *Page) Press(keys ...string) {
	p.tb.Helper()
	named := map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp}
	for _, key := range keys {
		if name, ok := named[key]; ok {
			key = name
		}
		p.do("press a key", chromedp.KeyEvent(key))
	}
}

// Type types a text into what has the focus, key by key.
func (p *Page) Type(text string) {
	p.tb.Helper()
	p.do("type", chromedp.KeyEvent(text))
}

// Key presses a key of a keyboard: Enter, Tab, Escape, Delete, Backspace or a letter, with the control key where control is set. Unlike that of
// Press, it types nothing where a script of the page prevents that.
func (p *Page) Key(name string, control bool) {
	p.tb.Helper()
	codes := map[string]int64{"Enter": '\r', "Tab": '\t', "Escape": 27, "Delete": 46, "Backspace": 8}
	e := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: name, Code: name, WindowsVirtualKeyCode: codes[name]}
	if e.WindowsVirtualKeyCode == 0 {
		e.Code, e.WindowsVirtualKeyCode = "Key"+strings.ToUpper(name), int64(strings.ToUpper(name)[0])
	}
	switch {
	case control:
		e.Modifiers = 2
	case name == "Enter":
		e.Type, e.Text = input.DispatchKeyEventTypeKeyDown, "\r"
	}
	up := e
	up.Type, up.Text = input.DispatchKeyEventTypeKeyUp, ""
	p.do("press "+name, command(input.DispatchKeyEvent, e), command(input.DispatchKeyEvent, up))
}

// WaitFor waits until a JavaScript expression is true.
func (p *Page) WaitFor(expression string) {
	p.tb.Helper()
	for end := time.Now().Add(timeout); !Eval[bool](p, "!!("+expression+")"); {
		if time.Now().After(end) {
			p.tb.Fatalf("this does not become true: %s", expression)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Eval evaluates a JavaScript expression in a page, awaits a promise, and returns the value.
func Eval[T any](p *Page, expression string) T {
	p.tb.Helper()
	return get(p, "evaluate "+expression[:min(len(expression), 80)], chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Screenshot writes the visible page to a PNG file.
func (p *Page) Screenshot(path string) {
	p.tb.Helper()
	if err := os.WriteFile(path, get(p, "take a picture", chromedp.CaptureScreenshot()), 0o600); err != nil {
		p.tb.Fatal(err)
	}
}

// Overflows returns by how many CSS pixels the page is wider than its window: 0 means no horizontal scrolling.
func (p *Page) Overflows() int {
	p.tb.Helper()
	return Eval[int](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}

func jsString(text string) string {
	data, err := json.Marshal(text)
	if err != nil { // a text
		return `""`
	}
	return string(data)
}
