package settingsfile

import "strings"

// Escape returns a text as it is written in the file, where $ begins a reference.
func Escape(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// Plain returns the text that a text of the file means; ok is false if it has a reference.
func Plain(text string) (plain string, ok bool) {
	if strings.Contains(strings.ReplaceAll(text, "$$", ""), "${") {
		return "", false
	}
	return strings.ReplaceAll(text, "$$", "$"), true
}
