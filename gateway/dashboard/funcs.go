package dashboard

import (
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sallyport/gateway/budgets"
	"sallyport/gateway/catalog"
	"sallyport/gateway/history"
	"sallyport/gateway/rehearsal"
	"sallyport/internal/models"
	"sallyport/internal/packed"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
)

//go:embed templates
var templateFiles embed.FS

// safe is HTML that a template has made.
type safe = template.HTML

// parse reads all templates; they are part of the program, and a test opens each.
func parse() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset":        func(name string) string { return assets()[name].path },
		"when":         when,
		"isZero":       time.Time.IsZero,
		"between":      func(from, to time.Time) time.Duration { return to.Sub(from) },
		"day":          func(t time.Time) string { return t.Format(time.DateOnly) },
		"duration":     duration,
		"grouped":      func(n any) string { return groupDigits(toInt64(n)) },
		"size":         func(n any) string { return size(toInt64(n)) },
		"plural":       func(n any, one, many string) string { return plural(toInt64(n), one, many) },
		"tone":         tone,
		"line":         func(s any, most int) string { return sanitize.Line(fmt.Sprint(s), most) },
		"text":         func(s any, most int) string { return sanitize.Text(fmt.Sprint(s), most) },
		"long":         long,
		"path":         func(s any) string { return url.PathEscape(fmt.Sprint(s)) },
		"join":         strings.Join,
		"percent":      percent,
		"milliseconds": milliseconds,
		"useText":      budgets.UseText,
		"price":        price,
		"who":          principalName,
		"words":        prettyText,
		"effect":       effect,
		"differs":      rehearsal.Change.Differs,

		"effectTone":    func(a policy.Action) string { return effects[a][1] },
		"editPath":      editPath,
		"switchPath":    switchPath,
		"restartPath":   restartPath,
		"executionPath": executionPath,
		"auditMarks":    auditMarks,
		"auditPath":     auditPath,

		"upstreamProblem": catalog.Upstream.Problem,
		"savedTokens":     history.SavingsStep.SavedTokens,
		"usedShare":       budgets.Row.Share,
		"usedTokens":      models.Usage.Tokens,
		"isWhole":         func(p AuditPage) bool { return p.Whole() },
		"isRun":           func(id string) bool { return strings.HasPrefix(id, "r-") },
	}).ParseFS(packed.FS(templateFiles), "templates/*.html"))
}

// moment is a time for the template "when": what a page shows without script, and what machines read.
type moment struct{ Stamp, Text string }

// when is what {{template "when"}} shows of a time. It does not say how long ago that was: the page's script does.
func when(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	t = t.UTC()
	return moment{t.Format(time.RFC3339), t.Format("2006-01-02 15:04:05 UTC")}
}

// duration is a time span in two or three digits.
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// toInt64 is any integer as one type.
func toInt64(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case int32:
		return int64(n)
	case uint64:
		return int64(n)
	}
	return 0
}

// groupDigits is a number with its thousands apart.
func groupDigits(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size is a number of bytes in words.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return groupDigits(n) + " " + many
}

// percent is a part of a whole, "" where there is no whole.
func percent(part, all any) string {
	p, n := toInt64(part), toInt64(all)
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(p)/float64(n))
}

// tones are how badges of a state look; whatever is not here is neutral. The state itself is always written out.
var tones = map[string]string{
	"ready": "good", "ok": "good", "allowed": "good", "used": "good", "done": "good", "succeeded": "good", "completed": "good", "verified": "good", "pinned": "good",
	"failed": "bad", "denied": "bad", "deny": "bad", "crashed": "bad", "error": "bad", "memory": "bad", "output": "bad", "cpu": "bad", "timeout": "bad", "suspicious": "bad", "destructive": "bad",
	"waiting": "warn", "held": "warn", "parked": "warn", "changed": "warn", "new": "warn", "ask": "warn", "expired": "warn", "unfinished": "warn", "exited": "warn", "needs login": "warn",
	"invalid": "bad", "not_found": "bad", "upstream": "bad", "internal": "bad", "limit": "bad", "refused": "bad", "rejected": "bad", "asked": "warn", "planned": "calm", "gone": "bad", "interrupted": "bad",
	"connected": "good", "no login": "warn", "allow": "good", "ended": "good", "cached": "good", "shared": "good", "pending": "warn", "canceled": "warn",
	"alive": "good", "lost": "bad", "draining": "warn", "drained": "warn", "behind": "warn",
	"running": "busy", "connecting": "busy", "queued": "busy",
}

func tone(state any) string {
	if t, ok := tones[strings.ToLower(fmt.Sprint(state))]; ok {
		return t
	}
	return "calm"
}

// maxLong is how much of one text a page has at all, in characters.
const maxLong = 64 << 10

// longText is a text for the template "long": its beginning, and the rest, which is folded.
type longText struct {
	Short, Rest string
	Cut         bool
}

// long divides a text behind so many characters, at a space if there is one near.
func long(s any, most int) longText {
	text := fmt.Sprint(s)
	clean := sanitize.Text(text, maxLong)
	runes := []rune(clean)
	if len(runes) <= most+most/4 {
		return longText{Short: clean}
	}
	at := most
	for i := most; i > most-most/4; i-- {
		if runes[i] == ' ' || runes[i] == '\n' {
			at = i
			break
		}
	}
	return longText{Short: string(runes[:at]), Rest: string(runes[at:]), Cut: len(runes) >= maxLong}
}
