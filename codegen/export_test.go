package codegen

import "sallyport/internal/tool"

// Signature returns the signature of a tool with the types of all parameters.
func Signature(t tool.Tool, lang Language) string {
	text, _ := signature(t, model(t), lang, maxParams, maxResult, 0)
	return text
}
