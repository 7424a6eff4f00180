package executor

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
)

// networkPackages are packages that are of no use without a network.
var networkPackages = []string{"requests", "httpx", "aiohttp", "urllib3", "axios", "node-fetch", "got", "undici", "superagent", "websockets"}

// noNetwork is the hint that the sandbox gives.
const noNetwork = "the sandbox has no network: call a tool instead, search_tools finds one"

// adviseNetwork returns what a program can do instead of using a network, which its sandbox does not have.
func adviseNetwork(ctx context.Context, ex *Executor) string {
	for _, up := range ex.opts.Settings.Load().Upstreams {
		if up.Egress == nil || up.Disabled {
			continue
		}
		for _, t := range ex.snapshot(ctx).Tools {
			if t.ID.Upstream == up.ID {
				return fmt.Sprintf("the sandbox has no network: use %s of servers.%s, or call another tool that search_tools finds", t.ID.Name, up.ID)
			}
		}
	}
	return noNetwork
}

// explainMissing adds a hint on how to install a package that an import did not find.
func (ex *Executor) explainMissing(ctx context.Context, e *execution.Result, interpreter sandbox.Interpreter, environment string) {
	if e.Fault == nil {
		return
	}
	_, settings, known, err := ex.opts.Environments.Find(environment)
	module := deps.Missing(interpreter, e.Fault.Message)
	if slices.Contains(networkPackages, module) {
		e.Fault.Hint = adviseNetwork(ctx, ex)
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

// networkCommand matches a command that needs a network.
var networkCommand = regexp.MustCompile(`["'\s(\x60](?:curl|wget)["'\s]`)

// explainNetwork tells a program that uses a network what it can do instead.
func explainNetwork(ctx context.Context, ex *Executor, e *execution.Result, code string) {
	if e.Fault != nil && e.Fault.Hint == noNetwork {
		e.Fault.Hint = adviseNetwork(ctx, ex)
		return
	}
	if !networkCommand.MatchString(code) || !runsCommands.MatchString(code) {
		return
	}
	advice := adviseNetwork(ctx, ex)
	if e.Fault != nil {
		e.Fault.Hint = advice
	} else {
		e.Notes = append(e.Notes, advice)
	}
}

// runsCommands matches programs that run commands.
var runsCommands = regexp.MustCompile(`\b(?:subprocess|os\.(?:system|popen)|child_process|exec(?:File)?(?:Sync)?|spawn(?:Sync)?)\b`)

// maxGuessed bounds how many words of a program are compared with the names of tools.
const maxGuessed = 2000

// wordPattern matches what may be the name of a tool, also where it follows that of its upstream: store__find_sku.
var wordPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*`)

// explainTools tells a program that calls tools in the way of other gateways how to import the first one that it names.
func (ex *Executor) explainTools(ctx context.Context, e *execution.Result, code string) {
	if e.Fault == nil || strings.Contains(code, "servers") || strings.Contains(e.Fault.Hint, "servers") {
		return
	}
	switch e.Fault.Type {
	case "ReferenceError", "NameError", "ImportError", "ModuleNotFoundError", "SyntaxError":
	default:
		return
	}
	found, ok := ex.namedTool(ctx, code)
	if !ok {
		return
	}
	write := fmt.Sprintf("from servers.%s import %s", found.Upstream, found.Name)
	if e.Language == "typescript" {
		write = fmt.Sprintf("import { %s } from %q", found.Name, "servers/"+found.Upstream)
	}
	if e.Fault.Type == "SyntaxError" && e.Fault.Hint != "" {
		write = e.Fault.Hint + "; " + write
	}
	e.Fault.Hint = write
}

// namedTool returns the first tool that a program names, of several with that name the one of an upstream that it names too.
func (ex *Executor) namedTool(ctx context.Context, code string) (found tool.ID, ok bool) {
	tools := ex.snapshot(ctx).Tools
	for _, word := range wordPattern.FindAllString(code, maxGuessed) {
		for _, t := range tools {
			if suggest.Form(word, []string{t.ID.Name}) == "" || !strings.ContainsAny(word, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				continue
			}
			if !ok || strings.Contains(code, t.ID.Upstream) {
				found, ok = t.ID, true
			}
		}
		if ok {
			return found, true
		}
	}
	return found, false
}
