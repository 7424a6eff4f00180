package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tool"
)

// variety makes variants of texts, the same on every run.
type variety struct {
	rand  *rand.Rand
	words []string
}

func newVariety(base []ireval.Entry) *variety {
	v := &variety{rand: rand.New(rand.NewPCG(1, 2))}
	for _, e := range base {
		for word := range strings.FieldsSeq(e.Tool.Description) {
			if plain(word) {
				v.words = append(v.words, word)
			}
		}
	}
	return v
}

// plain reports whether a word may stand in a JSON string as it is.
func plain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' })
}

// vary makes another tool of a tool.
func (v *variety) vary(e *ireval.Entry, round int) {
	t := &e.Tool
	e.Server = fmt.Sprintf("%s-%d", e.Server, round)
	t.Wire = strings.Join(strings.Fields(v.text(strings.ReplaceAll(t.Wire, "_", " "))), "_")
	t.ID = tool.ID{Upstream: tool.Identifier(e.Server), Name: tool.Identifier(t.Wire)}
	t.Title, t.Description = v.text(t.Title), v.text(t.Description)
	t.Input = v.schema(t.Input)
	e.Judged = t.ID.String()
}

func (v *variety) text(text string) string {
	words := strings.Fields(text)
	for i := range words {
		switch n := v.rand.IntN(50); {
		case n == 0:
			words[i] = v.inventWord()
		case n <= 10:
			words[i] = v.words[v.rand.IntN(len(v.words))]
		}
	}
	return strings.Join(words, " ")
}

// inventWord makes up a word, one of 24,500.
func (v *variety) inventWord() string {
	word := make([]byte, 0, 6)
	for range 3 {
		word = append(word, "bdfgklmnprstvz"[v.rand.IntN(14)], "aeiou"[v.rand.IntN(5)])
	}
	return string(word[:5])
}

// schema varies the descriptions in a compact schema. The words that come in are
// plain, and no escape has white space in it, so what was JSON stays JSON.
func (v *variety) schema(schema json.RawMessage) json.RawMessage {
	var out []byte
	for mark := []byte(`"description":"`); ; {
		at := bytes.Index(schema, mark)
		if at < 0 {
			return append(out, schema...)
		}
		at += len(mark)
		end := at + closing(schema[at:])
		out = append(append(out, schema[:at]...), v.text(string(schema[at:end]))...)
		schema = schema[end:]
	}
}

// closing is where a JSON string ends.
func closing(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}

const syntheticServers, syntheticPerServer = 20, 30

// syntheticEntries returns tools of made-up words: a few frequent ones and many rare ones.
func syntheticEntries() (entries []ireval.Entry) {
	v := &variety{rand: rand.New(rand.NewPCG(3, 4))}
	vocabulary := make([]string, 4000)
	for i := range vocabulary {
		vocabulary[i] = v.inventWord()
	}
	often := rand.NewZipf(v.rand, 1.1, 4, uint64(len(vocabulary)-1))
	words := func(n int, between string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = vocabulary[often.Uint64()]
		}
		return strings.Join(list, between)
	}
	for server := range syntheticServers {
		for i := range syntheticPerServer {
			name := fmt.Sprintf("%s_%d", words(2, "_"), i)
			e := ireval.Entry{Server: fmt.Sprintf("made-%d", server), Tool: tool.Tool{Wire: name, Description: words(8+v.rand.IntN(40), " ")}}
			e.Tool.ID = tool.ID{Upstream: tool.Identifier(e.Server), Name: tool.Identifier(name)}
			e.Judged, e.Tool.Input = e.Tool.ID.String(), syntheticSchema(1+v.rand.IntN(6), words)
			entries = append(entries, e)
		}
	}
	return entries
}

func syntheticSchema(parameters int, words func(int, string) string) json.RawMessage {
	properties := map[string]any{}
	for range parameters {
		properties[words(1, "")] = map[string]string{"type": "string", "description": words(9, " ")}
	}
	data, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		panic(err) // of maps and strings
	}
	return data
}
