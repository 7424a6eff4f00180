package candidate

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// Values are the values of the inputs, by their names.
type Values map[string][]string

// EntryOptions say how an entry is made.
type EntryOptions struct {
	// Name is the name of the upstream.
	Name string
	// Values are the values of the inputs.
	Values Values
	// Reference returns the text that refers to a secret: ${NAME} or ${keyring:NAME}; NAME is a variable.
	Reference func(variable string) string
	// Bare runs the process without a sandbox.
	Bare bool
	// Index is the registry that replaces the usual one of its package, "" for none.
	Index string
	// Hosts are further hosts that it may reach.
	Hosts []string
	// Description is what models read about the upstream, "" for that of a preset. A description of a registry is for people only:
	// its author must not write to models.
	Description string
}

// Made is an entry for upstreams.yaml.
type Made struct {
	Entry settingsfile.Entry
	// Secrets are the values of secrets, by the variables to which the entry refers. Unset are the variables of secrets without a value.
	Secrets config.Secrets
	Unset   []string
}

// Check returns an error if a value is missing, unknown, or not one of the choices.
func (c Candidate) Check(values Values) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(c.Inputs, func(in Input) bool { return in.Name == name }) {
			return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("there is no value %.60q to set", name), Hint: c.hintNames()}
		}
	}
	var missing []string
	for _, in := range c.Inputs {
		given := values[in.Name]
		if len(given) == 0 && in.Required && !in.Secret {
			missing = append(missing, in.Name)
		}
		for _, value := range given {
			if err := in.Check(value); err != nil {
				return err
			}
		}
		if len(given) > 1 && !in.Repeated {
			return &tool.Error{Kind: tool.Invalid, Message: in.Name + " takes one value, not " + fmt.Sprint(len(given)), Hint: "give it once"}
		}
	}
	if len(missing) > 0 {
		return &tool.Error{Kind: tool.Invalid, Message: "these values are required: " + strings.Join(missing, ", "), Hint: "--set " + missing[0] + "=VALUE"}
	}
	return nil
}

func (c Candidate) hintNames() string {
	if len(c.Inputs) == 0 {
		return "it takes none"
	}
	var names []string
	for _, in := range c.Inputs {
		names = append(names, in.Name)
	}
	return "it takes " + strings.Join(names, ", ")
}

// Check returns an error if a value is not one of the input's choices, or cannot be part of an entry. The error does not show it.
func (in Input) Check(value string) error {
	fault := func(what, hint string) error {
		return &tool.Error{Kind: tool.Invalid, Message: in.Name + " " + what, Hint: hint}
	}
	switch {
	case len(in.Choices) > 0 && !slices.Contains(in.Choices, value):
		return fault("is none of the choices", "choose from "+sanitize.Line(strings.Join(in.Choices, ", "), 300))
	case in.Flag && value != "true" && value != "false":
		return fault("must be true or false", "--set "+in.Name+"=true")
	case value == "" || strings.ContainsAny(value, "\x00\n\r"):
		return fault("is empty or has a line break", "give one line")
	}
	return nil
}

// Entry returns the entry of the candidate with values. Secrets are references in it.
func (c Candidate) Entry(opts EntryOptions) (Made, error) {
	if err := c.Check(opts.Values); err != nil {
		return Made{}, err
	}
	m := maker{Candidate: c, EntryOptions: opts, made: Made{Secrets: config.Secrets{}}}
	e := &m.made.Entry
	e.Name, e.Description = opts.Name, settingsfile.Escape(opts.Description)
	if e.Description == "" && c.preset {
		e.Description = settingsfile.Escape(c.Description)
	}
	switch {
	case c.openAPI != "":
		e.OpenAPI = settingsfile.Escape(c.openAPI)
	case c.graphQL != "":
		e.GraphQL = settingsfile.Escape(c.graphQL)
	case c.grpc != "":
		e.GRPC = settingsfile.Escape(c.grpc)
	case c.egress != nil:
		e.Egress = settingsfile.NewEgress(c.egress)
	case c.Remote():
		if err := m.remote(); err != nil {
			return Made{}, err
		}
	case opts.Bare && c.index != "":
		return m.made, &tool.Error{Kind: tool.Invalid, Message: "its package is from " + c.index + ", which npx and uvx do not ask", Hint: "leave --no-isolate out"}
	case opts.Bare && c.image != "":
		return m.made, &tool.Error{Kind: tool.Invalid, Message: "an image runs in a sandbox only", Hint: "leave --no-isolate out"}
	default:
		if err := m.mountAll(); err != nil {
			return Made{}, err
		}
		m.process()
	}
	return m.made, nil
}

