package config

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sallyport/internal/redact"
	"sallyport/internal/reference"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// LanguageModel is a language model that writes programs for tasks.
type LanguageModel struct {
	// API is the protocol of the endpoint: openai for all compatible servers, azure, anthropic, or sampling for the model of
	// the client that requests the task; default openai.
	API string
	// URL is the base of the API, such as http://localhost:11434/v1; for azure https://NAME.openai.azure.com. Default that of
	// OpenAI or Anthropic.
	URL string
	// Model is the name of the model at the endpoint.
	Model string
	// Deployment is the name of the deployment, for azure.
	Deployment string
	// APIVersion is the version of the API, for azure; default 2024-10-21.
	APIVersion string
	// Key is the key of the endpoint, a secret.
	Key Secret
	// Headers are sent with every request.
	Headers Secrets
	// Answer bounds an answer, in tokens; default 4096.
	Answer int
	// Temperature is sent if the model takes one, from 0 to 2; default none is sent.
	Temperature *float64
	// Timeout bounds an answer with all retries; default 3m.
	Timeout time.Duration
	// Price is the price of tokens, for budgets and records; default 0.
	Price ModelPrice
	// Problem describes references without a value, "" if all have one. Unless it is "", the model must not be used.
	Problem string
}

// ModelPrice is the price of a million tokens, in any currency.
type ModelPrice struct {
	// Input is the price of a million tokens that the model reads; default 0.
	Input float64
	// Cached is the price of a million tokens that it reads from a cache; default that of Input.
	Cached float64
	// Output is the price of a million tokens that it writes; default 0.
	Output float64
}

// Tasks configures tasks in words.
type Tasks struct {
	// Model is the name of the model that is used if a task names none; default "default", or the only one.
	Model string
	// Turns bounds the answers of the model for one task; default 16.
	Turns int
	// Repairs bounds the failed programs of one task in a row; default 4.
	Repairs int
	// Tokens bounds the tokens of one task; default 200000.
	Tokens int
	// Money bounds the price of one task, in the currency of the prices; default 0, no bound.
	Money float64
	// Time bounds one task, without waits for people; default 10m.
	Time time.Duration
	// Parallel bounds the tasks that run at once; default 4.
	Parallel int
	// Daily bounds all tasks of one principal in one day (UTC).
	Daily DailyTasks
	// Keep is how long a task is kept after its end; default 30 days.
	Keep time.Duration
}

// DailyTasks are the bounds of a day. 0 of one is no bound.
type DailyTasks struct {
	// Tokens bounds tokens; default 2000000.
	Tokens int
	// Money bounds the price; default 0, no bound.
	Money float64
	// Time bounds the time of tasks; default 0, no bound.
	Time time.Duration
}

func defaultTasks() Tasks {
	return Tasks{Turns: 16, Repairs: 4, Tokens: 200_000, Time: 10 * time.Minute, Parallel: 4, Keep: 30 * 24 * time.Hour, Daily: DailyTasks{Tokens: 2_000_000}}
}

// The APIs of models.
const (
	APIOpenAI    = "openai"
	APIAzure     = "azure"
	APIAnthropic = "anthropic"
	APISampling  = "sampling"
)

var modelAPIs = []string{APIOpenAI, APIAzure, APIAnthropic, APISampling}

// modelName matches the names of models in the settings.
var modelName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// defaultModel holds the defaults of a model.
func defaultModel() LanguageModel {
	return LanguageModel{API: APIOpenAI, Answer: 4096, Timeout: 3 * time.Minute}
}

func (d *decoder) models(at path, n *yaml.Node, c *Config) {
	c.Models = map[string]LanguageModel{}
	d.Each(at, n, func(at path, key, value *yaml.Node) {
		m := defaultModel()
		d.model(at, value, &m)
		c.Models[key.Value] = m
	})
}

func (d *decoder) model(at path, n *yaml.Node, m *LanguageModel) {
	d.onMissing = func(_ path, _ *yaml.Node, b reference.Fault) { m.Problem = withProblem(m.Problem, b.Problem()) }
	defer func() { d.onMissing = nil }()
	d.Fields(at, n, []key{
		{"api", d.OneOf(&m.API, modelAPIs...)},
		{"url", d.Text(&m.URL)},
		{"model", d.Text(&m.Model)},
		{"deployment", d.Text(&m.Deployment)},
		{"api_version", d.Text(&m.APIVersion)},
		{"key", d.Text((*string)(&m.Key))},
		{"headers", d.secrets(&m.Headers)},
		{"answer", scalar(d, &m.Answer, yamlstrict.Count)},
		{"temperature", func(at path, n *yaml.Node) {
			m.Temperature = new(float64)
			scalar(d, m.Temperature, parseAmount)(at, n)
		}},
		{"timeout", scalar(d, &m.Timeout, yamlstrict.Duration)},
		{"price", func(at path, n *yaml.Node) { d.modelPrice(at, n, &m.Price) }},
	})
}

func (d *decoder) modelPrice(at path, n *yaml.Node, p *ModelPrice) {
	d.Fields(at, n, []key{
		{"input", scalar(d, &p.Input, parseAmount)},
		{"cached", scalar(d, &p.Cached, parseAmount)},
		{"output", scalar(d, &p.Output, parseAmount)},
	})
}

