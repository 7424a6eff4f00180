package openapi

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"sallyport/gateway/upstream/webapi"
)

type bodyKind int

const (
	jsonBody bodyKind = iota
	formBody
	multipartBody
	textBody
	binaryBody
)

// maxFlat is how many members a body may have whose members are arguments of their own.
const maxFlat = 100

// body is the body of the requests of an operation.
type body struct {
	mime        string
	kind        bodyKind
	required    bool
	description string
	schema      place
	encoding    *object // of the members of a form
	// flat says that the members are arguments; otherwise the body is the argument of that name.
	flat     bool
	argument string
	members  []string
	files    map[string]bool // members of a form that are bytes
}

func mediaType(text string) string {
	if t, _, err := mime.ParseMediaType(text); err == nil {
		return t
	}
	return strings.ToLower(strings.TrimSpace(text))
}

func isJSON(mime string) bool {
	t := mediaType(mime)
	return t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json")
}

func kindOf(mime string) bodyKind {
	t := mediaType(mime)
	switch {
	case isJSON(mime), t == "*/*", t == "application/*":
		return jsonBody
	case t == "application/x-www-form-urlencoded":
		return formBody
	case t == "multipart/form-data", strings.HasPrefix(t, "multipart/"):
		return multipartBody
	case strings.HasPrefix(t, "text/"), strings.HasSuffix(t, "xml"), strings.HasSuffix(t, "yaml"):
		return textBody
	}
	return binaryBody
}

// preferred returns the media type to send: JSON if it may be, else a form, else the first.
func preferred(mimes []string) string {
	rank := func(m string) int {
		switch t := mediaType(m); {
		case t == "application/json":
			return 0
		case t == "*/*", t == "application/*":
			return 1
		case t == "application/merge-patch+json":
			return 2
		case isJSON(t):
			return 3
		}
		return 4 + int(kindOf(m))
	}
	if len(mimes) == 0 {
		return ""
	}
	return slices.MinFunc(mimes, func(a, b string) int { return rank(a) - rank(b) })
}

// sendable returns the media type without wildcards.
func sendable(mime string) string {
	if strings.Contains(mime, "*") {
		return "application/json"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, mime)
}

// preferredJSON returns the JSON among media types, "" if there is none.
func preferredJSON(mimes []string) string {
	if m := preferred(mimes); m != "" && kindOf(m) == jsonBody {
		return m
	}
	return ""
}

// requestBody reads a body of OpenAPI 3, nil if there is none.
func (r *reader) requestBody(at place) (*body, error) {
	if at.object() == nil {
		return nil, nil
	}
	p, err := r.l.resolve(at)
	if err != nil {
		return nil, err
	}
	content := p.in("content")
	mime := preferred(content.object().Keys())
	if mime == "" {
		return nil, nil
	}
	media := content.in(mime)
	return &body{
		mime: sendable(mime), kind: kindOf(mime), required: p.object().Flag("required"), description: p.object().Text("description"),
		schema: media.in("schema"), encoding: media.object().Object("encoding"),
	}, nil
}

// setMembers decides whether the members of a body are arguments of their own, and which of a form are bytes.
func (r *reader) setMembers(b *body) error {
	if b.kind == textBody || b.kind == binaryBody {
		return nil
	}
	p, err := r.l.resolve(b.schema)
	if isLimit(err) {
		return err
	}
	o := p.object()
	if err != nil || o.Object("properties") == nil {
		return nil //nolint:nilerr // it becomes a body of any value
	}
	b.files = map[string]bool{}
	for _, name := range o.Object("properties").Keys() {
		if err := r.setMember(b, name, p.in("properties").in(name)); err != nil {
			return err
		}
	}
	b.flat = isPlainObject(o) && len(b.members) > 0 && len(b.members) <= maxFlat
	return nil
}

// isPlainObject reports whether a schema is described by its properties alone.
func isPlainObject(o *object) bool {
	structured := slices.ContainsFunc([]string{"allOf", "anyOf", "oneOf", "patternProperties", "if"}, o.Has)
	more := o.Get("additionalProperties")
	return !structured && !o.Flag("nullable") && (more == nil || more == false)
}

