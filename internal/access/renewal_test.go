package access_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/access"
)

// provider is one at which people have signed in.
type provider struct {
	renew func(state string) (access.Caller, string, error)
	end   func(state string)
}

func (p *provider) Renew(_ context.Context, state []byte) (access.Caller, []byte, error) {
	v, next, err := p.renew(string(state))
	return v, []byte(next), err
}

func (p *provider) End(_ context.Context, state []byte) { p.end(string(state)) }

// TestRenewal: one of many requests asks the provider, the others wait for it; a provider that is down refuses requests and ends
// no session.
func TestRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := access.NewSessions(nil)
		asked, ended, fail := 0, 0, error(nil)
		v := access.Caller{Principal: "oauth:ann"}
		cookie, _ := s.OpenRenewed(t.Context(), v, &access.Renewal{Every: time.Minute, Provider: &provider{
			renew: func(string) (access.Caller, string, error) {
				asked++
				time.Sleep(time.Second)
				return v.WithRole(access.Viewer), "", fail
			},
			end: func(string) { ended++ },
		}})
		lookUp := func() (access.Caller, bool) {
			v, ok, err := s.Lookup(t.Context(), cookie)
			if err != nil {
				t.Error(err)
			}
			return v, ok
		}
		if got, ok := lookUp(); !ok || asked != 0 || !got.Expires.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("%+v, asked %d times", got, asked)
		}
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if got, ok := lookUp(); !ok || got.Role != access.Viewer || got.By != access.BySession {
					t.Errorf("%+v, %v", got, ok)
				}
			})
		}
		if all.Wait(); asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		time.Sleep(time.Minute)
		fail = errors.New("the provider is down")
		for range 20 {
			all.Go(func() {
				if _, ok := lookUp(); ok {
					t.Error("a request is served though its groups are not known")
				}
			})
		}
		all.Wait()
		if _, ok := lookUp(); ok || asked != 2 {
			t.Errorf("asked %d times", asked)
		}
		time.Sleep(time.Minute)
		if fail = nil; true {
			if _, ok := lookUp(); !ok || asked != 3 {
				t.Errorf("the session has ended, asked %d times", asked)
			}
		}
		if _, err := s.Close(t.Context(), cookie); err != nil {
			t.Error(err)
		}
		if _, ok := lookUp(); ok || ended != 1 {
			t.Errorf("a closed session goes on, ended %d times", ended)
		}
		cookie, _ = s.OpenRenewed(t.Context(), v, &access.Renewal{Every: time.Minute, Provider: &provider{renew: func(string) (access.Caller, string, error) {
			asked++
			return access.Caller{}, "", access.ErrEnded
		}}})
		time.Sleep(time.Hour)
		for range 2 {
			if _, ok := lookUp(); ok || asked != 4 {
				t.Errorf("a session that ended at the provider goes on, asked %d times", asked)
			}
		}
	})
}

// TestDirectory: older claims do not bring groups back, and the groups of a principal that has not called are unknown.
func TestDirectory(t *testing.T) {
	t.Parallel()
	d, now := access.NewDirectory(), time.Now()
	if _, known := d.Groups("oauth:ann"); known {
		t.Error("groups of a principal that has not called are known")
	}
	if groups, known := d.Groups("token:ci"); !known || len(groups) != 0 {
		t.Errorf("groups of a token: %v, %v", groups, known)
	}
	d.Set("oauth:ann", []string{"dev"}, now)
	d.Set("oauth:ann", []string{"dev", "ops"}, now.Add(-time.Minute))
	if groups, known := d.Groups("oauth:ann"); !known || len(groups) != 1 {
		t.Errorf("groups of ann: %v, %v", groups, known)
	}
	for i := range 10_001 {
		d.Set("oauth:"+time.Duration(i).String(), nil, now.Add(time.Duration(i+1)))
	}
	if _, known := d.Groups("oauth:ann"); known {
		t.Error("the oldest principal is still known")
	}
	var none *access.Directory
	none.Set("oauth:ann", nil, now)
	if _, known := none.Groups("oauth:ann"); known {
		t.Error("no directory knows a principal")
	}
}
