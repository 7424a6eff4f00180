package initcmd

import (
	"encoding/json"
	"fmt"
	"strings"
)

// sample describes a sample server.
type sample struct{ name, description string }

// samples returns the sample servers.
func samples() []sample {
	return []sample{
		{"shop", "sample: the orders and customers of a small shop"},
		{"notes", "sample: short notes, kept until the server ends"},
	}
}

func sampleNames() (names []string) {
	for _, s := range samples() {
		names = append(names, s.name)
	}
	return names
}

// sampleTools returns the tools of a sample server, nil if there is none with that name.
func sampleTools(name string) []sampleTool {
	switch name {
	case "shop":
		return shopTools()
	case "notes":
		return (&notebook{}).tools()
	case "crm":
		return crmTools()
	case "mail":
		return (&postbox{}).tools()
	}
	return nil
}

type order struct {
	ID       string  `json:"id"`
	Month    string  `json:"month"`
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
}

type customer struct {
	Name string `json:"name"`
	City string `json:"city"`
}

func shopOrders() []order {
	return []order{
		{"o-1", "january", "Abela", 10.5}, {"o-2", "january", "Borg", 7.25},
		{"o-3", "february", "Borg", 20}, {"o-4", "february", "Abela", 4.5},
		{"o-5", "march", "Cauchi", 12}, {"o-6", "march", "Borg", 1.75},
	}
}

func shopCustomers() []customer {
	return []customer{{"Abela", "Valletta"}, {"Borg", "Mdina"}, {"Cauchi", "Sliema"}}
}

func shopTools() []sampleTool {
	read := map[string]bool{"readOnlyHint": true, "openWorldHint": false}
	return []sampleTool{{
		Name: "list_orders", Description: "List the orders of the shop, of one month or of all.", Annotations: read, call: listOrders,
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"month":{"type":"string","enum":["january","february","march"]}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["orders"],"properties":{"orders":{"type":"array","items":{"type":"object","required":["id","month","customer","amount"],"properties":{"id":{"type":"string"},"month":{"type":"string"},"customer":{"type":"string"},"amount":{"type":"number"}}}}}}`),
	}, {
		Name: "get_customer", Description: "Get one customer of the shop by name.", Annotations: read, call: getCustomer,
		InputSchema:  json.RawMessage(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["name","city"],"properties":{"name":{"type":"string"},"city":{"type":"string"}}}`),
	}}
}

func listOrders(args map[string]string) (any, error) {
	found := []order{}
	for _, o := range shopOrders() {
		if args["month"] == "" || o.Month == args["month"] {
			found = append(found, o)
		}
	}
	return map[string]any{"orders": found}, nil
}

func getCustomer(args map[string]string) (any, error) {
	for _, c := range shopCustomers() {
		if strings.EqualFold(c.Name, args["name"]) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no customer %.40q", args["name"])
}

// maxNotes is how many notes a notebook keeps.
const maxNotes = 1000

type note struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// notebook has the notes of one session.
type notebook struct{ notes []note }

func (b *notebook) tools() []sampleTool {
	return []sampleTool{{
		Name: "add_note", Description: "Add a note with a title.", Annotations: map[string]bool{"destructiveHint": false, "openWorldHint": false}, call: b.add,
		InputSchema:  json.RawMessage(`{"type":"object","required":["title","text"],"properties":{"title":{"type":"string"},"text":{"type":"string"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["notes"],"properties":{"notes":{"type":"integer"}}}`),
	}, {
		Name: "list_notes", Description: "List all notes.", Annotations: map[string]bool{"readOnlyHint": true, "openWorldHint": false}, call: b.list,
		InputSchema:  json.RawMessage(`{"type":"object","properties":{}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["notes"],"properties":{"notes":{"type":"array","items":{"type":"object","required":["title","text"],"properties":{"title":{"type":"string"},"text":{"type":"string"}}}}}}`),
	}}
}

func (b *notebook) add(args map[string]string) (any, error) {
	if len(b.notes) == maxNotes {
		return nil, fmt.Errorf("there are %d notes already", maxNotes)
	}
	b.notes = append(b.notes, note{args["title"], args["text"]})
	return map[string]any{"notes": len(b.notes)}, nil
}

func (b *notebook) list(map[string]string) (any, error) {
	return map[string]any{"notes": append([]note{}, b.notes...)}, nil
}
