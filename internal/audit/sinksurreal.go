package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
)

// surreal creates a row in the table execution_log of a SurrealDB for each ended execution, over its HTTP interface. The values
// are passed as a JSON variable and are never part of the statement. The id of the row is that of the execution, so that a
// repeated delivery creates no second row.
type surreal struct {
	set    config.SurrealDB
	url    string
	client httpClient
	// snippets are the programs of executions that have not ended yet, by execution id.
	snippets map[string]string
}

const (
	surrealStatement = "CREATE execution_log CONTENT $row;"
	// maxSnippet bounds the program and the output in a row, in bytes, as variables are part of the URL.
	maxSnippet = 4 << 10
	// maxSnippets bounds the number of snippets.
	maxSnippets = 1000
)

func newSurreal(set config.SurrealDB) *surreal {
	url := strings.TrimSuffix(strings.TrimSuffix(set.URL, "/"), "/sql")
	return &surreal{set: set, url: url + "/sql", client: newHTTPClient(config.AuditSinks{SurrealDB: &set}.SecretValues()), snippets: map[string]string{}}
}

// surrealRow is one execution.
type surrealRow struct {
	ID        string `json:"id"`
	Agent     string `json:"agent"`
	Snippet   string `json:"code_snippet"`
	Output    string `json:"output"`
	Exit      int    `json:"exit_code"`
	Timestamp string `json:"timestamp"`
	Outcome   string `json:"outcome"`
	Language  string `json:"language"`
	Micros    int64  `json:"duration_us"`
	Calls     int    `json:"calls"`
	Seq       uint64 `json:"audit_seq"`
	Hash      string `json:"audit_hash"`
}

// Send implements [Sink].
func (s *surreal) Send(ctx context.Context, records []Record) error {
	for _, r := range records {
		switch r.Kind {
		case ExecutionStart:
			s.remember(r)
		case ExecutionEnd:
			if err := s.create(ctx, s.row(r)); err != nil {
				return err
			}
		}
	}
	for _, r := range records { // only now, as a failed batch is sent again
		if r.Kind == ExecutionEnd {
			delete(s.snippets, r.Execution)
		}
	}
	return nil
}

func (s *surreal) remember(r Record) {
	if r.Text == "" {
		return
	}
	if len(s.snippets) >= maxSnippets {
		clear(s.snippets)
	}
	s.snippets[r.Execution] = truncate(r.Text)
}

func (s *surreal) row(r Record) surrealRow {
	return surrealRow{
		ID: r.Execution, Agent: fmt.Sprintf("%s (%s)", cmp.Or(r.Principal, "local"), cmp.Or(r.Client, "no client")),
		Snippet: cmp.Or(escapeText(s.snippets[r.Execution]), "sha256 "+r.Code), Output: escapeText(truncate(r.Output)), Exit: r.Exit, Timestamp: r.Time.UTC().Format(time.RFC3339Nano), Outcome: r.Outcome, Language: r.Language,
		Micros: r.Micros, Calls: r.Calls, Seq: r.Seq, Hash: r.Hash,
	}
}

// escapeText changes a text that SurrealDB would convert to another type: in a JSON variable it takes a text like "a:b" for a
// record id, and others for dates or UUIDs.
func escapeText(text string) string {
	if text != "" && len(strings.Fields(text)) == 1 && strings.ContainsAny(text, ":-") {
		return text + " ."
	}
	return text
}

// truncate truncates a text to maxSnippet bytes.
func truncate(text string) string {
	if len(text) <= maxSnippet {
		return text
	}
	text = text[:maxSnippet]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

// create creates one row. An existing row is not an error.
func (s *surreal) create(ctx context.Context, row surrealRow) error {
	value, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("encode execution: %w", err)
	}
	r, err := post(ctx, s.url+"?row="+url.QueryEscape(string(value)), strings.NewReader(surrealStatement))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "text/plain")
	for _, prefix := range []string{"Surreal-", ""} { // SurrealDB 2 and later, and before
		r.Header.Set(prefix+"NS", s.set.Namespace)
		r.Header.Set(prefix+"DB", s.set.Database)
	}
	if s.set.Token != "" {
		r.Header.Set("Authorization", "Bearer "+string(s.set.Token))
	} else if s.set.User != "" {
		r.SetBasicAuth(s.set.User, string(s.set.Password))
	}
	answer, err := s.client.do(r)
	if err != nil {
		return withoutQuery(err)
	}
	return surrealResult(answer)
}

// withoutQuery leaves the values out of an error that quotes the URL.
func withoutQuery(err error) error {
	if wrapped, ok := err.(*url.Error); ok { //nolint:errorlint // what http.Client returns is one
		return wrapped.Err
	}
	return err
}

// surrealResult returns the error of the statement in a response, as SurrealDB reports it with HTTP 200.
func surrealResult(answer []byte) error {
	var results []struct {
		Status string          `json:"status"`
		Result json.RawMessage `json:"result"`
		Detail string          `json:"detail"` // before version 1.0
	}
	if err := json.Unmarshal(answer, &results); err != nil || len(results) == 0 {
		return fmt.Errorf("not a response of SurrealDB: %s", sanitize.Line(string(answer), 100))
	}
	for _, one := range results {
		why := string(one.Result) + one.Detail
		if one.Status == "OK" || strings.Contains(why, "already exists") {
			continue
		}
		return fmt.Errorf("SurrealDB: %s", sanitize.Line(why, 200))
	}
	return nil
}