// maker makes the entry of a candidate.
type maker struct {
	Candidate
	EntryOptions
	made   Made
	mounts []settingsfile.EntryMount
}

func (m *maker) remote() error {
	text, _ := m.join(m.url)
	plain, err := parseURL(m.plain(m.url), !m.own && !m.chosen(m.url))
	if err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: "with these values, " + err.Error(), Hint: "correct the values that are part of its URL"}
	}
	if len(m.url) > 1 { // a value must not move the host
		stub, err := parseURL(inBraces.ReplaceAllString(m.shape(), "x"), false)
		if err != nil || strings.Count(stub.Hostname(), ".") > strings.Count(plain.Hostname(), ".") || stub.Port() != plain.Port() || !strings.HasSuffix(plain.Hostname(), fixedEnd(m.shape())) {
			return &tool.Error{Kind: tool.Invalid, Message: "with these values, its URL has another host", Hint: "a value in a host has letters, digits, dots and hyphens"}
		}
	}
	m.made.Entry.URL, m.made.Entry.Headers = text, m.pairs(m.headers)
	if m.sse {
		m.made.Entry.Transport = "sse"
	}
	return nil
}

// chosen reports whether a person gave a value for one of the inputs of a text.
func (m *maker) chosen(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.input != "" && len(m.Values[p.input]) > 0 })
}

// shape returns the URL with its variables in braces.
func (m *maker) shape() string {
	var b strings.Builder
	for _, p := range m.url {
		if p.input != "" {
			b.WriteString("{x}")
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

var hostInURL = regexp.MustCompile(`^[a-z]+://([^/?#]*)`)

// fixedEnd returns the end of the host that no variable can change.
func fixedEnd(shape string) string {
	host := ""
	if found := hostInURL.FindStringSubmatch(shape); found != nil {
		host, _, _ = strings.Cut(found[1], ":")
	}
	return host[strings.LastIndexByte(host, '}')+1:]
}

// plain returns a text with the values of its inputs.
func (m *maker) plain(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text)
		if p.input != "" {
			in, values := m.input(p.input), m.Values[p.input]
			if len(values) == 0 {
				values = []string{in.Default}
			}
			b.WriteString(values[0])
		}
	}
	return b.String()
}

func (m *maker) process() {
	e := &m.made.Entry
	e.Command = m.command
	for _, a := range m.args {
		e.Args = append(e.Args, m.argument(a)...)
	}
	e.Env = m.pairs(m.env)
	if m.Bare {
		return
	}
	e.Isolate = m.isolation(m.mounts, m.Hosts, cmp.Or(m.index, m.Index))
}

// isolation returns the setting that allows the known needs, mounts and further hosts.
func (c Candidate) isolation(mounts []settingsfile.EntryMount, hosts []string, index string) *settingsfile.EntryIsolation {
	isolate := settingsfile.EntryIsolation{Image: c.image, Mounts: mounts, Home: c.Needs.Home, Registry: index}
	for _, host := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.Needs.Hosts, hosts)))) {
		isolate.Hosts = append(isolate.Hosts, settingsfile.EntryHost{Name: host})
	}
	if c.Needs.Memory != "" {
		isolate.Limits = map[string]string{"memory": c.Needs.Memory}
	}
	return &isolate
}

// argument returns the words of an argument, none for one without a value.
func (m *maker) argument(a argument) (words []string) {
	if a.bare {
		if slices.Equal(m.given(m.input(a.parts[0].input)), []string{"true"}) {
			words = []string{settingsfile.Escape(a.flag)}
		}
		return words
	}
	texts := m.texts(a.parts)
	for _, text := range texts {
		switch {
		case a.flag == "":
			words = append(words, text)
		case strings.HasPrefix(a.flag, "--"):
			words = append(words, settingsfile.Escape(a.flag)+"="+text)
		default:
			words = append(words, settingsfile.Escape(a.flag), text)
		}
	}
	return words
}