func (r *reader) setMember(b *body, name string, at place) error {
	one, err := r.l.resolve(at)
	if isLimit(err) {
		return err
	}
	if err != nil || !one.object().Flag("readOnly") {
		b.members = append(b.members, name)
	}
	if items, err := r.l.resolve(one.in("items")); err == nil && isFile(items.object()) || isFile(one.object()) {
		b.files[name] = true
	}
	return nil
}

func isFile(o *object) bool {
	return o.Text("type") == "file" || o.Text("type") == "string" && o.Text("format") == "binary" || o.Has("contentMediaType") && !o.Has("contentEncoding")
}

// encode returns the body of a call and its media type; none if there is neither an argument for it nor the need of one.
func (b *body) encode(args *object) ([]byte, string, error) {
	value, given := args.Get(b.argument), args.Has(b.argument)
	if b.flat {
		members := newObject()
		for _, name := range b.members {
			if args.Has(name) {
				members.Set(name, args.Get(name))
			}
		}
		value, given = members, b.required || len(members.Keys()) > 0
	}
	if !given {
		if b.required {
			return nil, "", fmt.Errorf("the argument %s is missing", b.argument)
		}
		return nil, "", nil
	}
	switch b.kind {
	case jsonBody:
		return webapi.AppendJSON(nil, value), b.mime, nil
	case formBody:
		return b.form(value)
	case multipartBody:
		return b.multipart(value)
	}
	text, ok := value.(string)
	if !ok {
		return nil, "", fmt.Errorf("the argument %s must be a text", b.argument)
	}
	if b.kind == textBody {
		return []byte(text), b.mime, nil
	}
	data, err := decodeBase64(b.argument, text)
	return data, b.mime, err
}

func decodeBase64(name, text string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the argument %s must be base64", name)
	}
	return data, nil
}

// form encodes an object as application/x-www-form-urlencoded.
func (b *body) form(value any) ([]byte, string, error) {
	o, ok := value.(*object)
	if !ok {
		return nil, "", fmt.Errorf("the argument %s must be an object", b.argument)
	}
	var pairs []string
	for _, name := range o.Keys() {
		v := o.Get(name)
		e := b.encoding.Object(name)
		style, explode := e.Text("style"), !e.Has("explode") || e.Flag("explode")
		if style == "deepObject" || style == "" && isNested(v) {
			pairs = append(pairs, deep(webapi.Escape(name), v)...)
			continue
		}
		pairs = append(pairs, formPairs(name, v, style, explode, webapi.Escape)...)
	}
	return []byte(strings.Join(pairs, "&")), b.mime, nil
}

// multipart encodes an object as multipart/form-data.
func (b *body) multipart(value any) ([]byte, string, error) {
	o, ok := value.(*object)
	if !ok {
		return nil, "", fmt.Errorf("the argument %s must be an object", b.argument)
	}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, name := range o.Keys() {
		values, several := o.Get(name).([]any)
		if !several {
			values = []any{o.Get(name)}
		}
		for _, v := range values {
			if err := b.part(w, name, v); err != nil {
				return nil, "", err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	kind := mediaType(b.mime)
	return buf.Bytes(), mime.FormatMediaType(kind, map[string]string{"boundary": w.Boundary()}), nil
}

var quoteEscaper = strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", "%0D", "\n", "%0A")

// part writes one value: bytes as a file, an object as JSON, anything else as text.
func (b *body) part(w *multipart.Writer, name string, v any) error {
	header := textproto.MIMEHeader{}
	disposition := fmt.Sprintf(`form-data; name="%s"`, quoteEscaper.Replace(name))
	kind, data := "", []byte(plain(v))
	if _, structured := v.(*object); structured {
		kind = "application/json"
	}
	if text, ok := v.(string); ok && b.files[name] {
		decoded, err := decodeBase64(name, text)
		if err != nil {
			return err
		}
		kind, data = "application/octet-stream", decoded
		disposition += fmt.Sprintf(`; filename="%s"`, quoteEscaper.Replace(name))
	}
	if own, _, _ := strings.Cut(b.encoding.Object(name).Text("contentType"), ","); own != "" && !strings.Contains(own, "*") {
		kind = sendable(strings.TrimSpace(own))
	}
	header.Set("Content-Disposition", disposition)
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	to, err := w.CreatePart(header)
	if err == nil {
		_, err = to.Write(data)
	}
	return err
}
