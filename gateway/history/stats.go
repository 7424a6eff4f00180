package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// stats aggregates records.
type stats struct {
	since                         time.Time
	status, language, calls, fail map[string]int
	durations                     []time.Duration
	made                          int
	// read and answered are numbers of tokens: of results that programs got, and of answers.
	read, answered int64
	// partly says that some calls are not in the records.
	partly bool
}

// Stats summarizes, for a model, the recorded programs of a client's session (tool.Principal and
// tool.Session) and the resources that it uses now. Errors are *tool.Error.
func (h *History) Stats(ctx context.Context) (string, error) {
	s := stats{status: map[string]int{}, language: map[string]int{}, calls: map[string]int{}, fail: map[string]int{}}
	for r, err := range h.Records(ctx) {
		if err != nil {
			return "", err
		}
		if r.Session == tool.Session(ctx) {
			s.add(r)
		}
	}
	var b strings.Builder
	s.write(&b)
	for _, line := range h.opts.Resources(ctx) {
		b.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func (s *stats) add(r Record) {
	if s.since.IsZero() || r.Started.Before(s.since) {
		s.since = r.Started
	}
	s.status[string(r.Status)]++
	s.language[r.Language]++
	s.durations = append(s.durations, r.Duration)
	s.made += r.Made
	s.answered += int64(r.Tokens)
	s.read += r.ReadTokens()
	s.partly = s.partly || r.TokensRead == 0 && r.Made > len(r.Calls)
	for _, c := range r.Calls {
		s.calls[c.Tool.Upstream]++
		if c.Outcome != "ok" {
			s.fail[c.Tool.Upstream]++
		}
	}
}

func (s *stats) write(b *strings.Builder) {
	n := len(s.durations)
	if n == 0 {
		b.WriteString("no programs yet\n")
		return
	}
	programs := "programs"
	if n == 1 {
		programs = "program"
	}
	fmt.Fprintf(b, "%d %s since %s: %s; %s\n", n, programs, s.since.UTC().Format("2006-01-02 15:04 UTC"), formatCounts(s.status), formatCounts(s.language))
	slices.Sort(s.durations)
	fmt.Fprintf(b, "duration: p50 %v, p99 %v\n", roundDuration(percentile(s.durations, 50)), roundDuration(percentile(s.durations, 99)))
	if s.made > 0 {
		fmt.Fprintf(b, "tool calls: %d: %s%s\n", s.made, formatCounts(s.calls), formatFailures(s.fail))
	}
	fmt.Fprintf(b, "answers: %d tokens", s.answered)
	if kept := s.read - s.answered; kept > 0 {
		least := ""
		if s.partly {
			least = "at least "
		}
		fmt.Fprintf(b, "; results that programs read: %s%d, so %d stayed out of the context", least, s.read, kept)
	}
	b.WriteString("\n")
}

// percentile returns a percentile of sorted values, by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// roundDuration rounds a duration to two or three digits.
func roundDuration(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit)
		}
		if d >= unit {
			return d.Round(unit / 10)
		}
	}
	return d
}

// maxCounted is the maximum number of listed keys.
const maxCounted = 10

// formatCounts lists counts, the highest first.
func formatCounts(counts map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, key := range keys[:min(len(keys), maxCounted)] {
		parts = append(parts, strconv.Itoa(counts[key])+" "+sanitize.Line(key, 64))
	}
	if more := len(keys) - maxCounted; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func formatFailures(counts map[string]int) string {
	if len(counts) == 0 {
		return ""
	}
	return "; failed: " + formatCounts(counts)
}