func (d *decoder) tasks(at path, n *yaml.Node, t *Tasks) {
	d.Fields(at, n, []key{
		{"model", d.Text(&t.Model)},
		{"turns", scalar(d, &t.Turns, yamlstrict.Count)},
		{"repairs", scalar(d, &t.Repairs, yamlstrict.Count)},
		{"tokens", scalar(d, &t.Tokens, yamlstrict.Count)},
		{"money", scalar(d, &t.Money, parseAmount)},
		{"time", scalar(d, &t.Time, yamlstrict.Duration)},
		{"parallel", scalar(d, &t.Parallel, yamlstrict.Count)},
		{"daily", func(at path, n *yaml.Node) { d.dailyTasks(at, n, &t.Daily) }},
		{"keep", scalar(d, &t.Keep, yamlstrict.Age)},
	})
}

func (d *decoder) dailyTasks(at path, n *yaml.Node, t *DailyTasks) {
	d.Fields(at, n, []key{
		{"tokens", scalar(d, &t.Tokens, yamlstrict.Count)},
		{"money", scalar(d, &t.Money, parseAmount)},
		{"time", scalar(d, &t.Time, yamlstrict.Duration)},
	})
}

// parseAmount reads a number that is not negative.
func parseAmount(n *yaml.Node) (float64, string) {
	amount, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsNaN(amount) || math.IsInf(amount, 0) || amount < 0 {
		return 0, "must be a number of 0 or more, as in 2.5"
	}
	return amount, ""
}

// modelProblems returns the problems of models and tasks. They never show a part of a URL, which may hold a key.
func (c *Config) modelProblems(at, tasks path) (all []problem) {
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if !modelName.MatchString(name) {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf(`%.40q cannot name a model: a letter, then letters, digits, "-" and "_", at most 64`, name)})
		}
		all = append(all, c.Models[name].problems(at.To(name))...)
	}
	if _, known := c.Models[c.Tasks.Model]; !known && c.Tasks.Model != "" {
		all = append(all, problem{at: tasks.To("model"), message: fmt.Sprintf("there is no model %.40q in models", c.Tasks.Model)})
	}
	return append(all, c.Tasks.problems(tasks)...)
}

func (m LanguageModel) problems(at path) []problem {
	all := slices.Concat(
		oneOfProblem(at.To("api"), m.API, modelAPIs),
		between(at.To("timeout"), m.Timeout, time.Second, time.Hour),
		between(at.To("answer"), m.Answer, 16, 1_000_000),
	)
	if m.Temperature != nil && *m.Temperature > 2 {
		all = append(all, problem{at: at.To("temperature"), message: "temperature must be from 0 to 2"})
	}
	if m.Problem != "" {
		return all // its values mean nothing
	}
	return slices.Concat(all, m.missing(at), m.unused(at), headerProblems(at.To("headers"), m.Headers), ownHeaderProblems(at.To("headers"), m.Headers))
}

// missing returns problems of keys that the API needs.
func (m LanguageModel) missing(at path) (all []problem) {
	needs := func(name, value, what string) {
		if value == "" {
			all = append(all, problem{at: at, onKey: true, needs: []path{at.To(name), at.Unknown()}, message: fmt.Sprintf("%s needs %q, %s", label(at), name, what)})
		}
	}
	switch m.API {
	case APIAzure:
		needs("url", m.URL, "such as https://NAME.openai.azure.com")
		needs("deployment", m.Deployment, "the name of the deployment")
	case APIOpenAI, APIAnthropic:
		needs("model", m.Model, "the name that the endpoint knows it by")
	}
	if len(m.Model) > maxModel || strings.ContainsFunc(m.Model, unicode.IsControl) {
		all = append(all, problem{at: at.To("model"), message: fmt.Sprintf("a model's name has at most %d bytes and no control characters", maxModel)})
	}
	if m.URL != "" {
		all = append(all, urlProblems(at.To("url"), m.URL)...)
	}
	return all
}

// unused returns problems of keys that the API does not use.
func (m LanguageModel) unused(at path) (all []problem) {
	for name, value := range map[string]string{"deployment": m.Deployment, "api_version": m.APIVersion} {
		if value != "" && m.API != APIAzure {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf("%s is only for api: azure", name)})
		}
	}
	for name, value := range map[string]string{"url": m.URL, "key": string(m.Key)} {
		if value != "" && m.API == APISampling {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf("%s is not for api: sampling, which asks the client", name)})
		}
	}
	slices.SortFunc(all, func(a, b problem) int { return strings.Compare(a.message, b.message) })
	return all
}

func (t Tasks) problems(at path) []problem {
	return slices.Concat(
		between(at.To("turns"), t.Turns, 1, 1000),
		between(at.To("repairs"), t.Repairs, 1, 100),
		between(at.To("tokens"), t.Tokens, 100, 1_000_000_000),
		between(at.To("time"), t.Time, time.Second, 24*time.Hour),
		between(at.To("parallel"), t.Parallel, 1, 1000),
		between(at.To("keep"), t.Keep, time.Hour, 10*366*24*time.Hour),
	)
}

func (m LanguageModel) secretValues() []string {
	return slices.Concat(redact.Values(m.Headers), redact.OfURL(m.URL), []string{string(m.Key)})
}

// String shows neither URL nor key nor values of headers.
func (m LanguageModel) String() string {
	return fmt.Sprintf("model (%s, headers %v)", m.API, m.Headers)
}

// Format writes String for every verb.
func (m LanguageModel) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, m.String()) }

// MarshalText returns String.
func (m LanguageModel) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// LogValue returns String.
func (m LanguageModel) LogValue() slog.Value { return slog.StringValue(m.String()) }
