package execution_test

import (
	"strings"
	"testing"

	"sallyport/gateway/execution"
)

func TestTitle(t *testing.T) {
	t.Parallel()
	tests := []struct{ code, tools, want string }{
		{"# Open issues by label\nimport x", "github.list_issues", "Open issues by label"},
		{"#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n\n#\n# Sales of a month\nx = 1", "", "Sales of a month"},
		{"\"\"\"Counts rows.\"\"\"\nx", "", "Counts rows."},
		{"\"\"\"\nCounts rows\nof a file\n\"\"\"\nx", "", "Counts rows"},
		{"/**\n * Moves tickets\n */\nx", "", "Moves tickets"},
		{"// @ts-nocheck\n/* Sums up */ let x", "", "Sums up"},
		{"import json\n# later", "a.x a.x b.y c.z d.w", "a.x, b.y, c.z and 1 more"},
		{"import json\n# later", "a.x", "a.x"},
		{"\n\n  print(1 + 1)", "", "print(1 + 1)"},
		{"# \x1b[31mred\u202e", "", "red"},
		{"# " + strings.Repeat("long ", 50), "", "long"},
		{" \n", "", ""},
	}
	for _, test := range tests {
		got := execution.Title(test.code, strings.Fields(test.tools))
		if len(got) > 110 || !strings.HasPrefix(got, test.want) || len(test.want) > 4 && got != test.want {
			t.Errorf("Title(%q, %s) = %q, want %q", test.code, test.tools, got, test.want)
		}
	}
}
