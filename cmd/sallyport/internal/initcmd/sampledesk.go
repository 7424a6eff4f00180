package initcmd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// deskServers are the sample servers of the examples: crm has the contacts and tickets of a support desk, mail sends to
// nobody. try and init do not offer them.
func deskServers() []string { return []string{"crm", "mail"} }

type contact struct {
	ID    string  `json:"id"`
	Name  string  `json:"name"`
	Email string  `json:"email"`
	Phone string  `json:"phone"`
	City  string  `json:"city"`
	Plan  string  `json:"plan"`
	Spend float64 `json:"monthly_spend"`
}

type ticket struct {
	ID       string `json:"id"`
	Contact  string `json:"contact"`
	Subject  string `json:"subject"`
	Severity string `json:"severity"`
	Status   string `json:"status"`
	Hours    int    `json:"hours_open"`
}

// contactCount and ticketCount are the sizes of the sample data.
const contactCount, ticketCount = 120, 180

// contacts returns the contacts, always the same.
func contacts() []contact {
	first, last := strings.Fields("Ann Ben Carla Dario Elena Felix Greta Hugo Ines Jonas"), strings.Fields("Abela Borg Cauchi Debono Ellul Farrugia Grech Haber Inguanez Jaccarini Klein Lewis")
	all := make([]contact, contactCount)
	for i := range all {
		f, l := first[i%len(first)], last[(i/len(first)+i)%len(last)]
		all[i] = contact{
			ID: fmt.Sprintf("c-%03d", i+1), Name: f + " " + l, Email: strings.ToLower(f+"."+l) + "@example.org", Phone: fmt.Sprintf("+356 2%03d %04d", i*7%1000, i*311%10000),
			City: []string{"Valletta", "Mdina", "Sliema", "Gozo"}[i*7/3%4], Plan: []string{"free", "team", "free", "enterprise", "team"}[i%5], Spend: float64(i*i%97*5) + 0.5,
		}
	}
	return all
}

// tickets returns the tickets, always the same.
func tickets() []ticket {
	subjects := []string{"cannot log in", "export is empty", "invoice is wrong", "search is slow", "webhook fails", "question about limits"}
	all := make([]ticket, ticketCount)
	for i := range all {
		all[i] = ticket{
			ID: fmt.Sprintf("t-%03d", i+1), Contact: fmt.Sprintf("c-%03d", i*i%contactCount+1), Subject: subjects[i%len(subjects)],
			Severity: []string{"low", "high", "normal", "low", "normal"}[i%5], Status: []string{"open", "closed", "open"}[i%3], Hours: i * 13 % 200,
		}
	}
	return all
}

// contactSchema and ticketSchema are the JSON schemas of one of them.
const (
	contactSchema = `{"type":"object","required":["id","name","email","phone","city","plan","monthly_spend"],"properties":{"id":{"type":"string"},"name":{"type":"string"},"email":{"type":"string"},"phone":{"type":"string"},"city":{"type":"string"},"plan":{"type":"string","enum":["free","team","enterprise"]},"monthly_spend":{"type":"number"}}}`
	ticketSchema  = `{"type":"object","required":["id","contact","subject","severity","status","hours_open"],"properties":{"id":{"type":"string"},"contact":{"type":"string"},"subject":{"type":"string"},"severity":{"type":"string","enum":["low","normal","high"]},"status":{"type":"string","enum":["open","closed"]},"hours_open":{"type":"integer"}}}`
)

func listSchema(name, item string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"object","required":[%q],"properties":{%q:{"type":"array","items":%s}}}`, name, name, item))
}

func crmTools() []sampleTool {
	read := map[string]bool{"readOnlyHint": true, "openWorldHint": false}
	return []sampleTool{{
		Name: "list_contacts", Description: "List the contacts of the customers, of one city or of all.", Annotations: read, call: listContacts,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`), OutputSchema: listSchema("contacts", contactSchema),
	}, {
		Name: "get_contact", Description: "Get one contact by id.", Annotations: read, call: getContact,
		InputSchema: json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`), OutputSchema: json.RawMessage(contactSchema),
	}, {
		Name: "list_tickets", Description: "List the support tickets with a status, or all.", Annotations: read, call: listTickets,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"status":{"type":"string","enum":["open","closed"]}}}`), OutputSchema: listSchema("tickets", ticketSchema),
	}}
}

func listContacts(args map[string]string) (any, error) {
	all := slices.DeleteFunc(contacts(), func(c contact) bool { return args["city"] != "" && c.City != args["city"] })
	return map[string]any{"contacts": all}, nil
}

func getContact(args map[string]string) (any, error) {
	for _, c := range contacts() {
		if c.ID == args["id"] {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no contact %.40q", args["id"])
}

func listTickets(args map[string]string) (any, error) {
	all := slices.DeleteFunc(tickets(), func(t ticket) bool { return args["status"] != "" && t.Status != args["status"] })
	return map[string]any{"tickets": all}, nil
}

// postbox counts what one session sends.
type postbox struct{ sent int }

func (p *postbox) tools() []sampleTool {
	return []sampleTool{{
		Name: "send_mail", Description: "Send a mail to one address.", Annotations: map[string]bool{"destructiveHint": false, "openWorldHint": true}, call: p.send,
		InputSchema:  json.RawMessage(`{"type":"object","required":["to","subject","text"],"properties":{"to":{"type":"string"},"subject":{"type":"string"},"text":{"type":"string"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["number","domain"],"properties":{"number":{"type":"integer"},"domain":{"type":"string"}}}`),
	}}
}

// send sends nothing. Its result says which domain the address has, so that one sees whether it is an address.
func (p *postbox) send(args map[string]string) (any, error) {
	_, domain, ok := strings.Cut(args["to"], "@")
	if !ok {
		return nil, fmt.Errorf("%.40q is not an address", args["to"])
	}
	p.sent++
	return map[string]any{"number": p.sent, "domain": domain}, nil
}
