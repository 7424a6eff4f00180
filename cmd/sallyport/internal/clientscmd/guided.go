package clientscmd

import (
	"context"
	"os"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/addition"
	"sallyport/internal/clients"
	"sallyport/internal/settingsfile"
)

// Find returns the servers in the settings of the named clients, or of all clients without names. What cannot be read is
// printed; problem is set then. others are the servers of the other clients.
func Find(shared *cli.App, names []string) (found, others []clients.Found, problem, err error) {
	a := &app{shared}
	p, err := a.system()
	if err != nil {
		return nil, nil, nil, err
	}
	sources, err := importSources(names, p)
	if err != nil {
		return nil, nil, nil, err
	}
	r := clients.NewReader(p)
	found, problem = a.readSources(r, sources)
	return found, otherServers(r, sources, p), problem, nil
}

// Import adds servers to the settings, stores their secrets, and prints what was done. others are the servers that are
// not added.
func Import(shared *cli.App, f *settingsfile.File, found, others []clients.Found, store addition.SecretStore) error {
	a := &app{shared}
	rows, err := a.merge(f, found, &clients.MergeOptions{EnvFile: store.EnvFile, Keyring: store.Keyring, Others: others}, false)
	if err != nil {
		return err
	}
	return a.finishImport(f, rows, store)
}

// Installed returns the clients that have settings of the user on this machine.
func Installed(shared *cli.App) ([]clients.Client, error) {
	p, err := (&app{shared}).system()
	if err != nil {
		return nil, err
	}
	var all []clients.Client
	for _, c := range clients.All() {
		if _, err := os.Stat(c.UserFile(p)); err == nil {
			all = append(all, c)
		}
	}
	return all, nil
}

// Install adds the one entry to a client, as the verb does. With replace, it removes the servers that the settings have; with
// keep, it does not; with neither, it asks on a terminal.
func Install(ctx context.Context, shared *cli.App, client string, replace, keep bool) error {
	return (&app{shared}).install(ctx, client, installFlags{replace: replace, keep: keep && !replace})
}
