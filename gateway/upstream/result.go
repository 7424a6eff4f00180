package upstream

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/internal/tool"
)

// parseRead reads the result of resources/read: texts and blobs.
func parseRead(raw json.RawMessage) (tool.Result, error) {
	var contents []json.RawMessage
	if json.Unmarshal(orNull(member(raw, "contents")), &contents) != nil || !isObject(raw) {
		return tool.Result{}, errors.New("its contents are no list")
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

// parseOther takes the result of another method as it is.
func parseOther(raw json.RawMessage) (tool.Result, error) {
	if !isObject(raw) {
		return tool.Result{}, errors.New("it is no JSON object")
	}
	return tool.Result{Structured: raw, Raw: raw}, nil
}

// parseResult reads the result of tools/call. Only what is no result at all is an
// error; a block that is odd or of an unknown type is kept as it was sent.
func parseResult(raw json.RawMessage) (tool.Result, error) {
	var fields struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    json.RawMessage   `json:"isError"`
	}
	if !isObject(raw) {
		return tool.Result{}, errors.New("it is no JSON object")
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return tool.Result{}, errors.New("its content is no list")
	}
	result := tool.Result{Structured: fields.Structured, Raw: raw}
	if failed := flag(fields.IsError); failed != nil {
		result.IsError = *failed
	}
	for _, block := range fields.Content {
		result.Content = append(result.Content, parseContent(block))
	}
	return result, nil
}

// parseContent reads one block.
func parseContent(raw json.RawMessage) tool.Content {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return tool.Content{Raw: raw}
	}
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
	if json.Unmarshal(fields["text"], &c.Text) != nil {
		return tool.Content{Raw: raw}
	}
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
	var fields map[string]json.RawMessage
	if json.Unmarshal(resource, &fields) != nil || fields == nil {
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
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return nil, errors.New("no string")
	}
	data, err := base64.StdEncoding.DecodeString(*s)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(*s)
	}
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	return data, nil
}
