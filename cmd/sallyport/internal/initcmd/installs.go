package initcmd

import (
	"context"

	"sallyport/cmd/sallyport/internal/clientscmd"
	"sallyport/internal/clients"
)

// chooseClients adds the entry to clients: those of --install, or those that the user chooses of the ones on this machine.
func (s *setup) chooseClients(ctx context.Context) error {
	all, err := s.installable()
	if err != nil {
		return err
	}
	var options []option
	for _, c := range all {
		options = append(options, option{name: c.Name, label: c.Title, proposed: true})
	}
	chosen, err := s.ask.choose(ctx, "Clients on this machine. Which ones shall have Sallyport? Their settings get one entry, and a backup is kept.", options, s.clients, "--install")
	if err != nil {
		return err
	}
	for _, i := range chosen {
		s.install(ctx, all[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// installable returns the clients to choose from: with --install any, else those that have settings here.
func (s *setup) installable() ([]clients.Client, error) {
	if len(s.clients) > 0 {
		return clients.All(), nil
	}
	return clientscmd.Installed(s.App)
}

func (s *setup) install(ctx context.Context, c clients.Client) {
	if err := clientscmd.Install(ctx, s.App, c.Name, s.replace, !s.ask.possible()); err != nil && ctx.Err() == nil {
		s.fail("install "+c.Name, err, "then: sallyport install "+c.Name)
		return
	}
	s.restart = append(s.restart, c.Title)
}
