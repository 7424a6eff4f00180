package pii

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Swap returns the replacement for a value; ok false leaves it as it is. number means that the value is a JSON
// number; the replacement is then a string.
type Swap func(kind Kind, value string, number bool) (instead string, ok bool)

// Look configures the traversal of JSON and text. Nil searches for everything, everywhere.
type Look struct {
	// Fields are paths of values to replace, whatever they are; they apply to JSON only.
	Fields *Fields
	// Inner is Fields for JSON within the strings of JSON.
	Inner *Fields
	// Skip are paths of values to leave alone.
	Skip *Fields
	// Echo, if set, finds values that the upstream was sent before, and EchoSwap is the swap for them.
	Echo     func(text string) []Finding
	EchoSwap Swap
	// Names, if set, finds names in each text.
	Names func(text string) []Finding
	// Recognized, if set, returns the findings of a recognizer in each text.
	Recognized func(text string) []Finding
	// Only replaces only what Echo finds, and what looks like a token.
	Only bool
	// NamesOnly replaces only what Names finds.
	NamesOnly bool
}

// Known is a value and its kind.
type Known struct {
	Kind  Kind
	Value string
}

// job is one pass over a text or JSON.
type job struct {
	*Detector
	Look
	swap Swap
	// room is the reused buffer for findings, which are not needed once their text is complete.
	room []Finding
}

// maxRoom is how many findings may stay allocated.
const maxRoom = 1024

// Replace replaces the findings in a text. A text that is a whole JSON object or array, JSON lines, or a table with a
// header (CSV, Markdown) is parsed as such.
func (d *Detector) Replace(text string, look *Look, swap Swap) string {
	j := d.job(look, swap)
	return j.replace(text, j.Fields, maxNested)
}

func (d *Detector) job(look *Look, swap Swap) *job {
	if look == nil {
		look = &Look{}
	}
	return &job{Detector: d, Look: *look, swap: swap}
}

// find is the detector's find with the options of the job.
func (j *job) find(text string, h hint) []Finding {
	var found []Finding
	switch {
	case j.NamesOnly:
		return j.Names(text)
	case j.Only:
		found = j.findForged(text)
	default:
		found = j.Detector.find(text, h, j.room[:0])
		if cap(found) > cap(j.room) && cap(found) <= maxRoom {
			j.room = found
		}
	}
	if j.Echo != nil {
		if echoes := j.Echo(text); len(echoes) > 0 {
			found = mergeEchoes(echoes, found)
		}
	}
	if j.Recognized != nil && !j.Only && !coversAll(found, text) {
		found = j.withRecognized(text, j.Recognized(text), found)
	}
	if j.Names != nil && !j.Only && !coversAll(found, text) {
		if names := j.Names(text); len(names) > 0 {
			found = mergeFindings(found, names) // a finding in an address or after a key takes precedence
		}
	}
	return found
}

// coversAll reports whether a text is one finding.
func coversAll(found []Finding, text string) bool {
	return len(found) == 1 && found[0].Start == 0 && found[0].End == len(text)
}

// findForged finds what looks like a token.
func (j *job) findForged(text string) (found []Finding) {
	for i := 0; i < len(text); i++ {
		if end := j.tokenAt(text, i); end > 0 {
			found = append(found, Finding{Kind: Text, Start: i, End: end})
			i = end - 1
		}
	}
	return found
}

// put returns the replacement of a finding.
func (j *job) put(f Finding, value string) (instead string, ok bool) {
	if f.echo {
		return j.EchoSwap(f.Kind, value, f.number)
	}
	return j.swap(f.Kind, value, f.number)
}

// maxNested bounds how many levels of JSON within JSON strings are parsed.
const maxNested = 4

func (j *job) replace(text string, fields *Fields, nested int) string {
	if IsDocument(text) {
		return j.replaceJSON(text, fields, nil, nested)
	}
	return j.replaceText(text, hint{}, nested)
}

