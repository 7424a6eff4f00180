package dashboard

import (
	"regexp"
	"strings"

	"sallyport/gateway/catalog"
	"sallyport/internal/tool"
)

// HeldCard is a definition that waits or was rejected, laid out for a person.
type HeldCard struct {
	catalog.HeldTool
	Lines []DiffLine
	// Cut says that it is too long to be seen here, so that it cannot be approved here either.
	Cut bool
	// Operator says that the user may approve and reject.
	Operator bool
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

// maxDiff is how much of a definition a page shows, in bytes; maxCards how many definitions of a list.
const maxDiff, maxCards = 128 << 10, 50

// QuarantinePage is what waits, and what was rejected.
type QuarantinePage struct {
	Held, Rejected []HeldCard
	// MoreHeld and MoreRejected are how many there are beyond those.
	MoreHeld, MoreRejected int
	Operator               bool
}

func (d *Dashboard) quarantine(r *request) (any, error) {
	all, err := d.service.HeldTools(r.Context())
	p := QuarantinePage{Operator: r.isOperator()}
	for _, h := range all {
		if h.Rejected == nil {
			p.addCard(h, &p.Held, &p.MoreHeld)
		} else {
			p.addCard(h, &p.Rejected, &p.MoreRejected)
		}
	}
	return p, err
}

func (p QuarantinePage) addCard(h catalog.HeldTool, cards *[]HeldCard, more *int) {
	if len(*cards) == maxCards {
		*more++
		return
	}
	c := card(h)
	c.Operator = p.Operator
	*cards = append(*cards, c)
}

// reviewHeld approves or rejects the definition that was on the page.
func (d *Dashboard) reviewHeld(r *request) (string, error) {
	up, name, ok := strings.Cut(r.PostFormValue("tool"), ".")
	review, said := catalog.HeldReview{Digest: r.PostFormValue("digest")}, "Approved: programs can call "+up+"."+name+" in a moment."
	switch answer := r.PostFormValue("answer"); {
	case !ok:
		return "", &tool.Error{Kind: tool.Invalid, Message: "the form names no tool"}
	case answer == "reject":
		review.Reject, review.Reason = true, r.PostFormValue("reason")
		said = "Rejected: programs cannot call this definition of " + up + "." + name + "."
	case answer != "approve":
		return "", &tool.Error{Kind: tool.Invalid, Message: "the form has no answer"}
	}
	err := d.service.ReviewHeld(r.Context(), tool.ID{Upstream: up, Name: name}, review)
	switch e := tool.AsError(err); {
	case err == nil:
		r.say(said)
	case e.Kind == tool.NotFound || e.Kind == tool.Failed:
		r.warn("Nothing was changed: " + e.Message + ".")
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