// texts returns the values of an argument: several if its only part is an input with several values.
func (m *maker) texts(parts []part) (all []string) {
	if len(parts) == 1 && parts[0].input != "" {
		in := m.input(parts[0].input)
		for _, value := range m.given(in) {
			all = append(all, m.value(in, value))
		}
		if in.Secret && len(all) == 0 && in.Required {
			all = append(all, m.value(in, ""))
		}
		return all
	}
	if text, ok := m.join(parts); ok {
		all = append(all, text)
	}
	return all
}

func (m *maker) pairs(list []pair) settingsfile.Values {
	values := settingsfile.Values{}
	for _, one := range list {
		if text, ok := m.join(one.parts); ok {
			values[one.name] = text
		}
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

// join returns a text with the values of its inputs, false if one has none.
func (m *maker) join(parts []part) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		if p.input == "" {
			b.WriteString(settingsfile.Escape(p.text))
			continue
		}
		in := m.input(p.input)
		given := m.given(in)
		switch {
		case len(given) > 0:
			b.WriteString(m.value(in, given[0]))
		case in.Secret && in.Required:
			b.WriteString(m.value(in, ""))
		default:
			return "", false
		}
	}
	return b.String(), true
}

// input returns the input with a name, the zero value for none.
func (c Candidate) input(name string) Input {
	i := slices.IndexFunc(c.Inputs, func(in Input) bool { return in.Name == name })
	if i < 0 {
		return Input{}
	}
	return c.Inputs[i]
}

// given returns the values of an input, or its default. A default of a secret is the name of no secret.
func (m *maker) given(in Input) []string {
	if values := m.Values[in.Name]; len(values) > 0 {
		return values
	}
	if in.Default != "" {
		return []string{in.Default}
	}
	return nil
}

// value returns the text of a value in the entry: a reference for a secret, a path that is mounted for a file.
func (m *maker) value(in Input, value string) string {
	switch {
	case in.Secret && value != in.Default || in.Secret && value == "":
		return m.secret(in, value)
	case in.Path || m.Needs.Mounts[in.Name] != "":
		return m.path(in, value)
	}
	return settingsfile.Escape(value)
}

var notVariable = regexp.MustCompile(`[^A-Z0-9]+`)

// Variable returns the variable for a secret: the name of the input if it looks like one, else that name with the one of the upstream.
func Variable(upstream string, in Input) string {
	name := upper(in.Name)
	if name == in.Name && strings.Contains(name, "_") {
		return name
	}
	prefix := upper(upstream) + "_"
	return prefix + strings.TrimPrefix(name, prefix)
}

func upper(text string) string {
	return strings.Trim(notVariable.ReplaceAllString(strings.ToUpper(text), "_"), "_")
}

func (m *maker) secret(in Input, value string) string {
	variable := Variable(m.EntryOptions.Name, in)
	if value != "" {
		m.made.Secrets[variable] = value
	} else if !slices.Contains(m.made.Unset, variable) {
		m.made.Unset = append(m.made.Unset, variable)
	}
	return m.Reference(variable)
}

// path returns an absolute path, which the sandbox gets.
func (m *maker) path(in Input, value string) string {
	path, err := filepath.Abs(value)
	if err != nil {
		path = value
	}
	mount := settingsfile.EntryMount{Path: settingsfile.Escape(path)}
	if m.Needs.Mounts[in.Name] == config.MountWritable {
		mount.Mode = config.MountWritable
	}
	if !slices.Contains(m.mounts, mount) {
		m.mounts = append(m.mounts, mount)
	}
	return settingsfile.Escape(path)
}

// Command returns the command line of an entry for people, quoted as a shell would need it.
func Command(e settingsfile.Entry) string {
	words := []string{quote(e.Command)}
	if e.Image() != "" {
		words = strings.Fields(e.Image() + " " + e.Command)
	}
	for _, arg := range e.Args {
		words = append(words, quote(strings.ReplaceAll(arg, "$$", "$")))
	}
	return strings.Join(words, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
