package dashboard

import (
	"context"
	"net/url"

	"sallyport/gateway/connections"
	"sallyport/gateway/history"
	"sallyport/internal/access"
	"sallyport/internal/sanitize"
)

// Users are the principals of the gateway.
type Users interface {
	// Users returns the principals with executions on record, the most recent one first. Errors are *tool.Error.
	Users(ctx context.Context) ([]history.User, error)
}

// usersPath is the page about all principals.
const usersPath = "/ui/users"

// userPages are about the principals.
type userPages struct{ *Dashboard }

// UsersPage lists principals.
type UsersPage struct {
	Users []UserRow
	Pager Pager
	// Personal says that upstreams have a login of each principal.
	Personal bool
}

// UserRow is a principal and its own logins at upstreams.
type UserRow struct {
	history.User
	Logins []connections.Connection
	// Executions is the page of its executions; "" if its name cannot be chosen there.
	Executions string
}

func (d userPages) list(r *request) (any, error) {
	all, err := d.service.Users(r.Context())
	if err != nil {
		return nil, err
	}
	offset := min(r.number("offset"), len(all))
	shown := all[offset:min(offset+pageSize, len(all))]
	p := UsersPage{Pager: r.pager(offset, len(shown), len(all))}
	for _, u := range shown {
		row := UserRow{User: u, Logins: d.loginsOf(r.Context(), u.Principal)}
		if u.Principal != "" && sanitize.Line(u.Principal, 80) == u.Principal {
			row.Executions = "/ui/executions?" + url.Values{"principal": {u.Principal}}.Encode()
		}
		p.Users, p.Personal = append(p.Users, row), p.Personal || len(row.Logins) > 0
	}
	return p, nil
}

// loginsOf returns the logins of a principal at upstreams where each has its own.
func (d userPages) loginsOf(ctx context.Context, principal string) (own []connections.Connection) {
	if d.opts.Connections == nil || principal == "" {
		return nil
	}
	for _, one := range d.opts.Connections.Connections(access.Caller{Principal: principal}.NewContext(ctx)) {
		if !one.Shared {
			own = append(own, one)
		}
	}
	return own
}
