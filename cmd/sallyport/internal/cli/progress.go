package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress shows on stderr what a command does while it takes long. It is there only for a person: in a pipe, with NO_COLOR or on a
// dumb terminal nothing is shown. What the command prints appears above it.
type Progress struct {
	app    *App
	before *Progress
	ended  chan struct{}
	work   sync.WaitGroup

	mu    sync.Mutex
	total int
	done  int
	what  string
	from  time.Time
	shown bool
}

const (
	// progressDelay is how long a command may take before a progress is shown.
	progressDelay = 300 * time.Millisecond
	// progressPeriod is how often it is drawn.
	progressPeriod = 100 * time.Millisecond
	// barWidth is the number of characters of a bar.
	barWidth = 20
	// maxWhat is the number of characters of the text.
	maxWhat = 40

	eraseLine = "\r\x1b[K"
)

// Progress begins to show a progress: a bar for a number of steps, or only what is done if total is 0. It is shown until Stop. A
// an inner progress replaces it until it ends.
func (a *App) Progress(what string, total int) *Progress {
	p := &Progress{app: a, total: total, what: what, from: time.Now(), before: a.progress.Load(), ended: make(chan struct{})}
	if !a.Fancy(a.Stderr) {
		return p
	}
	p.before.above(func() {})
	a.progress.Store(p)
	p.work.Go(p.draw)
	return p
}

// Step shows what is done now, and how many steps there are.
func (p *Progress) Step(done int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.what = done, what
}

// Visible reports whether a person may see it.
func (p *Progress) Visible() bool { return p.app.Fancy(p.app.Stderr) }

// Stop removes it.
func (p *Progress) Stop() {
	close(p.ended)
	p.work.Wait()
	p.app.progress.CompareAndSwap(p, p.before)
}

func (p *Progress) draw() {
	next := time.NewTimer(progressDelay)
	defer next.Stop()
	for {
		select {
		case <-p.ended:
			p.above(func() {})
			return
		case now := <-next.C:
			p.mu.Lock()
			if p.app.progress.Load() == p {
				fmt.Fprint(p.app.Stderr, eraseLine+p.line(now))
				p.shown = true
			}
			p.mu.Unlock()
			next.Reset(progressPeriod)
		}
	}
}

// above calls print with the progress erased. It may be nil.
func (p *Progress) above(print func()) {
	if p == nil {
		print()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.app.Stderr, eraseLine)
		p.shown = false
	}
	print()
}

// line returns what is shown.
func (p *Progress) line(now time.Time) string {
	text := fmt.Sprintf("%s, %d s", Cell(p.what, maxWhat), int(now.Sub(p.from).Seconds()))
	if p.total == 0 {
		return text
	}
	full := barWidth * p.done / p.total
	return fmt.Sprintf("[%s%s] %d/%d %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), p.done, p.total, text)
}

// besides is a stream with output above a progress bar.
type besides struct {
	app *App
	io.Writer
}

// Write implements [io.Writer].
func (b besides) Write(data []byte) (n int, err error) {
	b.app.progress.Load().above(func() { n, err = b.Writer.Write(data) })
	return n, err
}

// Out returns stdout for output while a progress may be shown.
func (a *App) Out() io.Writer { return besides{a, a.Stdout} }

// Err returns stderr for output while a progress may be shown.
func (a *App) Err() io.Writer { return besides{a, a.Stderr} }

// Fancy reports whether colours and drawings may be written to a stream: it is a terminal, and the user has not turned them off.
func (a *App) Fancy(stream any) bool {
	off, _ := a.Env("NO_COLOR")
	kind, _ := a.Env("TERM")
	return off == "" && kind != "dumb" && IsTerminal(stream)
}

// colors returns the colours of the words that begin a line.
func colors() map[string]string {
	return map[string]string{"ok": "32", "warn": "33", "FAIL": "31", "sallyport:": "31", "hint:": "36"}
}

// paint colours the first word of each line that has a colour, if a stream may have colours.
func paint(a *App, stream any, text string) string {
	if !a.Fancy(stream) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(line, " ")
		if color := colors()[word]; color != "" && rest != "" {
			line = "\x1b[" + color + "m" + word + "\x1b[0m " + rest
		}
		b.WriteString(line)
	}
	return b.String()
}
