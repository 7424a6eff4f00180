package index_test

import (
	"slices"
	"strings"
	"testing"

	"sallyport/index"
	"sallyport/internal/tool"
)

func TestWeigh(t *testing.T) {
	var docs []index.Doc
	for _, name := range []string{"create_issue", "create_note", "create_branch", "merge_branch"} {
		docs = append(docs, index.Doc{ID: tool.ID{Upstream: "up", Name: name}})
	}
	ix, err := index.New(docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := ix.Weigh(t.Context(), "upstream:up Creating the createIssue for zyx")
	var stems []string
	for stem := range got {
		stems = append(stems, stem)
	}
	slices.Sort(stems)
	if want := []string{"creat", "issu", "zyx"}; !slices.Equal(stems, want) || !(got["creat"] < got["issu"] && got["issu"] < got["zyx"]) || got["creat"] <= 0 {
		t.Errorf("got %v, want %v, the rarer the more", got, want)
	}
	if got := ix.Weigh(t.Context(), " "); len(got) != 0 {
		t.Errorf("of nothing %v", got)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ix.Weigh(t.Context(), "issue"); got != nil {
		t.Errorf("after Close %v", got)
	}
}

// TestWeighLeavesOutSecrets: what it returns is kept on disk.
func TestWeighLeavesOutSecrets(t *testing.T) {
	ix, err := index.New([]index.Doc{{ID: tool.ID{Upstream: "up", Name: "send_mail"}, Description: "Sends a mail about an invoice."}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for text, want := range map[string][]string{
		"mail john.doe@corp-intern.example about the invoice":     {"invoic", "mail"},
		"mail <jane@x.example>, invoices":                         {"invoic", "mail"},
		"read /home/alice/plan.txt":                               {"file", "read"},
		`open C:\Users\alice\plan.txt`:                            {"file", "open"},
		"fetch https://bob:pw@intra.acme.example/x?key=topsecret": {"fetch", "url"},
		"use token sk-proj-AbCdEfGhIjKlMnOpQr":                    {"token"},
		"use token ghp_16C7e42F292c6912E7710c838347Ae178B4a":      {"token"},
		"use token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0":         {"token"},
		"login password=swordfish":                                {"login", "password"},
		"login with password hunter2":                             {"login", "password"},
		"send an invoice to Bob Miller in Springfield":            {"invoic", "send"},
		"create an issue 'fire the manager'":                      {"creat", "issu"},
		"order 4711 of customer 0815":                             {"custom", "order"},
		"oauth2 login to github":                                  {"github", "login", "oauth"},
		"createIssueInTheRepository":                              {"creat", "issu", "repositori"},
	} {
		var stems []string
		for stem := range ix.Weigh(t.Context(), text) {
			if !strings.ContainsAny(stem, "0123456789") { // which package clicks drops
				stems = append(stems, stem)
			}
		}
		if slices.Sort(stems); !slices.Equal(stems, want) {
			t.Errorf("%s: %v, want %v", text, stems, want)
		}
	}
}
