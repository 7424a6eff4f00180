package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// AddError says why a worker did not add packages to an environment.
type AddError struct {
	// Text is for models.
	Text string `json:"text"`
	// Final reports that other workers are not tried, as with a package that does not exist.
	Final bool `json:"final,omitempty"`
}

// Error implements error.
func (e *AddError) Error() string { return e.Text }

// maxAddError bounds the text of an error, in characters.
const maxAddError = 600

// of returns what a worker said as an error that names the worker.
func (e *AddError) of(worker string) error {
	return &AddError{Text: worker + ": " + sanitize.Line(e.Text, maxAddError), Final: e.Final}
}

// Extended is an environment with its packages.
type Extended struct {
	Environment sandbox.Environment
	// Folders have the packages, as in [deps.List].
	Folders map[sandbox.Interpreter][]string
}

// maxExtended bounds the environments with added packages that a worker makes for one gateway: a host keeps them until it is closed.
const maxExtended = 1000

// EnvironmentOf returns the name of the environment that a worker must have to run a job.
func EnvironmentOf(job sandbox.Job) string {
	if job.Added != nil {
		return job.Added.Environment
	}
	return job.Environment
}

// AddsPackages reports whether a worker of a build there adds packages for a gateway of this build.
func (here Compat) AddsPackages(there Compat) bool {
	version, err := here.Agree(there)
	return err == nil && version >= addedProtocol
}

func (c *Client) errOlder(l *link) error {
	return &AddError{Text: fmt.Sprintf("%s cannot add packages: its sallyport (%s) is older than this one (%s): update it there", c.name, sanitize.Line(l.worker.Version, 60), c.hello.Version)}
}

// Packages returns the packages of an environment of the worker, by interpreter, and adds those of added. An error may be an *AddError.
func (c *Client) Packages(ctx context.Context, added sandbox.Added) (map[sandbox.Interpreter][]deps.InstalledPackage, error) {
	ctx, leave, err := c.beginUse(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	l, err := c.readyLink(ctx)
	if err != nil {
		return nil, err
	}
	if !Here().AddsPackages(l.worker.Compat) {
		return nil, c.errOlder(l)
	}
	var reply packagesReply
	if err := l.request(ctx, pathPackages, added, &reply); err != nil {
		return nil, fmt.Errorf("ask %s for packages: %w", c.name, err)
	}
	if reply.Error != nil {
		return nil, reply.Error.of(c.name)
	}
	return sanitizePackages(reply.Packages), nil
}

// packagesReply is the answer to pathPackages.
type packagesReply struct {
	Error    *AddError                                       `json:"error,omitempty"`
	Packages map[sandbox.Interpreter][]deps.InstalledPackage `json:"packages,omitempty"`
}

// sanitizePackages sanitizes a worker's list of packages.
func sanitizePackages(found map[sandbox.Interpreter][]deps.InstalledPackage) map[sandbox.Interpreter][]deps.InstalledPackage {
	for _, all := range found {
		for i := range all {
			one := &all[i]
			one.Name, one.Version = sanitize.Line(one.Name, 200), sanitize.Line(one.Version, 100)
		}
	}
	return found
}

// addPackages makes the environment of a job with added packages.
func (x *execution) addPackages(ctx context.Context) (err error) {
	if x.job.Added != nil {
		x.job.Environment, err = x.worker.extend(ctx, *x.job.Added, x.job.Limits.Timeout)
	}
	return err
}

// extend makes an environment with added packages within a time, defines it in the host, and returns its key.
func (w *worker) extend(ctx context.Context, added sandbox.Added, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	made, err := w.add(ctx, added)
	if err != nil {
		return "", err
	}
	return w.define(added.Environment, made.Environment)
}

// add makes an environment with added packages. Errors are *AddError; the log has those that are not for gateways.
func (w *worker) add(ctx context.Context, added sandbox.Added) (made Extended, err error) {
	if _, known := w.opts.Host.Environments[added.Environment]; !known {
		return made, &AddError{Text: fmt.Sprintf("it does not have the environment %.80q", added.Environment)}
	}
	if w.opts.Extend == nil {
		return made, &AddError{Text: "it adds no packages"}
	}
	made, err = w.opts.Extend(ctx, added)
	if _, explained := errors.AsType[*AddError](err); err != nil && !explained {
		w.log.ErrorContext(ctx, "packages could not be added", "environment", added.Environment, "error", err)
		err = &AddError{Text: "environment " + added.Environment + " could not be made with these packages; the log of that machine says why"}
	}
	return made, err
}

func (w *worker) define(name string, env sandbox.Environment) (key string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := name + " " + env.Digest
	if key = w.extended[of]; key != "" {
		return key, nil
	}
	if len(w.extended) >= maxExtended {
		return "", &AddError{Text: "it has as many environments with added packages as it may; the operator can restart it"}
	}
	if key, err = w.host.Define(name, env); err != nil {
		return "", err
	}
	if w.extended == nil {
		w.extended = map[string]string{}
	}
	w.extended[of] = key
	return key, nil
}

// packages answers with the packages of an environment.
func (w *worker) packages(rw http.ResponseWriter, r *http.Request) {
	var added sandbox.Added
	if !readJSON(rw, r, &added) {
		return
	}
	var reply packagesReply
	made, err := w.add(r.Context(), added)
	if err == nil {
		reply.Packages, err = listPackages(made.Folders)
	}
	if err != nil {
		reply.Error = &AddError{Text: "the packages of environment " + added.Environment + " cannot be listed"}
		_ = errors.As(err, &reply.Error)
	}
	_ = json.NewEncoder(rw).Encode(reply)
}

// listPackages lists what is in folders, without the modules if there are too many for an answer.
func listPackages(folders map[sandbox.Interpreter][]string) (map[sandbox.Interpreter][]deps.InstalledPackage, error) {
	found := map[sandbox.Interpreter][]deps.InstalledPackage{}
	for i, dirs := range folders {
		all, err := deps.List(i, dirs...)
		if err != nil {
			return nil, err
		}
		found[i] = all[:min(len(all), maxListed)]
	}
	if data, err := json.Marshal(found); err != nil || len(data) <= maxSmall-maxHello {
		return found, err
	}
	for _, all := range found {
		for i := range all {
			all[i].Modules = nil
		}
	}
	return found, nil
}

// maxListed bounds the packages of an interpreter that are listed, so that their names and versions fit into an answer.
const maxListed = 1500
