package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Violation is one accessibility rule that a page breaks, by axe-core: of WCAG 2 (A and AA), or a best practice.
type Violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// String describes the rule and the violating elements.
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(v.ID + ": " + v.Help)
	for _, node := range v.Nodes {
		b.WriteString("\n  " + node.HTML + "\n    " + strings.ReplaceAll(node.Summary, "\n", "\n    "))
	}
	return b.String()
}

// Violations checks the page in its current state.
func (p *Page) Violations() []Violation {
	p.tb.Helper()
	script, err := os.ReadFile(filepath.Join(p.folder, "axe.min.js"))
	if err != nil {
		p.tb.Fatal(err)
	}
	Eval[int](p, string(script)+"\n;0")
	result := Eval[string](p, `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => JSON.stringify(r.violations))`)
	var list []Violation
	if err := json.Unmarshal([]byte(result), &list); err != nil {
		p.tb.Fatal(err)
	}
	return list
}
