package cli

import (
	"fmt"
	"strings"

	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/internal/approval"
)

// DecisionOf returns the decision for a key: y, e, s or n.
func DecisionOf(key byte) (httpapi.Decision, bool) {
	switch key {
	case 'y':
		return httpapi.Decision{Decision: httpapi.Allow, Scope: approval.Once}, true
	case 'e':
		return httpapi.Decision{Decision: httpapi.Allow, Scope: approval.Execution}, true
	case 's':
		return httpapi.Decision{Decision: httpapi.Allow, Scope: approval.Session}, true
	case 'n':
		return httpapi.Decision{Decision: httpapi.Deny}, true
	}
	return httpapi.Decision{}, false
}

// DescribeApproval returns the text that asks a person about a pending call.
func DescribeApproval(one approvals.Approval) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s  %s  %s ago\n", Cell(one.ID, 40), Cell(one.Tool, 100), Age(one.Asked))
	by := "program"
	if one.Standing {
		by = "run"
	}
	for _, line := range []struct{ name, text string }{
		{"who", one.Principal}, {by, one.Execution}, {"rule", one.Rule}, {"reason", one.Reason},
	} {
		if line.text != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", line.name, Cell(line.text, 300))
		}
	}
	for line := range strings.Lines(one.Arguments) {
		b.WriteString("  | " + strings.TrimRight(line, "\n") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
