package suite

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Data is what the world is made of, the same each time. Answers are worked out from it.
type Data struct {
	Customers []Customer
	Products  []Product
	// Orders are in files, a file for each month; Payments, Tickets and Customers in the database.
	Orders   []Order
	Payments []Payment
	Tickets  []Ticket
	Requests []Request
	Notes    []Note
	Commits  []Commit
	People   []Person
	Services []Service
	// Pairs are the lines of pairs.csv.
	Pairs [][2]int
}

// Customer is a row of the table customers.
type Customer struct {
	ID                  int
	Name, City, Segment string
}

// Product is an element of products.json.
type Product struct {
	SKU      string  `json:"sku"`
	Name     string  `json:"name"`
	Category string  `json:"category"`
	Weight   float64 `json:"weight_kg"`
}

// Order is a line of orders/2026-MM.csv. Prices are in cents, and written with two decimals.
type Order struct {
	ID, Customer int
	Day          time.Time
	SKU          string
	Quantity     int
	Cents        int
}

// Payment is a row of the table payments. Some orders have none, some less than they cost.
type Payment struct {
	Order, Cents int
	Day          time.Time
}

// Ticket is a row of the table tickets.
type Ticket struct {
	ID, Customer      int
	Opened            time.Time
	Status, Priority  string
	Subject, Assignee string
}

// Request is a line of logs/app-N.log.
type Request struct {
	File, Status, Millis int
	At                   time.Time
	ID, Path, Level      string
}

// Note is a file notes/NAME.md.
type Note struct {
	Name, Title string
	Todo, Done  []string
}

// Commit is a commit of the repository on main, the oldest first.
type Commit struct {
	Author, Subject, File string
	At                    time.Time
}

// Person is an entity of the memory server, of type person.
type Person struct{ Name, Team, City string }

// Service is an entity of type service, owned by a team and on call with a person.
type Service struct {
	Name, Team, OnCall string
	Tier               int
	Needs              []string
}

// How much there is of everything.
const (
	customers = 400
	products  = 120
	perMonth  = 250
	tickets   = 1200
	logs      = 5
	perLog    = 400
	notes     = 30
	commits   = 60
	people    = 40
	services  = 24
	pairs     = 20
)

type maker struct{ *rand.Rand }

func (m maker) pick(from ...string) string { return from[m.IntN(len(from))] }

func (m maker) day() time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, m.IntN(365))
}

// NewData makes the data, which is always the same.
func NewData() *Data {
	m := maker{rand.New(rand.NewPCG(11, 2026))}
	d := &Data{}
	d.shop(m)
	d.office(m)
	for range pairs {
		d.Pairs = append(d.Pairs, [2]int{1000 + m.IntN(90000), 1000 + m.IntN(90000)})
	}
	return d
}

func (d *Data) shop(m maker) {
	for i := range customers {
		d.Customers = append(d.Customers, Customer{
			ID: 1000 + i, Name: m.pick("Abela", "Borg", "Camilleri", "Debono", "Ellul", "Farrugia", "Grech", "Hili") + " " + m.pick("Trading", "Foods", "Marine", "Print", "Labs", "Motors") + fmt.Sprintf(" %d", i+1),
			City: m.pick("Valletta", "Sliema", "Mdina", "Rabat", "Mosta", "Gozo"), Segment: m.pick("retail", "wholesale", "public", "online"),
		})
	}
	for i := range products {
		d.Products = append(d.Products, Product{
			SKU: fmt.Sprintf("SKU-%03d", i+1), Name: m.pick("steel", "oak", "linen", "glass", "copper") + " " + m.pick("bracket", "panel", "lamp", "valve", "hinge", "shelf"),
			Category: m.pick("hardware", "lighting", "textile", "plumbing"), Weight: float64(1+m.IntN(400)) / 10,
		})
	}
	for i := range 12 * perMonth {
		o := Order{
			ID: 50001 + i, Customer: d.Customers[m.IntN(customers)].ID, SKU: d.Products[m.IntN(products)].SKU,
			Day: time.Date(2026, time.Month(i/perMonth+1), 1+m.IntN(28), 0, 0, 0, 0, time.UTC), Quantity: 1 + m.IntN(20), Cents: 150 + m.IntN(20000),
		}
		d.Orders = append(d.Orders, o)
		total := o.Quantity * o.Cents
		switch m.IntN(20) {
		case 0: // never paid
		case 1:
			d.Payments = append(d.Payments, Payment{Order: o.ID, Cents: total - 1 - m.IntN(total/2), Day: o.Day.AddDate(0, 0, m.IntN(30))})
		default:
			d.Payments = append(d.Payments, Payment{Order: o.ID, Cents: total, Day: o.Day.AddDate(0, 0, m.IntN(30))})
		}
	}
	for i := range tickets {
		d.Tickets = append(d.Tickets, Ticket{
			ID: i + 1, Customer: d.Customers[m.IntN(customers)].ID, Opened: m.day(), Status: m.pick("open", "open", "waiting", "closed", "closed", "closed"),
			Priority: m.pick("low", "normal", "normal", "high", "urgent"), Subject: m.pick("late delivery", "wrong item", "invoice missing", "damaged on arrival", "cannot log in", "refund asked for"),
			Assignee: fmt.Sprintf("agent-%02d", 1+m.IntN(12)),
		})
	}
}

