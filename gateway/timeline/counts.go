package timeline

import (
	"math"
	"slices"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// Program is what is counted of a program.
type Program struct {
	Status   sandbox.Status
	Ended    time.Time
	Duration time.Duration
	// Client is the name and version of its client, "" for unknown.
	Client string
}

// Counts are what was counted in one interval.
type Counts struct {
	// Ended has the number of programs by status.
	Ended map[string]int `json:"ended,omitempty"`
	// Calls is the number of tool calls, FailedCalls that of those without a good result.
	Calls       int `json:"calls,omitempty"`
	FailedCalls int `json:"failed_calls,omitempty"`
	// Durations has the number of programs by the class of their duration, see [classOf].
	Durations map[int]int `json:"durations,omitempty"`
	// Money is the price of the models that Sallyport called, in millionths.
	Money int64 `json:"money_millionths,omitempty"`
	// Queue is the highest number of programs that waited for their turn.
	Queue int `json:"queue,omitempty"`
	// Tools and Clients have the number of calls and programs by name; "" has those of further and unknown names.
	Tools map[string]int `json:"tools,omitempty"`
	// ByTool has more about the calls of each tool, by its name.
	ByTool map[string]*ToolCounts `json:"by_tool,omitempty"`

	made    int // as in ToolCounts, if these are the counts of one tool
	bytes   int64
	Clients map[string]int `json:"clients,omitempty"`
}

// maxNames is the maximum number of names in an interval, maxMerged that in a sum of intervals, maxName that of characters of each.
const maxNames, maxMerged, maxName = 100, 5000, 120

func (c *Counts) addProgram(p Program) {
	addTo(&c.Ended, string(p.Status), 1, maxNames)
	addTo(&c.Clients, p.Client, 1, maxNames)
	addClasses(&c.Durations, map[int]int{classOf(p.Duration): 1})
}

func (c *Counts) addCall(name, outcome string) {
	c.Calls++
	if outcome != "ok" {
		c.FailedCalls++
	}
	addTo(&c.Tools, name, 1, maxNames)
	if outcome != "ok" {
		c.addTool(name, ToolCounts{Failed: 1}, maxNames)
	}
}

// ToolCounts are counts of the calls of one tool in an interval.
type ToolCounts struct {
	// Failed is the number of calls without a good result.
	Failed int `json:"failed,omitempty"`
	// Made is the number of calls that reached the upstream, Bytes the size of their results together, Durations the number of them by
	// the class of their duration.
	Made      int         `json:"made,omitempty"`
	Bytes     int64       `json:"bytes,omitempty"`
	Durations map[int]int `json:"durations,omitempty"`
}

// addMade counts a call that reached the upstream.
func (c *Counts) addMade(name string, took time.Duration, bytes int64) {
	c.addTool(name, ToolCounts{Made: 1, Bytes: bytes, Durations: map[int]int{classOf(took): 1}}, maxNames)
}

// addTool adds the counts of a tool. Those of further and unknown names are not kept.
func (c *Counts) addTool(name string, more ToolCounts, most int) {
	name = sanitize.Line(name, maxName)
	one := c.ByTool[name]
	if name == "" || one == nil && len(c.ByTool) >= most {
		return
	}
	if one == nil {
		one = &ToolCounts{}
		if c.ByTool == nil {
			c.ByTool = map[string]*ToolCounts{}
		}
		c.ByTool[name] = one
	}
	one.Failed, one.Made, one.Bytes = one.Failed+more.Failed, one.Made+more.Made, one.Bytes+more.Bytes
	addClasses(&one.Durations, more.Durations)
}

// merge adds other counts. Those of a store may be of any size, so names are limited here also.
func (c *Counts) merge(o Counts) {
	c.Calls, c.FailedCalls, c.Queue = c.Calls+o.Calls, c.FailedCalls+o.FailedCalls, max(c.Queue, o.Queue)
	c.made, c.bytes, c.Money = c.made+o.made, c.bytes+o.bytes, c.Money+o.Money
	addClasses(&c.Durations, o.Durations)
	for name, more := range o.ByTool {
		if more != nil {
			c.addTool(name, *more, maxMerged)
		}
	}
	for _, pair := range []struct {
		to   *map[string]int
		from map[string]int
	}{{&c.Ended, o.Ended}, {&c.Tools, o.Tools}, {&c.Clients, o.Clients}} {
		for _, name := range namesOf(pair.from) {
			addTo(pair.to, name, pair.from[name], maxMerged)
		}
	}
}

// addTo adds to the count of a name. Beyond so many names, new ones count as "".
func addTo(to *map[string]int, name string, n, most int) {
	name = sanitize.Line(name, maxName)
	if *to == nil {
		*to = map[string]int{}
	}
	if _, known := (*to)[name]; !known && len(*to) >= most {
		name = ""
	}
	(*to)[name] += n
}

// addClasses adds numbers by class. Those of a store may have classes that do not exist.
func addClasses(to *map[int]int, more map[int]int) {
	if *to == nil {
		*to = map[int]int{}
	}
	for class, n := range more {
		if class >= 0 && class <= maxClass {
			(*to)[class] += n
		}
	}
}

// Durations are counted in classes, so that counts of several intervals can be added: class i is up to 2^(i/4) ms, the last one is
// everything above. A percentile is thus right to 10 %.
const maxClass = 88

func classOf(d time.Duration) int {
	ms := float64(d) / float64(time.Millisecond)
	if ms <= 1 {
		return 0
	}
	return min(int(math.Ceil(4*math.Log2(ms))), maxClass)
}

// percentile returns a percentile of the durations in milliseconds, by the nearest rank: the middle of its class.
func percentile(durations map[int]int, p float64) float64 {
	total := 0
	for _, n := range durations {
		total += n
	}
	rank := int(math.Ceil(p / 100 * float64(total)))
	for class := range maxClass + 1 {
		if rank -= durations[class]; rank <= 0 && total > 0 {
			return math.Exp2((float64(class) - .5) / 4)
		}
	}
	return 0
}

// ofTool returns the counts of one tool, with its durations in place of those of programs.
func (c Counts) ofTool(name string) Counts {
	of := Counts{Calls: c.Tools[name]}
	if one := c.ByTool[name]; one != nil {
		of.FailedCalls, of.Durations, of.made, of.bytes = one.Failed, one.Durations, one.Made, one.Bytes
	}
	return of
}

// meanResult returns the mean size of the results of one tool, see ofTool.
func (c Counts) meanResult() int64 { return c.bytes / int64(max(c.made, 1)) }

// failures returns the numbers of programs that failed, by status.
func (c Counts) failures() (sum int, by map[string]int) {
	by = map[string]int{}
	for status, n := range c.Ended {
		if status != string(sandbox.OK) && status != string(execution.Held) {
			by[status] += n
			sum += n
		}
	}
	return sum, by
}

// Share is how often a name was counted.
type Share struct {
	// Name is "" for further and unknown names.
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// maxShares is the maximum number of names in a report.
const maxShares = 8

// top returns the names with the highest counts, and the rest as one without a name.
func top(counts map[string]int) []Share {
	list, rest := []Share{}, counts[""]
	for _, name := range namesOf(counts) {
		if name == "" {
			continue
		}
		if len(list) == maxShares {
			rest += counts[name]
			continue
		}
		list = append(list, Share{name, counts[name]})
	}
	if rest > 0 {
		list = append(list, Share{"", rest})
	}
	return list
}

// namesOf returns the names, the highest count first.
func namesOf(counts map[string]int) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		if a < b {
			return -1
		}
		return 1
	})
	return names
}
