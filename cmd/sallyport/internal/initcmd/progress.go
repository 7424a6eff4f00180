package initcmd

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
)

// progress shows a bar on a terminal while steps run, and nothing in a pipe.
type progress struct {
	out   io.Writer
	total int

	mu   sync.Mutex
	done int
	what string
	from time.Time
}

// barWidth is the number of characters of a bar, barPeriod how often it is drawn.
const (
	barWidth  = 20
	barPeriod = 100 * time.Millisecond
)

// startProgress draws a bar for a number of steps until stop is called, which removes it.
func startProgress(out io.Writer, total int) (p *progress, stop func()) {
	p = &progress{out: out, total: total, from: time.Now()}
	if !cli.IsTerminal(out) {
		return p, func() {}
	}
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() { p.draw(ended) })
	return p, func() { close(ended); drawing.Wait() }
}

// begin names the next step; those before it are done.
func (p *progress) begin(done int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.what = done, what
}

func (p *progress) draw(ended <-chan struct{}) {
	tick := time.NewTicker(barPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			fmt.Fprint(p.out, "\r\x1b[K")
			return
		case now := <-tick.C:
			fmt.Fprint(p.out, "\r\x1b[K"+p.line(now))
		}
	}
}

// line returns the bar as text.
func (p *progress) line(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := barWidth * p.done / max(1, p.total)
	return fmt.Sprintf("[%s%s] %d/%d %s, %d s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), p.done, p.total, p.what, int(now.Sub(p.from).Seconds()))
}
