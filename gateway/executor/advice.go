package executor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
)

// networkPackages are packages that are of no use without a network.
var networkPackages = []string{"requests", "httpx", "aiohttp", "urllib3", "axios", "node-fetch", "got", "undici", "superagent", "websockets"}

const noNetwork = "the sandbox has no network: call a tool instead, search_tools finds one"

// explainMissing adds a hint on how to install a package that an import did not find.
func (ex *Executor) explainMissing(e *execution.Result, interpreter sandbox.Interpreter, environment string) {
	if e.Fault == nil {
		return
	}
	_, settings, known, err := ex.opts.Environments.Find(environment)
	module := deps.Missing(interpreter, e.Fault.Message)
	if slices.Contains(networkPackages, module) {
		e.Fault.Hint = noNetwork
		return
	}
	if err != nil || module == "" || !known && e.Fault.Hint != "" {
		return
	}
	e.Fault.Hint = deps.Hint(interpreter, module, environment, settings.Install)
}

// explainLanguage adds a hint to a syntax error of a program that is written in the other language.
func explainLanguage(fault *bridge.Fault, interpreter sandbox.Interpreter, code string) {
	if fault == nil || fault.Type != "SyntaxError" {
		return
	}
	if meant := execution.Guess(code); meant != "" && meant != interpreter {
		fault.Hint = fmt.Sprintf("this looks like %[1]s: pass language=%[1]q", execution.LanguageName(meant))
	}
}

// installCommand matches a command that installs a package, as a line of a shell or as a list of strings.
var installCommand = regexp.MustCompile(`\b(?:pip3?|npm|yarn|pnpm)["']?[\s,]+["']?(?:install|i|add)["']?[\s,]+["']?([\w@][\w@./-]*)`)

// explainInstall returns how packages are installed, for a program that tries it by a command.
func (ex *Executor) explainInstall(e *execution.Result, interpreter sandbox.Interpreter, program execution.Program) {
	found := installCommand.FindStringSubmatch(program.Code)
	_, settings, _, err := ex.opts.Environments.Find(program.Environment)
	if found == nil || err != nil || deps.Check(interpreter, []string{found[1]}) != nil {
		return
	}
	text := deps.Hint(interpreter, found[1], program.Environment, settings.Install)
	text = "a program cannot install packages" + strings.TrimPrefix(text, found[1]+" is not installed")
	if e.Fault == nil {
		e.Notes = append(e.Notes, text)
		return
	}
	e.Fault.Hint = text
}

// Programs that convert texts to numbers, and those that compute or decide with a value.
var (
	converts = regexp.MustCompile(`\b(?:int|float|Decimal|Fraction|Number|BigInt|parseInt|parseFloat|literal_eval|isdigit|isnumeric|isNaN|loads|JSON\.parse)\b`)
	computes = regexp.MustCompile(`[<>]|[=!]=|\b(?:if|while|not|and|or|sum|max|min|sorted|sort)\b|[?]|&&|\|\||[-+*/]=|\w\)? [-+*/%] [\w(]`)
)

// noteNumbers tells a program that succeeded that a result was a number as a text, if it may have taken it for a number.
func noteNumbers(e *execution.Result, calls *toolcall.List, code string) {
	if e.Fault != nil || converts.MatchString(code) || !computes.MatchString(code) {
		return
	}
	convert := "int(...)"
	if e.Language == "typescript" {
		convert = "Number(...)"
	}
	if note := calls.NumberNote(convert); note != "" {
		e.Notes = append(e.Notes, note)
	}
}
