package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"sallyport/bench/tokencount"
)

// ScriptRun is the context of a script: it makes calls, and the script sees only their results. The world is used only for
// its paths.
type ScriptRun struct {
	*World
	yield   func([]tokencount.Call) bool
	results []tokencount.Result
}

// scriptFailure is the panic value of Fail.
type scriptFailure struct{ error }

// Fail ends the script without an answer.
func (m *ScriptRun) Fail(format string, args ...any) {
	panic(scriptFailure{fmt.Errorf(format, args...)})
}

// Turn makes calls in one turn and returns their results, in their order. Ids are as in [Call].
func (m *ScriptRun) Turn(calls ...tokencount.Call) []tokencount.Result {
	named := make([]tokencount.Call, len(calls))
	for i, c := range calls {
		named[i] = tokencount.Call{Tool: ToolName(c.Tool), Args: c.Args}
	}
	if !m.yield(named) {
		m.Fail("stopped")
	}
	return m.results
}

// Call makes one call in a turn of its own and returns the text of its result. The script fails if the tool does.
func (m *ScriptRun) Call(id string, args any) string { return m.All(Call(id, args))[0] }

// All is Turn for calls that are to go well; it returns their texts.
func (m *ScriptRun) All(calls ...tokencount.Call) []string {
	var texts []string
	for i, r := range m.Turn(calls...) {
		if r.Error {
			m.Fail("%s: %.300s", calls[i].Tool, r.Text)
		}
		texts = append(texts, r.Text)
	}
	return texts
}

// ToolName is what clients call a tool of an upstream: upstream__tool.
func ToolName(id string) string { return strings.Replace(id, ".", "__", 1) }

// SearchTool is the tool of [Search] that finds tools; it takes a query.
const SearchTool = "tool_search"

// The tools of [Code], as a client calls them that has named its one server sallyport.
const (
	SearchTools = "sallyport__search_tools"
	ExecuteCode = "sallyport__execute_code"
)

// Player plays a task's script in one mode, turn by turn.
type Player struct {
	mind   *ScriptRun
	next   func() ([]tokencount.Call, bool)
	stop   func()
	answer string
}

// Play begins the script of a task. Stop the player at the end.
func (t *Task) Play(w *World, mode Mode) *Player {
	p := &Player{mind: &ScriptRun{World: w}}
	p.next, p.stop = iter.Pull(func(yield func([]tokencount.Call) bool) {
		p.mind.yield = yield
		p.answer = t.script(mode)(p.mind)
	})
	return p
}

// Next returns the next calls, or without calls the answer. results are those of the calls before.
func (p *Player) Next(results []tokencount.Result) (calls []tokencount.Call, answer string, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			failed, ours := caught.(scriptFailure)
			if !ours {
				panic(caught)
			}
			err = fmt.Errorf("play: %w", failed.error)
		}
	}()
	p.mind.results = results
	calls, more := p.next()
	if !more {
		return nil, p.answer, nil
	}
	return calls, "", nil
}

// Stop ends the script where it is.
func (p *Player) Stop() {
	defer func() {
		if caught := recover(); caught != nil {
			if _, ours := caught.(scriptFailure); !ours {
				panic(caught)
			}
		}
	}()
	p.stop()
}

func (t *Task) script(mode Mode) Script {
	switch mode {
	case Search:
		return t.playSearch
	case Code:
		return t.playCode
	}
	return t.Direct
}

// playSearch searches for the tools that Direct needs, and then runs Direct.
func (t *Task) playSearch(m *ScriptRun) string {
	shown := map[string]bool{}
	tries := t.SearchQueries
	if tries == nil {
		tries = t.Queries
	}
	for _, try := range tries {
		var calls []tokencount.Call
		for _, query := range try {
			calls = append(calls, Call(SearchTool, map[string]string{"query": query}))
		}
		for _, r := range m.Turn(calls...) {
			for _, def := range r.Shows {
				shown[def.Name] = true
			}
		}
		if missing(t.Needs, func(id string) bool { return shown[ToolName(id)] }) == "" {
			return t.Direct(m)
		}
	}
	m.Fail("no search found %s", missing(t.Needs, func(id string) bool { return shown[ToolName(id)] }))
	return ""
}

