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
	// Queue is the highest number of programs that waited for their turn.
	Queue int `json:"queue,omitempty"`
	// Tools and Clients have the number of calls and programs by name; "" has those of further and unknown names.
	Tools   map[string]int `json:"tools,omitempty"`
	Clients map[string]int `json:"clients,omitempty"`
}

// maxNames is the maximum number of names in an interval, maxMerged that in a sum of intervals, maxName that of characters of each.
const maxNames, maxMerged, maxName = 100, 5000, 120

func (c *Counts) addProgram(p Program) {
	addTo(&c.Ended, string(p.Status), 1, maxNames)
	addTo(&c.Clients, p.Client, 1, maxNames)
	c.addDuration(classOf(p.Duration), 1)
}

func (c *Counts) addCall(name, outcome string) {
	c.Calls++
	if outcome != "ok" {
		c.FailedCalls++
	}
	addTo(&c.Tools, name, 1, maxNames)
}

// merge adds other counts. Those of a store may be of any size, so names are limited here also.
func (c *Counts) merge(o Counts) {
	c.Calls, c.FailedCalls, c.Queue = c.Calls+o.Calls, c.FailedCalls+o.FailedCalls, max(c.Queue, o.Queue)
	for class, n := range o.Durations {
		if class >= 0 && class <= maxClass {
			c.addDuration(class, n)
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

func (c *Counts) addDuration(class, n int) {
	if c.Durations == nil {
		c.Durations = map[int]int{}
	}
	c.Durations[class] += n
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