func (d *Data) office(m maker) {
	at := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	for file := range logs {
		for range perLog {
			at = at.Add(time.Duration(1+m.IntN(90)) * time.Second)
			r := Request{File: file + 1, At: at, ID: fmt.Sprintf("r%08x", m.Uint32()), Path: m.pick("/cart", "/login", "/search", "/orders", "/pay", "/help"), Status: 200, Level: "INFO", Millis: 3 + m.IntN(180)}
			switch m.IntN(25) {
			case 0:
				r.Status, r.Level, r.Millis = 500+m.IntN(4), "ERROR", 900+m.IntN(4000)
			case 1, 2:
				r.Status, r.Level = 404, "WARN"
			}
			d.Requests = append(d.Requests, r)
		}
	}
	for i := range notes {
		n := Note{Name: fmt.Sprintf("note-%02d", i+1), Title: m.pick("Planning", "Review", "Retro", "Call", "Visit") + " " + m.day().Format(time.DateOnly)}
		for range 2 + m.IntN(4) {
			item := m.pick("send", "check", "draft", "order", "book") + " the " + m.pick("contract", "invoice", "slides", "numbers", "samples") + " for " + m.pick("Mosta", "Gozo", "Sliema", "the board", "legal")
			if m.IntN(3) == 0 {
				n.Todo = append(n.Todo, item)
			} else {
				n.Done = append(n.Done, item)
			}
		}
		d.Notes = append(d.Notes, n)
	}
	at = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for i := range commits {
		at = at.Add(time.Duration(3+m.IntN(60)) * time.Hour)
		area := m.pick("cart", "login", "search", "orders", "pay")
		d.Commits = append(d.Commits, Commit{
			Author: m.pick("Ada Abela", "Ben Borg", "Cleo Camilleri", "Dan Debono"), At: at, File: "src/" + area + ".txt",
			Subject: m.pick("fix", "add", "change", "drop") + " " + m.pick("timeout", "retry", "cache", "limit", "index") + " in " + area + fmt.Sprintf(" (#%d)", 100+i),
		})
	}
	teams := []string{"atlas", "borealis", "cygnus", "draco", "eridanus"}
	for i := range people {
		d.People = append(d.People, Person{Name: m.pick("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo") + fmt.Sprintf(" %s-%02d", m.pick("Abela", "Borg", "Grech", "Ellul"), i+1), Team: m.pick(teams...), City: m.pick("Valletta", "Sliema", "Mdina", "Gozo")})
	}
	for i := range services {
		s := Service{Name: fmt.Sprintf("svc-%s-%02d", m.pick("auth", "cart", "mail", "pay", "stock"), i+1), Team: m.pick(teams...), OnCall: d.People[m.IntN(people)].Name, Tier: 1 + m.IntN(3)}
		for range min(i, m.IntN(3)) {
			s.Needs = append(s.Needs, d.Services[m.IntN(i)].Name)
		}
		d.Services = append(d.Services, s)
	}
}
