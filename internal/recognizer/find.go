package recognizer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sallyport/internal/pii"
)

const (
	// maxTexts and maxBatch bound one request.
	maxTexts, maxBatch = 100, 64 << 10
	// maxPiece is the longest text that is sent in one piece; adjacent pieces share up to overlap bytes, so that an
	// entity at the border is whole in one of them.
	maxPiece, overlap = 16 << 10, 512
)

// piece is a part of a text.
type piece struct {
	text   int // its number
	offset int
	value  string
}

// Find returns the findings in each of the texts, in order and without overlaps; the caller must not modify them.
// Texts that the same principal sent before are cached. Errors are *Fault.
func (c *Client) Find(ctx context.Context, principal string, texts []string) ([][]pii.Finding, error) {
	found := make([][]pii.Finding, len(texts))
	keys := make([]key, len(texts))
	var asked []int
	for i, text := range texts {
		keys[i] = keyOf(principal, text)
		var known bool
		if found[i], known = c.cache.get(keys[i]); !known {
			asked = append(asked, i)
		}
	}
	if err := c.ask(ctx, texts, asked, found); err != nil {
		return nil, err
	}
	for _, i := range asked {
		found[i] = mergeOverlaps(found[i])
		c.cache.put(keys[i], found[i])
	}
	return found, nil
}

// ask adds the findings in the texts with these numbers.
func (c *Client) ask(ctx context.Context, texts []string, numbers []int, found [][]pii.Finding) error {
	ctx, cancel := context.WithTimeout(ctx, c.settings.Timeout)
	defer cancel()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		fault error
		queue = c.batches(texts, numbers)
	)
	one := func() bool {
		mu.Lock()
		if len(queue) == 0 || fault != nil {
			mu.Unlock()
			return false
		}
		batch := queue[0]
		queue = queue[1:]
		mu.Unlock()
		lists, err := c.analyze(ctx, values(batch))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if fault == nil {
				fault = err
			}
			cancel() // the other results are not needed
			return false
		}
		gather(found, batch, lists)
		return true
	}
	for range min(maxRequests, len(queue)) {
		wg.Go(func() {
			for one() {
			}
		})
	}
	wg.Wait()
	return fault
}

// gather adds the findings in pieces to those of their texts.
func gather(found [][]pii.Finding, batch []piece, lists [][]pii.Finding) {
	for i, p := range batch {
		for _, f := range lists[i] {
			f.Start, f.End = f.Start+p.offset, f.End+p.offset
			found[p.text] = append(found[p.text], f)
		}
	}
}

// mergeOverlaps sorts findings and merges those that overlap, with the kind of the longest: none may reveal a part of
// another.
func mergeOverlaps(list []pii.Finding) (all []pii.Finding) {
	slices.SortFunc(list, func(a, b pii.Finding) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	longest := 0 // of those in the last one
	for _, f := range list {
		if n := len(all); n > 0 && f.Start < all[n-1].End {
			last := &all[n-1]
			last.End = max(last.End, f.End)
			if f.End-f.Start > longest {
				last.Kind, longest = f.Kind, f.End-f.Start
			}
			continue
		}
		all, longest = append(all, f), f.End-f.Start
	}
	return all
}

// Sample is the sentence that Check sends.
const Sample = "Please write to Anna Schmidt in Berlin."

// Check sends one sentence, and returns the duration and the number of findings.
func (c *Client) Check(ctx context.Context) (took time.Duration, found int, err error) {
	begin := time.Now()
	lists := make([][]pii.Finding, 1)
	err = c.ask(ctx, []string{Sample}, []int{0}, lists)
	return time.Since(begin), len(lists[0]), err
}

func values(batch []piece) (texts []string) {
	for _, p := range batch {
		texts = append(texts, p.value)
	}
	return texts
}

// batches distributes texts over requests.
func (c *Client) batches(texts []string, numbers []int) (all [][]piece) {
	most := maxTexts
	if c.settings.Single {
		most = 1
	}
	var batch []piece
	size := 0
	for _, i := range numbers {
		for _, p := range pieces(i, texts[i]) {
			if len(batch) == most || len(batch) > 0 && size+len(p.value) > maxBatch {
				all, batch, size = append(all, batch), nil, 0
			}
			batch, size = append(batch, p), size+len(p.value)
		}
	}
	if len(batch) > 0 {
		all = append(all, batch)
	}
	return all
}

// pieces splits a long text, at white space if possible.
func pieces(n int, text string) (list []piece) {
	start := 0
	for len(text)-start > maxPiece {
		end := wordBorder(text, start+maxPiece-overlap, start+maxPiece)
		list = append(list, piece{n, start, text[start:end]})
		start = wordBorder(text, end-overlap, end-overlap/2)
	}
	return append(list, piece{n, start, text[start:]})
}

// wordBorder returns a position from least to most to cut a text at: after the last white space, else between
// characters.
func wordBorder(text string, least, most int) int {
	if i := strings.LastIndexAny(text[least:most], " \n\t"); i >= 0 {
		return least + i + 1
	}
	for most > least && !utf8.RuneStart(text[most]) {
		most--
	}
	return most
}
