package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/bench/firsttry/fixture"
)

// task is what a program should find out or do.
type task struct {
	prompt string
	want   any
	// writes are the calls that change something, in the form of [fixture.World.Writes].
	writes []string
}

// repo is the only repository of the tracker.
const repo = "octo/hello"

// tasks returns all tasks by name, with answers that are computed from the data.
func tasks(w *fixture.World) map[string]task {
	all := map[string]task{
		"sum-squares": {prompt: "The sum of the squares of 1 to 100", want: 338350},
		"days":        {prompt: "Days from 2026-01-15 to 2026-03-01", want: 45},
		"primes":      {prompt: "The primes below 20", want: []int{2, 3, 5, 7, 11, 13, 17, 19}},
	}
	for _, more := range []map[string]task{trackerTasks(w), trackerWrites(), mailTasks(w), storeTasks(w), calendarTasks(w)} {
		maps.Copy(all, more)
	}
	return all
}

func isOpen(i fixture.Issue) bool { return i.State == "open" }

func trackerTasks(w *fixture.World) map[string]task {
	open := filter(w.Issues, isOpen)
	bugs := filter(open, func(i fixture.Issue) bool { return i.Has("bug") })
	crashes := filter(w.Issues, func(i fixture.Issue) bool { return strings.Contains(i.Title, "crash") })
	assigned := map[string]int{}
	for _, i := range open {
		if i.Assignee != nil {
			assigned[i.Assignee.Login]++
		}
	}
	return map[string]task{
		"open-count":    {prompt: "How many issues of octo/hello are open?", want: len(open)},
		"many-or-few":   {prompt: `"many" if octo/hello has more than 20 open issues on its first page, else "few"`, want: "many"},
		"open-bugs":     {prompt: "How many open issues of octo/hello have the label bug?", want: len(bugs)},
		"bug-numbers":   {prompt: "The numbers of the open bugs, sorted", want: numbersOf(bugs)},
		"first-title":   {prompt: "The title of ticket 12", want: w.Issues[11].Title},
		"most-comments": {prompt: "The number of the first open issue with the most comments", want: slices.MaxFunc(open, func(a, b fixture.Issue) int { return a.Comments - b.Comments }).Number},
		"unassigned":    {prompt: "How many open issues have no assignee?", want: len(filter(open, func(i fixture.Issue) bool { return i.Assignee == nil }))},
		"by-assignee":   {prompt: "Open issues of each assignee, as an object with sorted keys", want: assigned},
		"assignee":      {prompt: "The login of the assignee of ticket 5", want: w.Issues[4].Assignee.Login},
		"no-assignee":   {prompt: `The login of the assignee of ticket 4, or "nobody"`, want: "nobody"},
		"label-names":   {prompt: "The names of the labels of ticket 35", want: []string{"bug", "docs"}},
		"labels":        {prompt: "How many labels has octo/hello?", want: len(w.Labels)},
		"last-label":    {prompt: "The last label of octo/hello", want: w.Labels[len(w.Labels)-1]},
		"crash-count":   {prompt: "How many issues have crash in their title, counted by reading all pages?", want: len(crashes)},
		"crash-numbers": {prompt: "The sum of the numbers of the issues with crash in their title", want: sum(numbersOf(crashes))},
		"comments-sum":  {prompt: "The sum of the comments of tickets 1 to 10 of octo/hello", want: sum(commentsOf(w.Issues[:10]))},
		"existing":      {prompt: "Which of the tickets 5, 9999 and 10 exist?", want: []int{5, 10}},
		"closed-state":  {prompt: "The state of ticket 9", want: w.Issues[8].State},
		"created":       {prompt: "The day on which ticket 7 was created, as YYYY-MM-DD", want: w.Issues[6].CreatedAt[:10]},
		"newest":        {prompt: "The number of the newest open issue", want: open[len(open)-1].Number},
	}
}

