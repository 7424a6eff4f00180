package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil/refpage"
)

// smallest has every optional mapping with no more than its required keys.
const smallest = `upstreams:
  x:
    command: server
    isolate:
      mounts:
        - path: /folder
      hosts:
        - name: api.example.com
      private_hosts:
        - name: db.example.com
      limits: {}
sandbox:
  pool: {}
workspaces:
  x:
    path: /folder
environments:
  x: {}
search:
  embeddings:
    url: https://example.com/v1
    model: words
http:
  oauth:
    issuer: https://login.example.com
    audience: https://example.com/mcp
  login:
    issuer: https://login.example.com
    client_id: sallyport
privacy:
  recognizer:
    url: https://example.com
policy:
  rules:
    - then: limit
      limit:
        calls: 1
        per: hour
  tests:
    - call: x.tool
      expect: allow
audit:
  sinks:
    syslog:
      address: unix:/dev/log
    otlp:
      url: https://example.com
    surrealdb:
      url: https://example.com
      namespace: sallyport
      database: audit
telemetry:
  otlp:
    url: https://example.com
`

// TestSmallest checks that each value of smallest is required.
func TestSmallest(t *testing.T) {
	lines := strings.SplitAfter(smallest, "\n")
	for i, line := range lines {
		if strings.HasSuffix(strings.TrimSpace(line), ":") || line == "" || strings.Contains(line, "{}") {
			continue
		}
		line = strings.Replace(line, strings.TrimLeft(strings.TrimLeft(line, " "), "- "), "{}\n", 1)
		text := strings.Join(lines[:i], "") + strings.Replace(line, "{}", "", 1) + strings.Join(lines[i+1:], "")
		if _, err := Parse("upstreams.yaml", []byte(text), nil); err == nil {
			t.Errorf("%q is not required", lines[i])
		}
	}
}

// A book writes the page of settings.
type book struct {
	*source
	page     *refpage.Page
	defaults map[string]reflect.Value // structs of smallest, by type
	required map[string]bool
	count    int
}

