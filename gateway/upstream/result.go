package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/gateway/upstream/jsontext"
	"sallyport/internal/tool"
)

// parseRead parses the result of resources/read: texts and blobs.
func parseRead(raw json.RawMessage) (tool.Result, error) {
	var contents []json.RawMessage
	if json.Unmarshal(orNull(member(raw, "contents")), &contents) != nil || !isObject(raw) {
		return tool.Result{}, errors.New("contents is not a list")
	}
	result := tool.Result{Raw: raw}
	for _, resource := range contents {
		c := resourceBlock(tool.Content{Type: "text"}, resource, resource)
		if c.Data != nil {
			c.Type = "resource"
		}
		result.Content = append(result.Content, c)
	}
	return result, nil
}

// parseOther returns the result of another method unparsed.
func parseOther(raw json.RawMessage) (tool.Result, error) {
	if !isObject(raw) {
		return tool.Result{}, errors.New("not a JSON object")
	}
	return tool.Result{Structured: raw, Raw: raw}, nil
}

// parseRemote is parseResult for an upstream that runs at another gateway. The errors of that gateway are errors here.
func parseRemote(raw json.RawMessage) (tool.Result, error) {
	result, err := parseResult(raw)
	theirs := member(member(raw, "_meta"), tool.MetaError)
	if err != nil || !result.IsError || len(theirs) == 0 {
		return result, err
	}
	var e struct {
		Kind          tool.Kind
		Message, Hint string
		Retryable     bool
	}
	_ = json.Unmarshal(theirs, &e) // it is the tool's own then
	if e.Message == "" {
		return result, nil
	}
	return tool.Result{}, &tool.Error{Kind: e.Kind, Message: e.Message, Hint: e.Hint, Retryable: e.Retryable}
}

// parseResult parses the result of tools/call. Only an invalid result as a whole is an
// error; an invalid block or one of unknown type is kept as sent. Results can be
// large: values are parts of raw instead of copies where possible.
func parseResult(raw json.RawMessage) (tool.Result, error) {
	if !isObject(raw) {
		return tool.Result{}, errors.New("not a JSON object")
	}
	fields := partsOf(raw)
	result := tool.Result{Structured: fields["structuredContent"], Raw: raw}
	content := fields["content"]
	if len(content) > 0 && content[0] != '[' && string(content) != "null" {
		return tool.Result{}, errors.New("content is not a list")
	}
	if failed := flag(fields["isError"]); failed != nil {
		result.IsError = *failed
	}
	jsontext.Scan(content, func(_ string, block json.RawMessage) {
		result.Content = append(result.Content, parseContent(block))
	})
	return result, nil
}

// partsOf returns the members of a JSON object as parts of it, nil for anything else.
func partsOf(object json.RawMessage) map[string]json.RawMessage {
	if !isObject(object) {
		return nil
	}
	fields := map[string]json.RawMessage{}
	jsontext.Scan(object, func(key string, value json.RawMessage) { fields[key] = value })
	return fields
}

// parseContent reads one block.
func parseContent(raw json.RawMessage) tool.Content {
	fields := partsOf(raw)
	c := tool.Content{Type: text(fields["type"])}
	switch c.Type {
	case "text":
		return textBlock(c, fields, raw)
	case "image", "audio":
		c.MIME = text(fields["mimeType"])
		return blobBlock(c, fields["data"], raw)
	case "resource":
		return resourceBlock(c, fields["resource"], raw)
	case "resource_link":
		c.URI, c.Name, c.MIME = text(fields["uri"]), text(fields["name"]), text(fields["mimeType"])
	}
	c.Raw = raw
	return c
}

func textBlock(c tool.Content, fields map[string]json.RawMessage, raw json.RawMessage) tool.Content {
	value := fields["text"]
	if len(value) == 0 || value[0] != '"' && string(value) != "null" {
		return tool.Content{Raw: raw}
	}
	c.Text = text(value)
	return c
}

func blobBlock(c tool.Content, data, raw json.RawMessage) tool.Content {
	decoded, err := decodeBase64(data)
	if err != nil {
		c.Raw = raw
		return c
	}
	c.Data = decoded
	return c
}

// resourceBlock reads an embedded resource, which holds either text or a blob.
func resourceBlock(c tool.Content, resource, raw json.RawMessage) tool.Content {
	fields := partsOf(resource)
	if fields == nil {
		return tool.Content{Raw: raw}
	}
	c.URI, c.MIME, c.Text = text(fields["uri"]), text(fields["mimeType"]), text(fields["text"])
	if blob, ok := fields["blob"]; ok {
		return blobBlock(c, blob, raw)
	}
	return c
}

// decodeBase64 reads a JSON string of base64, with or without padding. An empty
// one gives an empty slice that is not nil.
func decodeBase64(raw json.RawMessage) ([]byte, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, errors.New("not a string")
	}
	encoded := raw[1 : len(raw)-1]
	if bytes.IndexByte(encoded, '\\') >= 0 {
		encoded = []byte(text(raw))
	}
	data, err := base64.StdEncoding.AppendDecode([]byte{}, encoded)
	if err != nil {
		data, err = base64.RawStdEncoding.AppendDecode([]byte{}, encoded)
	}
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	return data, nil
}
