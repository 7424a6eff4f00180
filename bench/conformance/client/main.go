// Client is what the official MCP conformance suite runs to test a client: a
// thin program over gateway/upstream that does in each scenario what the suite
// expects of one. Usage: client SERVER-URL, with the scenario's name in
// MCP_CONFORMANCE_SCENARIO and its settings, JSON, in MCP_CONFORMANCE_CONTEXT.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"sallyport/gateway/upstream"
	"sallyport/internal/tool"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: client SERVER-URL")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[len(os.Args)-1], os.Getenv("MCP_CONFORMANCE_SCENARIO")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run plays one scenario against the server at url.
func run(ctx context.Context, url, scenario string) error {
	var given scenarioContext
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &given); err != nil {
			return fmt.Errorf("read context: %w", err)
		}
	}
	opts := &upstream.Options{
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Asks:   true,
	}
	dir, err := os.MkdirTemp("", "conformance-client")
	if err != nil {
		return fmt.Errorf("make a place for tokens: %w", err)
	}
	defer os.RemoveAll(dir)
	authorize(opts, url, scenario, dir, given)
	s := upstream.New(upstream.Settings{ID: "suite", URL: url}, opts)
	defer s.Close()
	if err := s.Connect(ctx); err != nil {
		return err
	}
	return play(ctx, s, scenario, given)
}

// scenarioContext is what the suite hands to some scenarios.
type scenarioContext struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	// The identity provider of the person, and its ID token.
	Provider         string `json:"idp_issuer"`
	ProviderEndpoint string `json:"idp_token_endpoint"`
	ProviderClient   string `json:"idp_client_id"`
	IDToken          string `json:"idp_id_token"`
}

func play(ctx context.Context, s *upstream.Session, scenario string, given scenarioContext) error {
	switch scenario {
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
		return nil // connecting, with its lists, is all
	case "tools_call":
		return call(ctx, s, "add_numbers", `{"a":5,"b":3}`)
	case "elicitation-sep1034-client-defaults":
		return call(ctx, s, "test_client_elicitation_defaults", `{}`)
	case "sse-retry":
		return call(ctx, s, "test_reconnection", `{}`)
	case "json-schema-2020-12-preservation":
		return echoSchema(ctx, s)
	case "sep-2322-client-request-state":
		return each(ctx, s, `{}`, "test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type")
	case "http-standard-headers":
		return oneOfEach(ctx, s)
	case "http-custom-headers":
		for _, c := range given.ToolCalls {
			report(call(ctx, s, c.Name, string(c.Arguments)))
		}
		return nil
	case "http-invalid-tool-headers":
		return each(ctx, s, `{"region":"us-west1"}`, wires(s)...)
	}
	if strings.HasPrefix(scenario, "auth/") {
		return call(ctx, s, "test-tool", `{}`)
	}
	return fmt.Errorf("no such scenario: %q", scenario)
}

// each calls all the tools; a server may well refuse some.
func each(ctx context.Context, s *upstream.Session, args string, wires ...string) error {
	for _, wire := range wires {
		report(call(ctx, s, wire, args))
	}
	return nil
}

func report(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// call calls a tool by its name on the wire.
func call(ctx context.Context, s *upstream.Session, wire, args string) error {
	for _, t := range s.Tools() {
		if t.Wire == wire {
			_, err := s.Call(ctx, tool.Call{Tool: t.ID, Args: json.RawMessage(args), Peer: person{}})
			return err
		}
	}
	return fmt.Errorf("no tool %s", wire)
}

func wires(s *upstream.Session) (all []string) {
	for _, t := range s.Tools() {
		all = append(all, t.Wire)
	}
	return all
}

// echoSchema sends a tool's schema back as it came.
func echoSchema(ctx context.Context, s *upstream.Session) error {
	for _, t := range s.Tools() {
		if t.Wire == "json_schema_2020_12_tool" {
			return call(ctx, s, "json_schema_echo", `{"schema":`+string(t.Input)+`}`)
		}
	}
	return errors.New("no tool with a schema to preserve")
}

// oneOfEach uses a tool, a resource and a prompt.
func oneOfEach(ctx context.Context, s *upstream.Session) error {
	offer := s.Offer()
	ask := func(method string, args map[string]string) {
		data, err := json.Marshal(args)
		if err == nil {
			_, err = s.Call(ctx, tool.Call{Tool: tool.ID{Name: method}, Args: data})
		}
		report(err)
	}
	if len(offer.Tools) > 0 {
		report(call(ctx, s, offer.Tools[0].Wire, `{}`))
	}
	if len(offer.Resources) > 0 {
		ask(tool.ReadResource, map[string]string{"uri": offer.Resources[0].URI})
	}
	if len(offer.Prompts) > 0 {
		ask(tool.GetPrompt, map[string]string{"name": offer.Prompts[0].Name})
	}
	return nil
}

// person is a peer that agrees to everything, with the defaults of the form.
type person struct{}

func (person) Notify(string, json.RawMessage) {}

func (person) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != "elicitation/create" {
		return nil, &tool.Error{Kind: tool.Denied, Message: "only forms are filled in here"}
	}
	var form struct {
		Schema struct {
			Properties map[string]struct {
				Type    string          `json:"type"`
				Default json.RawMessage `json:"default"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &form); err != nil {
		return nil, fmt.Errorf("read form: %w", err)
	}
	content := map[string]json.RawMessage{}
	for name, field := range form.Schema.Properties {
		if field.Default != nil {
			content[name] = field.Default
		} else if field.Type == "boolean" {
			content[name] = json.RawMessage("true")
		}
	}
	return json.Marshal(map[string]any{"action": "accept", "content": content})
}
