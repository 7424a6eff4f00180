// Package literal finds texts of settings that stay as they are, though their author probably wanted a value in them: variables
// and home folders as shells write them. Its main function is [Warning].
package literal

import (
	"fmt"
	"regexp"
	"slices"
)

var (
	// shellVariable matches a variable as shells write it: all of a text, its beginning, or a part that a separator precedes.
	shellVariable = regexp.MustCompile(`(^|[ =:/@,])\$([A-Z_][A-Z0-9_]*)`)
	// wholeVariable is shellVariable for arguments, which may be a script of a shell.
	wholeVariable = regexp.MustCompile(`^((?:--?[A-Za-z][\w-]*=)?)\$([A-Z_][A-Z0-9_]*)(?:/\S*)?$`)
	homeFolder    = regexp.MustCompile(`^(--?[A-Za-z][\w-]*=)?~/`)
)

// Warning returns the warning for the text of a key of an upstream, "" for none.
func Warning(key, text string) string {
	if message := variable(key, text); message != "" {
		return message
	}
	if (key == "args" || key == "env") && homeFolder.MatchString(text) {
		return `"~" stays as it is here; write ${HOME} for the home folder`
	}
	return ""
}

// variable returns the warning for a variable in the value of a key, "" for none.
func variable(key, text string) string {
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
