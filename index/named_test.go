package index_test

import (
	"strings"
	"testing"

	"sallyport/index"
	"sallyport/internal/tool"
)

// TestNamedUpstreamLeads: the tools of a server that a query names come first, wherever the name stands. A word that
// only looks like a name does not count.
func TestNamedUpstreamLeads(t *testing.T) {
	var docs []index.Doc
	add := func(upstream, name, text string) {
		docs = append(docs, index.Doc{ID: tool.ID{Upstream: upstream, Name: name}, Wire: name, Description: text})
	}
	add("airtable", "create_field", "Create a new field in a table of a base.")
	add("airtable", "list_records", "List the records of a table.")
	add("n8n", "add_column", "Add a column to a data table.")
	add("n8n", "run_workflow", "Run a workflow.")
	add("atlassian", "jira_search", "Search Jira issues by JQL.")
	add("atlassian", "jira_get_project", "Get a Jira project by its key.")
	add("atlassian", "confluence_page", "Get a page of Confluence.")
	add("gitlab", "get_project", "Get the project with its key, its members and its settings.")
	add("gitlab", "list_projects", "List the projects of a group.")
	add("line", "push_message", "Push a message to a user.")
	add("files", "read_line", "Read one line of a file.")
	add("files", "count_lines", "Count each line of a file.")
	add("sheets", "append_line", "Append a line to a sheet.")
	add("brave_search", "web", "Search pages of the web.")
	add("exa", "web_search", "Search the web for pages.")
	ix, err := index.New(docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for text, want := range map[string]string{
		"airtable add column":                      "airtable.",
		"please add a column with airtable":        "airtable.",
		"the Jira project PAY":                     "atlassian.jira_get_project",
		"get the project with the key PAY":         "gitlab.get_project",
		"search the web for pages on Brave search": "brave_search.web",
		"read the first line of a message":         "files.read_line",
		"push a message to her on Line":            "line.push_message",
	} {
		if res := find(t, ix, index.Query{Text: text}); len(res.Hits) == 0 || !strings.HasPrefix(res.Hits[0].ID.String(), want) {
			t.Errorf("%q: %v, want %s", text, ids(res), want)
		}
	}
}
