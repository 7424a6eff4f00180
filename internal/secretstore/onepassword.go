package secretstore

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// onePassword is a 1Password Connect server.
type onePassword struct {
	client
	base   string
	header http.Header
}

func newOnePassword(set OnePassword, env environment, transport func(ca string) (http.RoundTripper, error)) (manager, error) {
	address, token := cmp.Or(set.URL, env.first("OP_CONNECT_HOST")), cmp.Or(string(set.Token), env.first("OP_CONNECT_TOKEN"))
	switch {
	case address == "":
		return nil, &Error{Kind: Refused, Message: "the address of 1Password Connect is not known", Fix: "set secret_managers.onepassword.url, or OP_CONNECT_HOST"}
	case token == "":
		return nil, &Error{Kind: Refused, Message: "there is no token for 1Password Connect", Fix: "set secret_managers.onepassword.token, or OP_CONNECT_TOKEN"}
	}
	base, err := checkAddress("1Password Connect", address, set.Insecure)
	if err != nil {
		return nil, err
	}
	t, err := transport(set.CA)
	if err != nil {
		return nil, err
	}
	return &onePassword{newClient("1Password Connect", t), base.String() + "/v1/vaults", http.Header{"Authorization": {"Bearer " + token}, "Accept": {"application/json"}}}, nil
}

// opEntry is a vault or an item in a list.
type opEntry struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Title string `json:"title"`
}

// opItem is an item.
type opItem struct {
	Sections []struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	} `json:"sections"`
	Fields []struct {
		ID      string `json:"id"`
		Label   string `json:"label"`
		Value   string `json:"value"`
		Section *struct {
			ID string `json:"id"`
		} `json:"section"`
	} `json:"fields"`
}

func (o *onePassword) read(ctx context.Context, n name) (answer, error) {
	vaultName, itemName, _ := strings.Cut(n.path, "/")
	vaultID, err := o.find(ctx, o.base, "name", vaultName)
	if err != nil {
		return answer{}, err
	}
	items := o.base + "/" + vaultID + "/items"
	itemID, err := o.find(ctx, items, "title", itemName)
	if err != nil {
		return answer{}, err
	}
	var item opItem
	if err := o.get(ctx, items+"/"+itemID, itemName, &item); err != nil {
		return answer{}, err
	}
	return answer{fields: item.values()}, nil
}

// values returns the values by each name that a reference may have for them. A name of several fields is of none.
func (i opItem) values() map[string]string {
	all, twice := map[string]string{}, map[string]bool{}
	add := func(name, value string) {
		if old, ok := all[name]; ok && old != value {
			twice[name] = true
		}
		all[name] = value
	}
	for _, f := range i.Fields {
		for _, name := range []string{f.ID, f.Label} {
			if name == "" || f.Value == "" {
				continue
			}
			add(name, f.Value)
			for _, s := range i.Sections {
				if f.Section != nil && f.Section.ID == s.ID {
					add(s.ID+"/"+name, f.Value)
					add(s.Label+"/"+name, f.Value)
				}
			}
		}
	}
	for name := range twice {
		delete(all, name)
	}
	return all
}

// opID matches an id of 1Password.
var opID = regexp.MustCompile(`^[a-z0-9]{26}$`)

// find returns the id of the one entry of a list with a name. What looks like an id is one.
func (o *onePassword) find(ctx context.Context, list, key, name string) (string, error) {
	if opID.MatchString(name) {
		return name, nil
	}
	var found []opEntry
	if err := o.get(ctx, list+"?filter="+url.QueryEscape(key+` eq "`+name+`"`), name, &found); err != nil {
		return "", err
	}
	id, count := "", 0
	for _, e := range found {
		if cmp.Or(e.Name, e.Title) == name && opID.MatchString(e.ID) {
			id = e.ID
			count++
		}
	}
	switch count {
	case 0:
		return "", &Error{Kind: Missing, Message: "1Password Connect has no " + quoted(name), Fix: "check the name, and that the token may read the vault"}
	case 1:
		return id, nil
	}
	return "", &Error{Kind: Missing, Message: "1Password Connect has several " + quoted(name), Fix: "write its id in place of the name"}
}

func (o *onePassword) get(ctx context.Context, address, name string, into any) error {
	res, err := o.send(ctx, http.MethodGet, address, o.header, nil)
	if err != nil {
		return err
	}
	e := res.statusError(o.what)
	switch {
	case e == nil:
		return o.decode(res, into)
	case res.status == http.StatusUnauthorized:
		e.Fix = "give it a valid token (secret_managers.onepassword.token, or OP_CONNECT_TOKEN)"
	case res.status == http.StatusForbidden:
		e.Fix = "give the token access to the vault"
	case res.status == http.StatusNotFound:
		e.Message, e.Fix = "1Password Connect has no "+quoted(name), "check the name or the id"
	}
	return e
}

func (o *onePassword) renew(context.Context, lease) (lease, error) { return lease{}, errNoLease }

// errNoLease is the error of managers without leases.
var errNoLease = errors.New("there are no leases")
