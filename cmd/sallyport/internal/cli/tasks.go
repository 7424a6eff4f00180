package cli

import (
	"log/slog"

	"sallyport/gateway"
	"sallyport/gateway/task"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/store"
)

// OpenTasks opens the tasks of a gateway. Close them before it. The model of environment variables is used if the settings have none.
func (a *App) OpenTasks(g *gateway.Gateway, cfg *config.Config, records *store.Store, log *slog.Logger) (*task.Tasks, error) {
	opts := task.Options{Gateway: g.Service(), Catalog: g.Catalog, Labels: g.Guard, Settings: g.Reloader.Current(), Budgets: g.Budgets, Records: records, Logger: log}
	if len(cfg.Models) == 0 {
		s, ok, err := models.FromEnvironment(a.Env)
		if err != nil {
			return nil, err
		}
		if ok {
			opts.Environment = &s
		}
	}
	return task.Open(opts)
}