func trackerWrites() map[string]task {
	issue := func(more map[string]any) string {
		args := map[string]any{"repo": repo, "title": "Broken link"}
		maps.Copy(args, more)
		return fixture.Write("create_issue", args)
	}
	comment := func(n int) string {
		return fixture.Write("add_comment", map[string]any{"repo": repo, "issue_number": n, "body": "ping"})
	}
	return map[string]task{
		"create":         {prompt: "Create an issue Broken link and answer its number", want: 64, writes: []string{issue(nil)}},
		"create-labeled": {prompt: "Create an issue Broken link with the label bug and answer its number", want: 64, writes: []string{issue(map[string]any{"labels": []string{"bug"}})}},
		"comments":       {prompt: `Comment "ping" on the tickets 5, 10 and 20, and answer how many comments were written`, want: 3, writes: []string{comment(10), comment(20), comment(5)}},
		"comment-id":     {prompt: `Comment "ping" on ticket 5 and answer the comment's exact id`, want: fmt.Sprint(fixture.FirstOrder + 2), writes: []string{comment(5)}},
		"close":          {prompt: "Close ticket 5 as not planned and answer its state", want: "closed", writes: []string{fixture.Write("close_issue", map[string]any{"repo": repo, "issue_number": 5, "reason": "not_planned"})}},
	}
}

func mailTasks(w *fixture.World) map[string]task {
	unread := filter(w.Messages, func(m fixture.Message) bool { return m.Unread })
	sizes := 0
	for _, m := range w.Messages {
		sizes += m.SizeEstimate
	}
	send := func(more map[string]any) []string {
		args := map[string]any{"to": []string{"ann@example.com"}, "subject": "Hi", "body": "Hello"}
		maps.Copy(args, more)
		return []string{fixture.Write("sendMessage", args)}
	}
	return map[string]task{
		"unread":        {prompt: "How many invoices are unread, on all pages?", want: len(unread)},
		"invoice-count": {prompt: "How many messages match invoice, on all pages?", want: len(w.Messages)},
		"first-five":    {prompt: "The subjects of the first five messages that match invoice", want: subjectsOf(w.Messages[:5])},
		"sizes":         {prompt: "The sum of the sizes of all messages that match invoice", want: sizes},
		"subject":       {prompt: "The subject of message m-3", want: w.Messages[2].Subject},
		"amount":        {prompt: "The amount due in message m-3, as a number", want: 3.5},
		"send":          {prompt: "Send Hi/Hello to ann@example.com and answer the status", want: "sent", writes: send(nil)},
		"send-cc":       {prompt: "Send Hi/Hello to ann@example.com with a copy to bo@example.com and answer the status", want: "sent", writes: send(map[string]any{"ccRecipients": []string{"bo@example.com"}})},
		"mark-read": {prompt: "Mark m-2 and m-4 as read and answer how many were", want: 2, writes: []string{
			fixture.Write("markRead", map[string]any{"messageIds": []string{"m-2", "m-4"}}),
		}},
	}
}

