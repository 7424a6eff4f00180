package openapi

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"sallyport/gateway/upstream/webapi"
)

// plain returns a value as text: a list or an object in JSON.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return string(webapi.AppendJSON(nil, v))
}

// escapeReserved leaves the reserved characters that have no meaning in a query as they are.
func escapeReserved(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; strings.IndexByte(":/?@!$'()*,;", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString(webapi.Escape(text[i : i+1]))
		}
	}
	return b.String()
}

// isNested reports whether a value is an object, or a list with one.
func isNested(v any) bool {
	switch v := v.(type) {
	case *object:
		return true
	case []any:
		for _, one := range v {
			switch one.(type) {
			case *object, []any:
				return true
			}
		}
	}
	return false
}

// deep encodes a value in the style deepObject: name[key][0]=value. name is escaped.
func deep(name string, v any) (pairs []string) {
	switch v := v.(type) {
	case *object:
		for _, key := range v.Keys() {
			pairs = append(pairs, deep(name+"["+webapi.Escape(key)+"]", v.Get(key))...)
		}
	case []any:
		for i, one := range v {
			pairs = append(pairs, deep(name+"["+strconv.Itoa(i)+"]", one)...)
		}
	default:
		pairs = []string{name + "=" + webapi.Escape(plain(v))}
	}
	return pairs
}

// formPairs encodes a value for a query or a form in the styles form, spaceDelimited and pipeDelimited.
func formPairs(name string, v any, style string, explode bool, esc func(string) string) (pairs []string) {
	key := webapi.Escape(name)
	separator := map[string]string{"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}[style]
	if separator == "" {
		separator = ","
	}
	switch v := v.(type) {
	case []any:
		if !explode {
			return []string{key + "=" + joined(v, separator, esc)}
		}
		for _, one := range v {
			pairs = append(pairs, key+"="+esc(plain(one)))
		}
		return pairs
	case *object:
		if !explode {
			return []string{key + "=" + joined(flattened(v), separator, esc)}
		}
		for _, k := range v.Keys() {
			pairs = append(pairs, webapi.Escape(k)+"="+esc(plain(v.Get(k))))
		}
		return pairs
	}
	return []string{key + "=" + esc(plain(v))}
}

func joined(values []any, separator string, esc func(string) string) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = esc(plain(v))
	}
	return strings.Join(all, separator)
}

// flattened returns keys and values in turn.
func flattened(o *object) (all []any) {
	for _, k := range o.Keys() {
		all = append(all, k, o.Get(k))
	}
	return all
}

// equations returns key=value of each member.
func equations(o *object, separator string, esc func(string) string) string {
	all := make([]string, len(o.Keys()))
	for i, k := range o.Keys() {
		all[i] = esc(k) + "=" + esc(plain(o.Get(k)))
	}
	return strings.Join(all, separator)
}

// simple encodes a value of a path or a header: a,b and k,v or k=v.
func simple(v any, explode bool, separator string, esc func(string) string) string {
	switch v := v.(type) {
	case []any:
		return joined(v, separator, esc)
	case *object:
		if explode {
			return equations(v, separator, esc)
		}
		return joined(flattened(v), separator, esc)
	}
	return esc(plain(v))
}

// inPath encodes the value of a variable of a path.
func (p *parameter) inPath(v any) string {
	esc := url.PathEscape
	switch p.style {
	case "label":
		if p.explode {
			return "." + simple(v, true, ".", esc)
		}
		return "." + simple(v, false, ",", esc)
	case "matrix":
		return p.matrix(v, esc)
	}
	return simple(v, p.explode, ",", esc)
}

func (p *parameter) matrix(v any, esc func(string) string) string {
	name := ";" + esc(p.wire) + "="
	switch v := v.(type) {
	case []any:
		if p.explode {
			return name + joined(v, name, esc)
		}
	case *object:
		if p.explode {
			return ";" + equations(v, ";", esc)
		}
	}
	return name + simple(v, false, ",", esc)
}

// inQuery encodes the value of a parameter in the query.
func (p *parameter) inQuery(v any) []string {
	esc := webapi.Escape
	if p.reserved {
		esc = escapeReserved
	}
	if p.asJSON {
		return []string{webapi.Escape(p.wire) + "=" + esc(string(webapi.AppendJSON(nil, v)))}
	}
	if p.style == "deepObject" {
		return deep(webapi.Escape(p.wire), v)
	}
	return formPairs(p.wire, v, p.style, p.explode, esc)
}
