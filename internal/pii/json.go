package pii

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Swap returns what to put in place of a value; ok false leaves it as it is. number
// says that JSON has it as a number; what comes instead is then a string.
type Swap func(kind Kind, value string, number bool) (instead string, ok bool)

// Replace puts something else in place of what is found in a text. A text that is a
// whole JSON object or array, one such on each line, or a table with a head (CSV,
// Markdown) is read as what it is. fields are paths of values to take, whatever they
// are; they count in JSON only.
func (d *Detector) Replace(text string, fields *Fields, swap Swap) string {
	return d.replace(text, fields, swap, maxNested)
}

// maxNested is how many strings of JSON inside strings of JSON are opened.
const maxNested = 4

func (d *Detector) replace(text string, fields *Fields, swap Swap, nested int) string {
	if IsDocument(text) {
		return d.replaceJSON(text, fields, swap, nested)
	}
	var b strings.Builder
	for _, p := range d.parts(text) {
		switch part := text[p.start:p.end]; p.sort {
		case document:
			b.WriteString(d.replaceJSON(part, nil, swap, nested))
		case table:
			b.WriteString(replaced(part, d.findInTable(part, p.delimiter), swap))
		default:
			b.WriteString(replaced(part, d.Find(part), swap))
		}
	}
	return b.String()
}

// IsDocument reports whether a text is one JSON object or array.
func IsDocument(text string) bool {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	return trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(text))
}

// replaced puts the parts of a text together again.
func replaced(text string, found []Finding, swap Swap) string {
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		instead, ok := swap(f.Kind, text[f.Start:f.End], f.number)
		if !ok {
			continue
		}
		b.WriteString(text[at:f.Start])
		if f.number {
			b.WriteString(`"` + instead + `"`)
		} else {
			b.WriteString(instead)
		}
		at = f.End
	}
	if at == 0 {
		return text
	}
	b.WriteString(text[at:])
	return b.String()
}

// ReplaceJSON is Replace for one JSON value, which stays one: only what is found
// changes, and the string around it where that has escapes. What is no JSON is
// taken as a text.
func (d *Detector) ReplaceJSON(raw json.RawMessage, fields *Fields, swap Swap) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage(replaced(string(raw), d.Find(string(raw)), swap))
	}
	return json.RawMessage(d.replaceJSON(string(raw), fields, swap, maxNested))
}

func (d *Detector) replaceJSON(raw string, fields *Fields, swap Swap, nested int) string {
	w := walker{raw: raw, fields: fields.start()}
	w.leaf = func(text string, h hint, isKey bool) string {
		if nested > 0 && !isKey && IsDocument(text) {
			return d.replace(text, nil, swap, nested-1)
		}
		return replaced(text, d.find(text, h), swap)
	}
	w.number = func(text string, h hint) (string, bool) {
		kind := d.numberKind(text, h)
		if kind == "" {
			return "", false
		}
		return swap(kind, text, true)
	}
	return w.run()
}

// numberKind judges a number of JSON by its key.
func (d *Detector) numberKind(text string, h hint) Kind {
	if h.field {
		return Field
	}
	if h.sense == 0 || len(text) < leastPhone || len(text) > 19 || strings.ContainsAny(text, "-+.eE") {
		return ""
	}
	for _, f := range d.find(text, h) {
		if f.Start == 0 && f.End == len(text) {
			return f.Kind
		}
	}
	return ""
}

// walker goes through valid JSON once and copies it with changes.
type walker struct {
	raw    string
	out    []byte
	copied int // of raw
	fields cursor
	stack  []frame
	key    hint // of the member that comes next
	// leaf returns what a decoded string becomes; number is for a number, ok false leaves it.
	leaf   func(text string, h hint, isKey bool) string
	number func(text string, h hint) (string, bool)
	// literal, if set, returns JSON to put in place of a string that is no key.
	literal func(text string) (json string, ok bool)
}

// frame is one object or array that is open.
type frame struct {
	object  bool
	wantKey bool
	hint    hint   // of the elements of an array
	self    cursor // of the object or array itself
	member  cursor // of the member of an object that comes next
	index   int
}

func (w *walker) run() string {
	for i := 0; i < len(w.raw); {
		switch b := w.raw[i]; b {
		case '"':
			i = w.text(i)
		case '{', '[':
			w.open(b == '{')
			i++
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			i++
		case ',':
			w.comma()
			i++
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i = w.digits(i)
		default:
			i++
		}
	}
	if w.copied == 0 {
		return w.raw
	}
	return string(append(w.out, w.raw[w.copied:]...))
}

func (w *walker) top() *frame {
	if len(w.stack) == 0 {
		return nil
	}
	return &w.stack[len(w.stack)-1]
}

// here is what is said of the value that begins now.
func (w *walker) here() (hint, cursor) {
	top := w.top()
	if top == nil {
		return hint{field: w.fields.all()}, w.fields
	}
	h, c := w.key, top.member
	if !top.object {
		h, c = top.hint, top.self.index(top.index)
	}
	h.field = c.all()
	return h, c
}

func (w *walker) open(object bool) {
	h, c := w.here()
	if object && h.sense&(ofName|ofAddress|ofSecret) != 0 {
		h.sense = 0 // its members have keys of their own
	}
	w.stack = append(w.stack, frame{object: object, wantKey: object, hint: h, self: c})
}

func (w *walker) comma() {
	top := w.top()
	top.index++
	top.wantKey = top.object
}

// text handles the string that begins at i, and returns what is behind it.
func (w *walker) text(i int) int {
	end, escaped := i+1, false
	for w.raw[end] != '"' {
		if w.raw[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	inner := w.raw[i+1 : end]
	text := inner
	if escaped {
		_ = json.Unmarshal([]byte(w.raw[i:end+1]), &text) // it is valid
	}
	top := w.top()
	isKey := top != nil && top.object && top.wantKey
	var h hint
	if isKey {
		top.wantKey = false
	} else {
		h, _ = w.here()
	}
	if w.literal != nil && !isKey {
		if raw, ok := w.literal(text); ok {
			w.put(i, end+1, raw)
			return end + 1
		}
	}
	if now := w.leaf(text, h, isKey); now != text {
		w.put(i, end+1, quote(now))
	}
	if isKey {
		w.key = hint{sense: senseOfKey(text)}
		top.member = top.self.member(text)
	}
	return end + 1
}

// digits handles the number that begins at i.
func (w *walker) digits(i int) int {
	end := i + 1
	for end < len(w.raw) && strings.IndexByte("0123456789+-.eE", w.raw[end]) >= 0 {
		end++
	}
	h, _ := w.here()
	if instead, ok := w.number(w.raw[i:end], h); ok {
		w.put(i, end, quote(instead))
	}
	return end
}

// put replaces a part of the raw text.
func (w *walker) put(start, end int, instead string) {
	w.out = append(append(w.out, w.raw[w.copied:start]...), instead...)
	w.copied = end
}

// quote writes a string of JSON, without escapes that are for HTML.
func quote(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