// replaceText is replace for what is not JSON as a whole.
func (j *job) replaceText(text string, h hint, nested int) string {
	if h.field || !strings.Contains(text, "\n") {
		return j.splice(text, j.find(text, h))
	}
	parts := j.parts(text)
	if len(parts) == 1 && parts[0].sort == prose {
		return j.splice(text, j.find(text, h))
	}
	var b strings.Builder
	for _, p := range parts {
		switch part := text[p.start:p.end]; p.sort {
		case document:
			b.WriteString(j.replaceJSON(part, nil, nil, nested))
		case table:
			b.WriteString(j.splice(part, j.findInTable(part, p.delimiter)))
		default:
			b.WriteString(j.splice(part, j.find(part, h)))
		}
	}
	return b.String()
}

// IsDocument reports whether a text is one JSON object or array.
func IsDocument(text string) bool {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	return trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(text))
}

// splice applies the findings of a text.
func (j *job) splice(text string, found []Finding) string {
	if len(found) == 0 {
		return text
	}
	if f := found[0]; len(found) == 1 && f.Start == 0 && f.End == len(text) && !f.number {
		if instead, ok := j.put(f, text); ok {
			return instead
		}
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, f := range found {
		instead, ok := j.put(f, text[f.Start:f.End])
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

// ReplaceJSON is Replace for one JSON value, which stays valid: only the findings change, and the string around one
// if it has escapes. Invalid JSON is treated as text.
func (d *Detector) ReplaceJSON(raw json.RawMessage, look *Look, swap Swap) json.RawMessage {
	j := d.job(look, swap)
	if !json.Valid(raw) {
		return json.RawMessage(j.splice(string(raw), j.find(string(raw), hint{})))
	}
	return json.RawMessage(j.replaceJSON(string(raw), j.Fields, j.Skip, maxNested))
}

func (j *job) replaceJSON(raw string, fields, skip *Fields, nested int) string {
	w := walker{raw: raw, fields: fields.start(), skip: skip.start()}
	w.leaf = func(text string, h hint, isKey bool) string {
		switch {
		case h.skip:
			return text
		case nested > 0 && !isKey && IsDocument(text):
			return j.replace(text, j.Inner, nested-1)
		}
		return j.replaceText(text, h, nested-1)
	}
	w.number = func(text string, h hint) (string, bool) {
		f := j.numberFinding(text, h)
		if f.Kind == "" {
			return "", false
		}
		f.number = true
		return j.put(f, text)
	}
	return w.run()
}

// numberFinding classifies a JSON number by its key, and by the values that are known.
func (j *job) numberFinding(text string, h hint) (none Finding) {
	if h.skip || j.NamesOnly {
		return none
	}
	if j.Echo != nil {
		if echoes := j.Echo(text); len(echoes) > 0 {
			return echoes[0]
		}
	}
	if j.Only {
		return none
	}
	if h.field {
		return Finding{Kind: Field}
	}
	if h.sense == 0 || len(text) < leastPhone || len(text) > 19 || strings.ContainsAny(text, "-+.eE") {
		return none
	}
	for _, f := range j.find(text, h) {
		if f.Start == 0 && f.End == len(text) {
			return f
		}
	}
	return none
}

// walker traverses valid JSON once and copies it with changes.
type walker struct {
	raw    string
	out    []byte
	copied int // of raw
	fields cursor
	skip   cursor
	stack  []frame
	key    hint             // of the member that comes next
	keys   map[string]sense // in which nothing was found
	// leaf returns the replacement of a decoded string; number is for a number, ok false leaves it.
	leaf   func(text string, h hint, isKey bool) string
	number func(text string, h hint) (string, bool)
	// literal, if set, returns JSON that replaces a string that is not a key.
	literal func(text string) (json string, ok bool)
}

// frame is one object or array that is open.
type frame struct {
	object  bool
	wantKey bool
	start   int     // where it begins in raw
	person  bool    // its key is that of a person
	hint    hint    // of the elements of an array
	self    cursors // of the object or array itself
	member  cursors // of the member of an object that comes next
	index   int
}

func (w *walker) run() string {
	for i := 0; i < len(w.raw); {
		switch b := w.raw[i]; b {
		case '"':
			i = w.text(i)
		case '{', '[':
			w.open(i)
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

// cursors are the positions in the fields to replace and in those to skip.
type cursors struct{ take, leave cursor }

// here returns the hint and the cursors of the value that begins now.
func (w *walker) here() (hint, cursors) {
	top := w.top()
	if top == nil {
		return hint{}, cursors{w.fields, w.skip}
	}
	h, c := w.key, top.member
	if !top.object {
		h, c = top.hint, cursors{top.self.take.index(top.index), top.self.leave.index(top.index)}
	}
	h.field, h.skip = c.take.done, c.leave.done
	return h, c
}

func (w *walker) open(start int) {
	object := w.raw[start] == '{'
	h, c := w.here()
	person := object && h.sense == maybeName
	if object && h.sense&(ofName|ofAddress|ofSecret|maybeName|ofCity|ofToken) != 0 {
		h.sense = 0 // its members have their own keys
	}
	w.stack = append(w.stack, frame{object: object, wantKey: object, hint: h, self: c, start: start, person: person})
}

func (w *walker) comma() {
	top := w.top()
	top.index++
	top.wantKey = top.object
}

// text handles the string that begins at i, and returns the offset after it.
func (w *walker) text(i int) int {
	end, escaped := i+1, false
	for w.raw[end] != '"' {
		if w.raw[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	text := w.raw[i+1 : end]
	if escaped {
		text = unquote(w.raw[i : end+1])
	}
	if top := w.top(); top != nil && top.object && top.wantKey {
		w.member(top, text, i, end+1)
		return end + 1
	}
	h, _ := w.here()
	if w.literal != nil {
		if raw, ok := w.literal(text); ok {
			w.put(i, end+1, raw)
			return end + 1
		}
	}
	if now := w.leaf(text, h, false); now != text {
		w.putText(i, end+1, now)
	}
	return end + 1
}

// maxKeys is how many keys are remembered.
const maxKeys = 256

// member handles the key of an object's member. Rows repeat the same keys: one without findings is not scanned again.
func (w *walker) member(top *frame, key string, start, end int) {
	top.wantKey = false
	said, known := w.keys[key]
	if !known {
		said = senseOfKey(key)
		if now := w.leaf(key, hint{}, true); now != key {
			w.putText(start, end, now)
		} else if len(w.keys) < maxKeys {
			if w.keys == nil {
				w.keys = make(map[string]sense, 16)
			}
			w.keys[key] = said
		}
	}
	if said == 0 {
		said = siblingSense(key, w.raw, top.start, end, top.person)
	}
	w.key = hint{sense: said}
	top.member = cursors{top.self.take.member(key), top.self.leave.member(key)}
}

// unquote decodes a string of valid JSON.
func unquote(raw string) (text string) {
	_ = json.Unmarshal([]byte(raw), &text) // it is valid
	return text
}

// digits handles the number that begins at i.
func (w *walker) digits(i int) int {
	end := i + 1
	for end < len(w.raw) && strings.IndexByte("0123456789+-.eE", w.raw[end]) >= 0 {
		end++
	}
	h, _ := w.here()
	if instead, ok := w.number(w.raw[i:end], h); ok {
		w.putText(i, end, instead)
	}
	return end
}

// put replaces a part of the raw text.
func (w *walker) put(start, end int, instead string) {
	w.upTo(start)
	w.out = append(w.out, instead...)
	w.copied = end
}

// putText is put for a string, which it quotes.
func (w *walker) putText(start, end int, text string) {
	w.upTo(start)
	if isPlain(text) {
		w.out = append(append(append(w.out, '"'), text...), '"')
	} else {
		w.out = append(w.out, quote(text)...)
	}
	w.copied = end
}

// upTo copies the unchanged text before start.
func (w *walker) upTo(start int) {
	if w.out == nil {
		w.out = make([]byte, 0, len(w.raw)+len(w.raw)/8)
	}
	w.out = append(w.out, w.raw[w.copied:start]...)
}

// quote encodes a JSON string, without HTML escapes.
func quote(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// isPlain reports whether a text needs no escape in JSON.
func isPlain(text string) bool {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b >= 0x7f || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}
