package addition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/candidate"
	"sallyport/internal/config"
	"sallyport/internal/registry"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// Settings is the settings file in force, for callers who may change it.
type Settings interface {
	// File opens it. Write writes what has changed, and puts it into force; force says why it is not.
	File(ctx context.Context) (*settingsfile.File, error)
	Write(ctx context.Context, f *settingsfile.File, what string) (force string, err error)
}

// Adder adds servers to the settings in force. Errors are *tool.Error.
type Adder struct {
	Settings Settings
	Finder   Finder
	// Test connects to the upstream with an id, and returns why it cannot.
	Test func(ctx context.Context, id string) error
}

// Proposal is a server that was found.
type Proposal struct {
	candidate.Candidate
	// Name is a free name for it.
	Name string
	// Access is what it runs and may reach; the names of values stand for those that it needs. It is nil if only values say it.
	Access []Fact
}

// Find looks a server up.
func (d Adder) Find(ctx context.Context, server string, choice candidate.Choice) (Proposal, error) {
	file, err := d.Settings.File(ctx)
	if err != nil {
		return Proposal{}, err
	}
	found, err := d.Finder.Find(ctx, file, server, choice)
	if err != nil {
		return Proposal{}, err
	}
	p := Proposal{Candidate: found}
	if p.Name, err = freeName(file, found.Name); err != nil {
		return Proposal{}, err
	}
	if a, err := New(file, found, Options{Name: p.Name, Values: sample(found), Env: d.Finder.Env}); err == nil {
		p.Access = Access(a.Made.Entry)
	}
	return p, nil
}

// sample returns a value for each input that needs one.
func sample(c candidate.Candidate) candidate.Values {
	values := candidate.Values{}
	for _, in := range c.Inputs {
		switch name := "‹" + in.Name + "›"; {
		case !in.Required || in.Secret:
		case len(in.Choices) > 0:
			values[in.Name] = in.Choices[:1]
		case in.Flag:
			values[in.Name] = []string{"true"}
		case in.Path || c.Needs.Mounts[in.Name] != "":
			values[in.Name] = []string{"/" + name}
		default:
			values[in.Name] = []string{name}
		}
	}
	return values
}

// Search returns the servers of the registry of the settings with a text in their names, and whether there are more.
func (d Adder) Search(ctx context.Context, words string) (found []registry.Entry, more bool, err error) {
	file, err := d.Settings.File(ctx)
	if err != nil {
		return nil, false, err
	}
	if found, more, err = Registry(file).Search(ctx, words, maxFound); err != nil {
		return nil, false, lookupError(err, "try again, or name the server itself")
	}
	return found, more, nil
}

// maxFound bounds the servers that a search returns.
const maxFound = 30

// Added is the result of [Adder.Add].
type Added struct {
	// Name is that of the upstream. Existing says that the same server was there before, and nothing was changed.
	Name     string
	Existing bool
	// Force says why the settings are not in force, "" if they are.
	Force string
}

// Add writes a server into the settings, puts them into force, and begins to connect to it.
func (d Adder) Add(ctx context.Context, found candidate.Candidate, o Options) (Added, error) {
	file, err := d.Settings.File(ctx)
	if err != nil {
		return Added{}, err
	}
	o.Env = d.Finder.Env
	a, err := New(file, found, o)
	if err != nil {
		return Added{}, err
	}
	if there, err := a.Existing(""); err != nil || there != "" {
		return Added{Name: there, Existing: true}, err
	}
	name := a.Made.Entry.Name
	if err := file.Add(a.Made.Entry); err != nil {
		return Added{}, refused(err)
	}
	if err := a.Store.Put(file, a.Secrets()); err != nil {
		return Added{}, tool.AsError(err)
	}
	force, err := d.Settings.Write(ctx, file, "added upstreams."+name)
	if err != nil {
		return Added{}, err
	}
	if force == "" && d.Test != nil {
		go d.try(context.WithoutCancel(ctx), tool.Identifier(name))
	}
	return Added{Name: name, Force: force}, nil
}

// refused returns the error of an entry with which the settings would not load: its first line, as those below quote the file.
func refused(err error) error {
	message, _, _ := strings.Cut(err.Error(), "\n")
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		message = wrong.Message
	}
	return &tool.Error{Kind: tool.Invalid, Message: "nothing was changed, as the settings would not load: " + sanitize.Line(message, maxFact), Err: err}
}

// maxInstall bounds the time of an installation of packages.
const maxInstall = 5 * time.Minute

// Installing reports whether an upstream cannot be connected to yet, because its packages are being installed, by the error.
func Installing(problem string) bool { return strings.Contains(problem, "is being installed") }

// try connects to a new upstream; an attempt may end before its packages are installed.
func (d Adder) try(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, maxInstall)
	defer cancel()
	for ctx.Err() == nil {
		if err := d.Test(ctx, id); err == nil || !Installing(fmt.Sprint(err)) {
			return
		}
	}
}
