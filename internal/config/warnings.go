package config

import (
	"fmt"
	"regexp"
	"slices"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

var (
	// shellVariable matches a variable as shells write it: all of a text, its beginning, or a part that a separator precedes.
	shellVariable = regexp.MustCompile(`(^|[ =:/@,])\$([A-Z_][A-Z0-9_]*)`)
	// wholeVariable is shellVariable for arguments, which may be a script of a shell.
	wholeVariable = regexp.MustCompile(`^((?:--?[A-Za-z][\w-]*=)?)\$([A-Z_][A-Z0-9_]*)(?:/\S*)?$`)
	homeFolder    = regexp.MustCompile(`^(--?[A-Za-z][\w-]*=)?~/`)
)

// literalWarnings warns of a text of an upstream that stays as it is, though its author probably wanted a value in it.
func literalWarnings(at path, n *yaml.Node) []yamlstrict.Fault {
	if len(at) < 3 || at[0] != "upstreams" {
		return nil
	}
	message := literalVariable(at[2], n.Value)
	if message == "" && (at[2] == "args" || at[2] == "env") && homeFolder.MatchString(n.Value) {
		message = `"~" stays as it is here; write ${HOME} for the home folder`
	}
	if message == "" {
		return nil
	}
	return []yamlstrict.Fault{{Line: n.Line, Column: n.Column, Message: message}}
}

// literalVariable returns the warning for a variable in the value of a key, "" for none.
func literalVariable(key, text string) string {
	form := shellVariable
	switch {
	case key == "args":
		form = wholeVariable
	case !slices.Contains([]string{"env", "headers", "url", "command", "cwd", "socket"}, key):
		return ""
	}
	m := form.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("$%.60s stays as it is; write ${%.60[1]s} for its value, or $$%.60[1]s to say that it is meant", m[2])
}
