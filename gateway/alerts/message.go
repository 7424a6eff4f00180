package alerts

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/config"
)

// Message is what is sent at once: events of one type. Its id stays the same when it is sent again.
type Message struct {
	ID     string
	Type   string
	Time   time.Time
	Link   string
	Events []Event
	// Dropped is how many earlier events were not sent.
	Dropped int
}

// maxLines bounds the events that a text lists.
const maxLines = 20

// NewTest returns a message that tests a receiver.
func NewTest(site string) Message {
	now := time.Now().UTC()
	return newMessage(site, []Event{{typ: typeTest, Time: now, Text: "this is a test of Sallyport's alerts"}}, 0)
}

func newMessage(site string, events []Event, dropped int) Message {
	m := Message{ID: "msg_" + rand.Text(), Type: events[0].typ, Time: time.Now().UTC(), Events: events, Dropped: dropped}
	if site != "" {
		m.Link = site + kinds[m.Type].page
	}
	return m
}

// message returns the message of events to one receiver.
func (a *Alerts) message(receiver string, events []Event, dropped int) Message {
	set, _ := a.receiver(receiver)
	for i := range events {
		e := &events[i]
		if e.typ == typeApproval {
			e.Title = a.opts.Title(e.Execution)
			e.Text = approvalText(*e)
			if set.Secret != "" && a.opts.Site != "" {
				e.Reply = a.opts.Site + "/api/approvals/" + e.Approval + "/reply"
			}
		}
		for _, text := range []*string{&e.Text, &e.Arguments, &e.Reason, &e.Title, &e.Problem} {
			*text = a.opts.Redact(*text)
		}
	}
	return newMessage(a.opts.Site, events, dropped)
}

// Summary returns one line about the message.
func (m Message) Summary() string {
	if len(m.Events) == 1 {
		return m.Events[0].Text
	}
	return fmt.Sprintf(kinds[m.Type].several, len(m.Events))
}

// lines returns a line for each event after the summary, if there are several.
func (m Message) lines() (lines []string) {
	if len(m.Events) > 1 {
		for _, e := range m.Events[:min(len(m.Events), maxLines)] {
			lines = append(lines, e.Text)
		}
		if more := len(m.Events) - maxLines; more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", more))
		}
	}
	if m.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("%d earlier alerts could not be sent", m.Dropped))
	}
	return lines
}

// body returns the JSON of the message in a format of the settings.
func (m Message) body(format string) ([]byte, error) {
	if format == config.AlertSlack {
		return json.Marshal(map[string]string{"text": m.slackText()})
	}
	return json.Marshal(map[string]any{"type": m.Type, "timestamp": m.Time.Format(time.RFC3339), "data": struct {
		Text    string  `json:"text"`
		Link    string  `json:"link,omitempty"`
		Events  []Event `json:"events"`
		Dropped int     `json:"dropped,omitempty"`
	}{m.Summary(), m.Link, m.Events, m.Dropped}})
}

// slackMarkup escapes what Slack reads as a link, a mention or an entity.
var slackMarkup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackText returns the message in the markup of Slack.
func (m Message) slackText() string {
	text := slackMarkup.Replace(strings.Join(append([]string{m.Summary()}, m.lines()...), "\n• "))
	if e := m.Events[0]; len(m.Events) == 1 && e.Arguments != "" {
		text += "\n" + slackMarkup.Replace(clip(e.Arguments, 300))
	}
	if m.Link != "" {
		text += "\n<" + slackMarkup.Replace(m.Link) + "|Open Sallyport>"
	}
	return text
}

// desktopText returns title and text of a notification.
func (m Message) desktopText() (title, text string) {
	lines := append([]string{m.Summary()}, m.lines()...)
	if m.Link != "" {
		lines = append(lines, m.Link)
	}
	return "Sallyport", strings.Join(lines, "\n")
}
