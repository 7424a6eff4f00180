package compat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// The tools of code-execution-mcp about tools, skills and personal data. A category is an upstream.

func (c codeExecution) search(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Query    string  `json:"query"`
		Category *string `json:"category"`
		Detail   string  `json:"detail_level"`
	}{Detail: "summary"}
	if err := decode(args, &in, "query"); err != nil {
		return nil, err
	}
	category := ""
	if in.Category != nil {
		category = *in.Category
	}
	found, err := c.find(ctx, in.Query, category)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		if in.Detail == "summary" {
			delete(one, "functions")
			delete(one, "use_cases")
		}
	}
	return object{"query": in.Query, "category": in.Category, "detail_level": in.Detail, "count": len(found), "tools": found}, nil
}

// find returns the tools that match a query, all for "". An unknown category has none.
func (c codeExecution) find(ctx context.Context, query, category string) ([]object, error) {
	c.gateway.Await(ctx, "")
	list := []object{}
	if category != "" && !slices.ContainsFunc(c.gateway.Upstreams(), func(up catalog.Upstream) bool { return up.ID == category }) {
		return list, nil
	}
	if query == "" {
		for _, t := range c.gateway.Tools() {
			if category == "" || t.ID.Upstream == category {
				list = append(list, c.described(ctx, t.ID))
			}
		}
		return list, nil
	}
	found, err := c.gateway.Search.Search(ctx, toolsearch.Request{Query: query, Upstream: category, Budget: 4000, Limit: 50})
	if err != nil {
		return nil, err
	}
	for _, hit := range found.Tools {
		if hit.Kind == "" {
			list = append(list, c.described(ctx, hit.ID))
		}
	}
	return list, nil
}

// described returns one tool as a search does.
func (c codeExecution) described(ctx context.Context, id tool.ID) object {
	said := object{"name": id.Name, "category": id.Upstream, "mcp_server": id.Upstream, "description": "", "functions": []string{}, "use_cases": []string{}}
	view, err := c.gateway.ToolView(ctx, id)
	if err != nil {
		return said
	}
	said["description"] = sanitize.Text(view.Tool.Description, 2000)
	said["functions"] = []string{signatureOf(view, "python")}
	return said
}

// textOf returns what a model reads of a tool.
func textOf(view toolsearch.ToolView, language string, detail toolsearch.Detail) string {
	for _, t := range view.Texts {
		if t.Language == language && t.Detail == detail {
			return t.Text
		}
	}
	return ""
}

// signatureOf returns the typed call of a tool.
func signatureOf(view toolsearch.ToolView, language string) string {
	all := textOf(view, language, toolsearch.Signature)
	for line := range strings.Lines(all) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, view.Tool.ID.Name+"(") {
			return line
		}
	}
	return all
}

func (c codeExecution) definition(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Name     string `json:"tool_name"`
		Category string `json:"category"`
	}{}
	if err := decode(args, &in, "tool_name"); err != nil {
		return nil, err
	}
	c.gateway.Await(ctx, in.Category)
	for _, t := range c.gateway.Tools() {
		if in.Category != "" && t.ID.Upstream != in.Category || t.ID.Name != in.Name && t.Wire != in.Name && t.ID.String() != in.Name {
			continue
		}
		said := c.described(ctx, t.ID)
		if view, err := c.gateway.ToolView(ctx, t.ID); err == nil {
			said["definition"], said["input_schema"] = textOf(view, "python", toolsearch.Full), view.Tool.Input
		}
		return said, nil
	}
	return object{"error": "Tool not found: " + sanitize.Line(in.Name, 100)}, nil
}

func (c codeExecution) categories(ctx context.Context, args json.RawMessage) (any, error) {
	if err := decode(args, &struct{}{}); err != nil {
		return nil, err
	}
	c.gateway.Await(ctx, "")
	names, all, total := toolsByUpstream(c.gateway.Tools()), object{}, 0
	for _, up := range c.gateway.Upstreams() {
		all[up.ID] = object{"description": sanitize.Line(up.Description, 300), "tool_count": len(names[up.ID])}
		total += len(names[up.ID])
	}
	return object{"categories": all, "total_tools": total, "core_mcps": []string{}}, nil
}