// playCode searches for the imports of the programs, runs them, and answers with the output of the last one. Wrappers that
// an answer only named are searched for by their ids.
func (t *Task) playCode(m *ScriptRun) string {
	var needs []string
	for _, p := range t.Programs {
		needs = append(needs, p.Needs...)
	}
	k := &knowledge{}
	k.read(m.Expand(t.Prompt))
	lacking := func() []string {
		return slices.DeleteFunc(slices.Clone(needs), func(id string) bool { return len(k.signatures(id)) > 0 })
	}
	for _, try := range t.Queries {
		k.read(m.All(searches(try, language(t.Programs[0].File))...)...)
		if left := lacking(); len(left) > 0 && !slices.ContainsFunc(left, func(id string) bool { return !k.named(id) }) {
			slices.Sort(left)
			k.read(m.All(searches(slices.Compact(left), language(t.Programs[0].File))...)...)
		}
		if len(lacking()) == 0 {
			return t.programs(m, k)
		}
	}
	m.Fail("no search found %s", lacking()[0])
	return ""
}

func (t *Task) programs(m *ScriptRun, k *knowledge) (output string) {
	for _, p := range t.Programs {
		text, err := p.text(m.World)
		if err != nil {
			m.Fail("%w", err)
		}
		s := newSource(p.File, text)
		if p.Fails == "" {
			m.fillGaps(k, s)
		}
		output = m.execute(s.call(), p.Fails)
		k.read(output)
		if p.Fails == "" {
			k.addProgram(s)
		}
	}
	if t.Answer != nil {
		return t.Answer(m, output)
	}
	return strings.TrimSpace(output)
}

// fillGaps requests the full signatures that a program needs and that were abbreviated. A model without faults makes
// no guesses about anything else, except those that are meant to fail.
func (m *ScriptRun) fillGaps(k *knowledge, s *source) {
	if ids := k.missingFields(s); len(ids) > 0 {
		k.read(m.All(fullSearches(ids, s.language)...)...)
	}
	if guess := k.guess(s); guess != "" {
		m.Fail("%s guesses %s", s.file, guess)
	}
}

// execute runs a program that is to give an error with fails in it, or none.
func (m *ScriptRun) execute(program tokencount.Call, fails string) string {
	r := m.Turn(program)[0]
	if r.Error != (fails != "") || !strings.Contains(r.Text, fails) {
		m.Fail("the program gave (error: %v) %.600s", r.Error, r.Text)
	}
	return r.Text
}

// searches are the calls of one try, a call for each query.
func searches(queries []string, language string) (calls []tokencount.Call) {
	for _, query := range queries {
		calls = append(calls, Call(SearchTools, inLanguage(language, map[string]any{"query": query})))
	}
	return calls
}

// fullSearches returns searches for the full descriptions of tools.
func fullSearches(ids []string, language string) (calls []tokencount.Call) {
	for _, id := range ids {
		upstream, name, _ := strings.Cut(id, ".")
		calls = append(calls, Call(SearchTools, inLanguage(language, map[string]any{"query": name + " upstream:" + upstream + " detail:full"})))
	}
	return calls
}

// inLanguage names the language in arguments of our tools where it is not the one that they take unasked.
func inLanguage(language string, args map[string]any) map[string]any {
	if language != "python" {
		args["language"] = language
	}
	return args
}

func missing(ids []string, shown func(string) bool) string {
	for _, id := range ids {
		if !shown(id) {
			return id
		}
	}
	return ""
}

func language(file string) string {
	if path.Ext(file) == ".ts" {
		return "typescript"
	}
	return "python"
}

// text is the program as a model writes it, with the world's paths.
func (p Program) text(w *World) (string, error) {
	data, err := programs.ReadFile("programs/" + p.File)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("no program %s", p.File)
	}
	return strings.TrimSpace(w.Expand(string(data))), err
}

// Decode reads what a result has as JSON. The script fails if it is none.
func Decode[T any](m *ScriptRun, text string) (value T) {
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		m.Fail("read result: %w: %.100q", err, text)
	}
	return value
}
