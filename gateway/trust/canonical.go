package trust

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"sallyport/internal/tool"
)

// digestOf identifies a definition in canonical form. It is 32 hexadecimal digits.
func digestOf(definition []byte) string {
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:16])
}

// Canonical returns the parts of a definition that influence a model or a policy, as JSON with sorted keys and no white
// space: its wire name, title, description, both schemas and annotations. Icons, _meta and execution are left out: no
// program sees them, and servers put time stamps and versions there. So are the tool's id and a rename in the settings.
func Canonical(t tool.Tool) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"annotations":`)
	b.Write(canonicalJSON(annotations(t)))
	b.WriteString(`,"description":`)
	writeString(&b, t.Description)
	b.WriteString(`,"inputSchema":`)
	b.Write(canonicalJSON(t.Input))
	b.WriteString(`,"name":`)
	writeString(&b, t.Wire)
	b.WriteString(`,"outputSchema":`)
	b.Write(canonicalJSON(t.Output))
	b.WriteString(`,"title":`)
	writeString(&b, t.Title)
	b.WriteByte('}')
	return b.Bytes()
}

// annotations returns the annotations as they were sent, including unknown ones.
func annotations(t tool.Tool) json.RawMessage {
	var sent struct {
		Annotations json.RawMessage `json:"annotations"`
	}
	if t.Raw != nil && json.Unmarshal(t.Raw, &sent) == nil && len(sent.Annotations) > 0 {
		return sent.Annotations
	}
	data, _ := json.Marshal(t.Annotations) // cannot fail: booleans
	if string(data) == "{}" {
		return nil
	}
	return data
}

// canonicalJSON sorts keys, and keeps the spelling of numbers and duplicate keys. It
// returns invalid JSON as a marked string, and null for no data.
func canonicalJSON(data json.RawMessage) []byte {
	if len(bytes.TrimSpace(data)) == 0 {
		return []byte("null")
	}
	var b bytes.Buffer
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := canonicalValue(dec, &b); err == nil {
		if _, err := dec.Token(); errors.Is(err, io.EOF) { // nothing follows
			return b.Bytes()
		}
	}
	b.Reset()
	writeString(&b, "not JSON: "+string(data))
	return b.Bytes()
}

func canonicalValue(dec *json.Decoder, b *bytes.Buffer) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			return canonicalArray(dec, b)
		}
		return canonicalObject(dec, b)
	case string:
		writeString(b, v)
	case json.Number:
		b.WriteString(v.String())
	case bool:
		b.WriteString(map[bool]string{true: "true", false: "false"}[v])
	case nil:
		b.WriteString("null")
	}
	return nil
}

func canonicalArray(dec *json.Decoder, b *bytes.Buffer) error {
	b.WriteByte('[')
	for n := 0; dec.More(); n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		if err := canonicalValue(dec, b); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	_, err := dec.Token()
	return err
}

func canonicalObject(dec *json.Decoder, b *bytes.Buffer) error {
	type member struct {
		key   string
		value []byte
	}
	var members []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value bytes.Buffer
		if err := canonicalValue(dec, &value); err != nil {
			return err
		}
		name, _ := key.(string) // the decoder takes no other key
		members = append(members, member{name, value.Bytes()})
	}
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, m.key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	_, err := dec.Token()
	return err
}

// writeString writes a JSON string with <, > and & as they are.
func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // cannot fail: a string into memory
	b.Truncate(b.Len() - 1)
}