func storeTasks(w *fixture.World) map[string]task {
	first := filter(w.Orders, func(o fixture.Order) bool { return o.CustomerID == "c-1" })
	paid := filter(first, func(o fixture.Order) bool { return o.Status == "paid" })
	cents, large, names := 0, 0, []string{}
	for _, o := range paid {
		cents += o.Cents
	}
	for _, o := range first {
		if o.Cents > 10000 {
			large++
		}
	}
	for _, c := range w.Customers {
		names = append(names, c.Email)
	}
	refund := fixture.Write("refund_order", map[string]any{"order_id": w.Orders[0].OrderID})
	return map[string]task{
		"paid-total":    {prompt: "The total of the paid orders of c-1", want: fmt.Sprintf("%d.%02d", cents/100, cents%100)},
		"large-orders":  {prompt: "How many orders of c-1 are above 100?", want: large},
		"order-ids":     {prompt: "How many different order ids has c-1?", want: len(first)},
		"last-order":    {prompt: "The exact id of the last order of c-1", want: fmt.Sprint(first[len(first)-1].OrderID)},
		"order-status":  {prompt: "How many orders of c-1 are paid?", want: len(paid)},
		"refund":        {prompt: "Refund the first order of c-1 and answer what was refunded", want: w.Orders[0].Total, writes: []string{refund}},
		"flag":          {prompt: `Is the flag beta on? "on" or "off"`, want: "off"},
		"theme":         {prompt: `The flag theme, or "default" where it is null`, want: "default"},
		"retries":       {prompt: `The flag retries plus 1`, want: 1},
		"sku":           {prompt: "The SKU of the product cable", want: "007"},
		"stock":         {prompt: "The stock of product 007 plus 1", want: 8},
		"in-stock":      {prompt: `Is product 012 in stock? "yes" or "no"`, want: "no"},
		"cheapest":      {prompt: "The name of the cheapest product", want: "cable"},
		"above-20":      {prompt: "The names of the products that cost more than 20", want: []string{"lamp", "desk", "chair"}},
		"stock-sum":     {prompt: "The sum of the stock of all products, from the CSV export", want: 62},
		"csv-rows":      {prompt: "How many products has the CSV export?", want: len(w.Products)},
		"postcode":      {prompt: "The postcode of c-1", want: "00742"},
		"vip":           {prompt: `Is c-1 a VIP? "yes" or "no"`, want: "no"},
		"coupon":        {prompt: `The coupon of c-1, or "none"`, want: "none"},
		"emails":        {prompt: "The e-mail addresses of c-1, c-2 and c-3", want: names},
		"home-products": {prompt: "The names of the products of category home", want: []string{"lamp", "desk", "chair"}},
		"set-price":     {prompt: "Set the price of 007 to 8.5 and answer done", want: "done", writes: []string{fixture.Write("set_price", map[string]any{"sku": "007", "price": 8.5})}},
	}
}

func calendarTasks(w *fixture.World) map[string]task {
	accepted := 0
	for _, e := range w.Events {
		for _, a := range e.Attendees {
			if a.ResponseStatus == "accepted" {
				accepted++
			}
		}
	}
	moment := func(hour int) map[string]any {
		return map[string]any{"dateTime": fmt.Sprintf("2026-03-10T%02d:00:00Z", hour)}
	}
	event := map[string]any{"summary": "Review", "start": moment(9), "end": moment(10)}
	invited := map[string]any{"summary": "Review", "start": moment(9), "end": moment(10), "attendees": []any{map[string]any{"email": "p1@example.com"}}}
	return map[string]task{
		"events":        {prompt: "How many events start on 2026-03-03?", want: 3},
		"first-event":   {prompt: "When does the first event on 2026-03-02 start?", want: w.Events[0].Start.DateTime},
		"accepted":      {prompt: "How many invitations from 2026-03-01 to 2026-04-01 were accepted?", want: accepted},
		"create-event":  {prompt: "Create an event Review on 2026-03-10, 9 to 10 UTC, and answer its status", want: "confirmed", writes: []string{fixture.Write("createEvent", event)}},
		"invite":        {prompt: "The same with p1@example.com invited", want: "confirmed", writes: []string{fixture.Write("createEvent", invited)}},
		"event-lengths": {prompt: "The minutes of the events on 2026-03-02, summed up", want: 180},
	}
}

func filter[T any](list []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !is(v) })
}

func numbersOf(issues []fixture.Issue) (list []int) {
	for _, i := range issues {
		list = append(list, i.Number)
	}
	return list
}

func commentsOf(issues []fixture.Issue) (list []int) {
	for _, i := range issues {
		list = append(list, i.Comments)
	}
	return list
}

func subjectsOf(messages []fixture.Message) (list []string) {
	for _, m := range messages {
		list = append(list, m.Subject)
	}
	return list
}

func sum(list []int) (s int) {
	for _, n := range list {
		s += n
	}
	return s
}
