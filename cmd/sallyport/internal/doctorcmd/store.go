package doctorcmd

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// storeTimeout is the timeout of the requests to the servers of the store.
const storeTimeout = 15 * time.Second

// checkStore reports the servers that have the records; nothing if the data directory has them.
func (a *app) checkStore(ctx context.Context, cfg *config.Config) []finding {
	if !cfg.Store.IsRemote() {
		return nil
	}
	check := sandbox.Check{Name: "store", Fix: "see the section store of the settings, and docs/how-to/share-a-store.md"}
	state, members, err := a.storeState(ctx, cfg)
	if err != nil {
		check.Detail = sanitize.Line(tool.AsError(err).Message, 300)
		return []finding{{Check: check}}
	}
	behind := laggingStreams(state)
	check.OK, check.Warn = true, len(behind) > 0
	sealing := "no store.key: logins and sessions stay with each gateway"
	if cfg.Store.Key != "" {
		sealing = "logins and sessions are sealed"
	}
	check.Detail = fmt.Sprintf("NATS %s, %s of %s, leaders %s, %s, answered in %s; %s", sanitize.Line(state.Version, 20), cli.Count(cfg.Store.Replicas, "replica"), cli.Count(len(state.Streams), "stream"),
		leadersText(state), cli.Count(members, "other member"), state.Delay.Round(time.Millisecond), sealing)
	if check.Warn {
		check.Detail += "; behind or without a leader: " + summarizeList(behind)
		check.Fix = "start the servers that are down, and wait until they have caught up"
	}
	return []finding{{Check: check}}
}

// storeState asks the servers. members is the number of other processes that share the store.
func (a *app) storeState(ctx context.Context, cfg *config.Config) (state store.State, members int, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	records, err := cli.ConnectStore(cfg, a.Logger(slog.LevelError+1))
	if err != nil {
		return state, 0, err
	}
	defer func() { _ = records.Close() }() // it was only read
	if state, err = records.State(ctx); err == nil {
		err = sharedrecords.CheckKey(ctx, records)
	}
	if err != nil {
		return state, 0, &tool.Error{Kind: tool.Busy, Message: err.Error(), Err: err}
	}
	for _, one := range records.Members() {
		if one.ID != records.Self() {
			members++
		}
	}
	return state, members, nil
}

// leaders returns how many streams each server leads. A single server leads none.
func leaders(state store.State) map[string]int {
	count := map[string]int{}
	for _, s := range state.Streams {
		if s.Leader != "" {
			count[sanitize.Line(s.Leader, 40)]++
		}
	}
	return count
}

// leadersText describes the leaders.
func leadersText(state store.State) string {
	count := leaders(state)
	if len(count) == 0 {
		return "none (one server)"
	}
	return strings.TrimPrefix(fmt.Sprint(count), "map")
}

// laggingStreams returns the streams of which a replica is behind, or which have no leader although others do.
func laggingStreams(state store.State) (list []string) {
	clustered := len(leaders(state)) > 0
	for _, s := range state.Streams {
		for _, server := range s.Behind {
			list = append(list, fmt.Sprintf("%s on %s", s.Name, sanitize.Line(server, 40)))
		}
		if clustered && s.Leader == "" {
			list = append(list, s.Name)
		}
	}
	return list
}