// newBook returns a book without pages, and the table of the file's keys.
func newBook(t *testing.T) (*book, []setting) {
	t.Helper()
	c, err := Parse("upstreams.yaml", []byte(smallest), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &book{parseSource(t), refpage.New("settings.md", "Settings", "internal/config", "TestReference"), map[string]reflect.Value{}, requiredKeys(), 0}
	b.collect(reflect.ValueOf(c))
	root, ok := b.function(b.funcs["config"])
	if !ok {
		t.Fatal("the decoder has no table of keys")
	}
	return b, root.keys
}

// TestReference holds docs/reference/settings.md to the tables of the decoder.
func TestReference(t *testing.T) {
	b, root := newBook(t)
	b.page.Text("Every key of `upstreams.yaml`. [The schema](../upstreams.schema.json) is for editors (`sallyport config schema`). Only `upstreams` is required. Relative paths start at the directory of the file. " +
		"`${VAR}` in a text is replaced with a variable of the environment or of `env_file`. Types:")
	b.page.List([]string{
		"duration: numbers with a unit (`ms`, `s`, `m`, `h`), as in `1h30m`; duration or days: also `d`, as in `90d`.",
		"size: a whole number with a unit (`B`, `KiB`, `MiB`, `GiB`, `TiB`), as in `512MiB`.",
		"rate: a whole number for each second, minute or hour, as in `600/m`; `0` is no limit.",
		"path: a file or folder; program: a path, or a name to find in `PATH`.",
	})
	b.page.Heading(2, "Top level")
	b.section(t, "", "Config", root)
	if b.count < 150 {
		t.Errorf("only %d keys", b.count)
	}
	b.page.Check(t)
}

// requiredKeys returns the keys of smallest that have a value. Of command and url one is enough.
func requiredKeys() map[string]bool {
	all, path := map[string]bool{"upstreams": true}, make([]string, 8)
	for _, m := range regexp.MustCompile(`(?m)^( *(?:- )?)(\w+):(.*)$`).FindAllStringSubmatch(smallest, -1) {
		depth := len(m[1]) / 2
		path[depth] = m[2]
		if value := strings.TrimSpace(m[3]); value != "" && value != "{}" && m[2] != "command" {
			all[strings.NewReplacer("..", ".", ".x.", ".NAME.").Replace(strings.Join(path[:depth+1], "."))] = true
		}
		clear(path[depth+1:])
	}
	return all
}

// collect finds the structs of a value.
func (b *book) collect(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			b.collect(v.Elem())
		}
	case reflect.Struct:
		b.defaults[v.Type().Name()] = v
		for _, field := range v.Fields() {
			b.collect(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			b.collect(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			b.collect(v.MapIndex(key))
		}
	}
}

// section writes the keys of a mapping, then those of the mappings in it.
func (b *book) section(t *testing.T, path, owner string, keys []setting) {
	t.Helper()
	var items []string
	for i := range keys {
		one := &keys[i]
		b.locate(owner, one)
		items = append(items, b.item(t, path, one))
	}
	b.page.List(items)
	for _, one := range keys {
		if one.keys == nil {
			continue
		}
		under := strings.TrimPrefix(path+"."+one.key, ".")
		b.page.Heading(2, under+one.member())
		b.section(t, under+one.member(), b.inside(owner, &one), one.keys)
	}
}

// locate finds the field of a key, and its comment, in a struct that holds the values of the table.
func (b *book) locate(owner string, one *setting) {
	if one.owner == "" && one.doc == "" {
		one.owner, one.field = owner, b.fieldOf(owner, one.key)
	}
	if one.doc == "" {
		one.doc = b.fields[one.owner][one.field].doc
	}
}

// inside returns the struct that holds the keys of a mapping, by default that of the mapping itself.
func (b *book) inside(owner string, one *setting) string {
	return cmp.Or(b.fields[one.owner][one.field].kind, owner)
}

// member returns what names a member of a mapping or list of mappings.
func (one setting) member() string {
	switch {
	case one.named:
		return ".NAME"
	case one.list:
		return "[]"
	}
	return ""
}

// fieldOf returns the field of a struct for a key.
func (b *book) fieldOf(owner, key string) string {
	for name := range b.fields[owner] {
		if strings.EqualFold(name, strings.ReplaceAll(key, "_", "")) {
			return name
		}
	}
	return ""
}

var (
	defaultText  = regexp.MustCompile(`[;,.]? [dD]efault:? ((?:[^.;]|\.\d)+)`)
	emptyText    = regexp.MustCompile(`^"": `)
	keyText      = regexp.MustCompile(`; key \w+| \(key \w+\)`)
	absoluteText = regexp.MustCompile(`, absolute\b|\babsolute (path|folder)`) // the decoder makes paths absolute
)

// item describes a key.
func (b *book) item(t *testing.T, path string, one *setting) string {
	t.Helper()
	b.count++
	f := b.facts(path, one)
	if f.doc == "" && one.keys == nil {
		t.Errorf("the field of %s has no comment (%s.%s)", f.full, one.owner, one.field)
	}
	facts := kindWords(one)
	switch {
	case f.required:
		facts += "; required"
	case f.value != "":
		facts += "; default " + refpage.Quote(f.value)
	case f.said != "":
		facts += "; default " + refpage.Escape(f.said)
	}
	return strings.TrimSuffix(refpage.Quote(one.key)+" ("+facts+"): "+refpage.Escape(f.doc), ": ")
}

// settingFacts are what the comment of a field and the defaults say of a key: its path, its description, its default
// as a value, or in words.
type settingFacts struct {
	full, doc, value, said string
	required               bool
}

func (b *book) facts(path string, one *setting) settingFacts {
	f := settingFacts{full: strings.TrimPrefix(path+"."+one.key, ".")}
	doc := strings.Join(strings.Fields(one.doc), " ")
	if m := defaultText.FindStringSubmatch(doc); m != nil {
		f.said = emptyText.ReplaceAllString(m[1], "")
	}
	f.doc = sentence(one, absoluteText.ReplaceAllString(keyText.ReplaceAllString(defaultText.ReplaceAllString(doc, ""), ""), "$1"))
	f.required = b.required[strings.ReplaceAll(f.full, "[]", "")]
	switch value := b.value(one); {
	case value != "" && !strings.HasPrefix(f.said, "that of"):
		f.value = value
	case slices.Contains(one.words, f.said) || one.kind == kinds["Bool"] && f.said != "":
		f.value = f.said
	}
	return f
}

// kindWords says what values a key has.
func kindWords(one *setting) string {
	words := refpage.QuoteAll(one.words)
	switch {
	case one.named && one.keys != nil:
		return "mappings by name"
	case one.named:
		return "mapping to " + one.kind
	case one.list && one.text:
		return "list of texts or mappings"
	case one.list:
		return "list of mappings"
	case one.keys != nil && words != "":
		return "mapping, or " + words
	case words != "":
		return words
	case one.kind == "":
		return kinds["path"]
	case one.kind == kinds["profiles"]:
		return "list of " + refpage.QuoteAll(append(AllProfiles(), profileAll))
	}
	return one.kind
}

// sentence makes a comment of a field the description of its key.
func sentence(one *setting, doc string) string {
	for _, verb := range []string{" is ", " are ", " "} {
		if rest, ok := strings.CutPrefix(doc, one.field+verb); ok {
			doc = rest
			break
		}
	}
	return refpage.Sentence(doc)
}

// value returns the default of a key in the decoder, "" if it is empty.
func (b *book) value(one *setting) string {
	if one.keys != nil {
		return ""
	}
	v := b.defaults[one.owner]
	if !v.IsValid() || one.field == "Command" {
		return ""
	}
	f := v.FieldByName(one.field)
	switch {
	case !f.IsValid():
		return ""
	case f.Kind() == reflect.Bool:
		return fmt.Sprint(f.Bool())
	case f.IsZero() || f.Kind() == reflect.Slice || f.Kind() == reflect.Map || f.Kind() == reflect.Pointer || strings.HasPrefix(f.String(), "/"):
		return ""
	}
	if d, ok := reflect.TypeAssert[time.Duration](f); ok {
		return formatDuration(d, one.kind)
	}
	return fmt.Sprint(f.Interface())
}

// formatDuration formats a duration as the file has it.
func formatDuration(d time.Duration, kind string) string {
	const day = 24 * time.Hour
	if kind == kinds["Age"] && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return formatBound(d)
}
