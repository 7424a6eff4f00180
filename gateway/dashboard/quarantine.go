package dashboard

import (
	"regexp"
	"strings"

	"sallyport/gateway/catalog"
	"sallyport/internal/tool"
)

// HeldCard is a definition that waits, laid out for a person.
type HeldCard struct {
	catalog.HeldTool
	Lines []DiffLine
	// Cut says that it is too long to be seen here, so that it cannot be approved here either.
	Cut bool
}

// DiffLine is one line of what would change.
type DiffLine struct {
	// Kind is "add", "del", "hunk" or "same"; Sign what it is marked with.
	Kind, Sign string
	Parts      []DiffPart
	// Found names what looks wrong in it.
	Found string
}

// DiffPart is a piece of a line; one that is Hidden does not show where the text is used.
type DiffPart struct {
	Text   string
	Hidden bool
}

// maxDiff is how much of a definition a page shows, in bytes; maxCards how many definitions.
const maxDiff, maxCards = 128 << 10, 50

// QuarantinePage is what waits.
type QuarantinePage struct {
	Held []HeldCard
	// More is how many there are beyond those.
	More     int
	Operator bool
}

func (d *Dashboard) quarantine(r *request) (any, error) {
	held, err := d.service.HeldTools(r.Context())
	p := QuarantinePage{Operator: r.isOperator(), More: max(len(held)-maxCards, 0)}
	for _, h := range held[:len(held)-p.More] {
		p.Held = append(p.Held, card(h))
	}
	return p, err
}

// approveHeld approves the definition that was on the page.
func (d *Dashboard) approveHeld(r *request) (string, error) {
	up, name, ok := strings.Cut(r.PostFormValue("tool"), ".")
	if !ok {
		return "", &tool.Error{Kind: tool.Invalid, Message: "the form names no tool"}
	}
	err := d.service.ApproveHeld(r.Context(), tool.ID{Upstream: up, Name: name}, r.PostFormValue("digest"))
	switch e := tool.AsError(err); {
	case err == nil:
		r.say("Approved: programs can call " + up + "." + name + " in a moment.")
	case e.Kind == tool.NotFound || e.Kind == tool.Failed:
		r.warn("Nothing was approved: " + e.Message + ".")
	default:
		return "", err
	}
	return "/ui/quarantine", nil
}

func card(h catalog.HeldTool) HeldCard {
	c := HeldCard{HeldTool: h, Cut: len(h.Diff) > maxDiff}
	c.Diff = strings.ToValidUTF8(h.Diff[:min(len(h.Diff), maxDiff)], "")
	for line := range strings.Lines(c.Diff) {
		c.Lines = append(c.Lines, diffLine(strings.TrimRight(line, "\n"), h))
	}
	return c
}

func diffLine(line string, h catalog.HeldTool) DiffLine {
	l := DiffLine{Kind: "same"}
	text := line
	if strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") { // a line of a definition begins with two spaces
		l.Kind = "hunk"
	} else if !h.Whole && line != "" {
		switch line[0] {
		case '+':
			l.Kind, l.Sign, text = "add", "+", line[1:]
		case '-':
			l.Kind, l.Sign, text = "del", "−", line[1:]
		case '@':
			l.Kind = "hunk"
		case ' ':
			text = line[1:]
		}
	}
	if l.Kind != "del" && l.Kind != "hunk" {
		l.Found = matchingRules(text, h.Findings)
	}
	l.Parts = parts(text)
	return l
}

// minMatch is how many characters of a line are telling.
const minMatch = 8

// matchingRules names the findings with a text that a line has a piece of, or the other way round.
func matchingRules(line string, findings []catalog.HeldFinding) string {
	line = strings.Join(strings.Fields(line), " ")
	if len(line) < minMatch {
		return ""
	}
	var rules []string
	for _, f := range findings {
		text := strings.TrimSuffix(strings.Join(strings.Fields(f.Text), " "), "…")
		if len(text) >= minMatch && (strings.Contains(line, text) || strings.Contains(text, strings.Trim(line, `",`))) {
			rules = append(rules, f.Rule)
		}
	}
	return strings.Join(rules, ", ")
}

// hidden is how a character that does not show is written in a diff.
var hidden = regexp.MustCompile(`<(U\+[0-9A-F]{4,6}|byte [0-9A-F]{2})>`)

// parts takes a line apart where something does not show.
func parts(line string) (list []DiffPart) {
	at := 0
	for _, m := range hidden.FindAllStringIndex(line, -1) {
		if m[0] > at {
			list = append(list, DiffPart{Text: line[at:m[0]]})
		}
		list = append(list, DiffPart{Text: "‹" + line[m[0]+1:m[1]-1] + "›", Hidden: true})
		at = m[1]
	}
	if at < len(line) {
		list = append(list, DiffPart{Text: line[at:]})
	}
	return list
}