func (c codeExecution) saveSkill(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Name        string `json:"name"`
		Code        string `json:"code"`
		Description string `json:"description"`
	}{}
	if err := decode(args, &in, "name", "code"); err != nil {
		return nil, err
	}
	if in.Description == "" {
		in.Description = in.Name // without one no skill is saved
	}
	if _, err := c.gateway.SaveSkill(ctx, skills.SkillDraft{Name: in.Name, Code: in.Code, Description: in.Description, Language: skill.Python}); err != nil {
		return object{"error": reason(err)}, nil
	}
	return object{"success": true, "message": "Skill '" + in.Name + "' saved successfully"}, nil
}

func (c codeExecution) loadSkill(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Name string `json:"name"`
	}{}
	if err := decode(args, &in, "name"); err != nil {
		return nil, err
	}
	one, err := c.gateway.SkillOf(ctx, in.Name, 0)
	if err != nil {
		return object{"error": "Skill not found: " + sanitize.Line(in.Name, 100), "hint": reason(err)}, nil
	}
	return object{"name": in.Name, "code": one.Code, "metadata": metadata(one)}, nil
}

// metadata describes a skill in addition to its code.
func metadata(one skills.SkillDetail) object {
	sum := sha256.Sum256([]byte(one.Code))
	return object{
		"name": skill.Module(one.Name), "description": sanitize.Text(one.Description, 2000), "version": one.Version, "code_hash": hex.EncodeToString(sum[:16]),
	}
}

func (c codeExecution) listSkills(ctx context.Context, args json.RawMessage) (any, error) {
	if err := decode(args, &struct{}{}); err != nil {
		return nil, err
	}
	list, err := c.gateway.SkillList(ctx)
	if err != nil {
		return nil, err
	}
	all := []object{}
	for _, one := range list {
		if full, err := c.gateway.SkillOf(ctx, one.Name, 0); err == nil {
			all = append(all, metadata(full))
		}
	}
	return object{"count": len(all), "skills": all}, nil
}

func (c codeExecution) sanitize(ctx context.Context, args json.RawMessage) (any, error) {
	given, err := textArgument(args)
	if err != nil {
		return nil, err
	}
	clean, found, err := c.gateway.Privacy.Mask(ctx, given)
	if err != nil {
		return nil, err
	}
	kinds, count := []string{}, 0
	for part := range strings.SplitSeq(found, ", ") {
		number, kind, _ := strings.Cut(part, " ")
		if n, err := strconv.Atoi(number); err == nil {
			kinds, count = append(kinds, strings.ToUpper(kind)), count+n
		}
	}
	return object{"sanitized_text": clean, "pii_found": count, "pii_types": kinds}, nil
}

func (c codeExecution) restore(ctx context.Context, args json.RawMessage) (any, error) {
	given, err := textArgument(args)
	if err != nil {
		return nil, err
	}
	restored, err := c.gateway.Privacy.Unmask(ctx, given)
	if err != nil {
		return object{"restored_text": given, "error": reason(err)}, nil
	}
	return object{"restored_text": restored}, nil
}

// maxText is the maximum length of a text with personal data, in bytes.
const maxText = 4 << 20

func textArgument(args json.RawMessage) (string, error) {
	in := struct {
		Text string `json:"text"`
	}{}
	if err := decode(args, &in, "text"); err != nil {
		return "", err
	}
	if len(in.Text) > maxText {
		return "", invalid("text is longer than 4 MiB", "split it")
	}
	return in.Text, nil
}

func (c codeExecution) stats(ctx context.Context, args json.RawMessage) (any, error) {
	if err := decode(args, &struct{}{}); err != nil {
		return nil, err
	}
	names, err := c.files.list(ctx, ".")
	if err != nil {
		return nil, err
	}
	kept := 0
	if list, err := c.gateway.SkillList(ctx); err == nil {
		kept = len(list)
	}
	categories := []string{}
	for _, up := range c.gateway.Upstreams() {
		categories = append(categories, up.ID)
	}
	limits := c.gateway.Limits(execution.Program{})
	return object{
		"workspace":     object{"path": c.files.folder(ctx), "file_count": len(names)},
		"skills":        object{"count": kept, "path": "skills"},
		"tool_registry": object{"categories": categories, "total_tools": len(c.gateway.Tools())},
		"capabilities":  []string{"sandboxed_execution", "progressive_tool_discovery", "pii_tokenization", "skills_persistence", "workspace_files"},
		"limits":        object{"default_timeout_seconds": min(defaultSeconds, int(limits.Timeout.Seconds())), "default_memory_mb": limits.Memory >> 20},
	}, nil
}
