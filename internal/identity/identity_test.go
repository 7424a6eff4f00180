package identity_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/expr"
	"sallyport/internal/identity"
)

// Claims of ID tokens in the shapes that Keycloak and Entra ID document.
const (
	keycloak = `{"exp":1,"iat":1,"iss":"https://sso.example/realms/main","aud":"sallyport","sub":"f:1:ann","typ":"ID","azp":"sallyport","sid":"s",
		"realm_access":{"roles":["offline_access","tools-admin"]},"resource_access":{"sallyport":{"roles":["user"]}},
		"groups":["/platform","/platform/oncall"],"email_verified":true,"preferred_username":"ann","email":"ann@example.com"}`
	entra = `{"aud":"6731de76","iss":"https://login.microsoftonline.com/9122040d/v2.0","iat":1,"exp":1,"name":"Ann","oid":"00000000-0000-0000-66f3-3332eca7ea81",
		"preferred_username":"ann@example.com","rh":"0.AX","roles":["Tools.Operate"],"groups":["8d5c2b4e-platform"],"sub":"AAAA-pairwise","tid":"9122040d","uti":"u","ver":"2.0"}`
	// Entra leaves groups out of the token of a user who is in too many, and names a place to read them.
	entraOverage = `{"oid":"o1","sub":"s","tid":"9122040d","_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{"endpoint":"https://graph.example/x"}}}`
)

func TestMapping(t *testing.T) {
	ofKeycloak := identity.Expressions{
		Principal: "claims.preferred_username", Groups: `claims.groups.map(g, g.lowerAscii()) + claims.realm_access.roles`,
		Roles: identity.Roles{Admin: `"tools-admin" in claims.realm_access.roles`, User: `"user" in claims.?resource_access.?sallyport.?roles.orValue([])`},
	}
	ofEntra := identity.Expressions{
		Principal: `claims.tid + "/" + claims.oid`, Groups: "claims.?groups.orValue([]) + claims.?roles.orValue([])",
		Roles: identity.Roles{Operator: `"Tools.Operate" in groups`, Viewer: "true"},
	}
	for name, test := range map[string]struct {
		settings     identity.Expressions
		claims, want string
	}{
		"Keycloak":              {ofKeycloak, keycloak, "oauth:ann [/platform /platform/oncall offline_access tools-admin] admin"},
		"Entra ID":              {ofEntra, entra, "oauth:9122040d/00000000-0000-0000-66f3-3332eca7ea81 [8d5c2b4e-platform Tools.Operate] operator"},
		"too many groups":       {ofEntra, entraOverage, "oauth:9122040d/o1 [] viewer"},
		"groups must be there":  {identity.Expressions{Groups: "claims.groups"}, entraOverage, "identity.groups: there is no key groups"},
		"no settings":           {identity.Expressions{}, keycloak, "oauth:f:1:ann [] "},
		"no role":               {identity.Expressions{Roles: identity.Roles{User: `"x" in groups`}}, keycloak, identity.ErrNoRole.Error()},
		"no subject":            {identity.Expressions{}, `{}`, "identity.principal: there is no key sub"},
		"a token's name":        {identity.Expressions{Principal: "claims.sub"}, `{"sub":"token:ci"}`, "oauth:token:ci [] "},
		"an empty name":         {identity.Expressions{}, `{"sub":""}`, "identity.principal: the name is empty, too long, or has control characters"},
		"a name with controls":  {identity.Expressions{}, `{"sub":"a\u202eb"}`, "identity.principal: the name is empty, too long, or has control characters"},
		"a long name":           {identity.Expressions{}, `{"sub":"` + strings.Repeat("x", 201) + `"}`, "identity.principal: the name is empty, too long, or has control characters"},
		"a number":              {identity.Expressions{}, `{"sub":5}`, "identity.principal: the result is a value of type int, not string"},
		"one text for groups":   {identity.Expressions{Groups: "claims.groups"}, `{"sub":"a","groups":"ops"}`, "identity.groups: the result is a value of type string, not list of strings"},
		"a group with controls": {identity.Expressions{Groups: "claims.groups"}, `{"sub":"a","groups":["ops\n"]}`, "identity.groups: the name of a group is empty, too long, or has control characters"},
		"a condition that fails": {identity.Expressions{Roles: identity.Roles{Viewer: "true", Admin: "claims.admin"}}, `{"sub":"a"}`,
			"identity.roles.admin: there is no key admin"},
	} {
		m, err := identity.New(test.settings)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		claims, err := expr.Decode([]byte(test.claims))
		if err != nil {
			t.Fatal(err)
		}
		who, err := m.Of(t.Context(), claims.(map[string]any))
		got := fmt.Sprintf("%s %v %s", who.Principal, who.Groups, who.Role)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestProblems(t *testing.T) {
	all := identity.Check(identity.Expressions{Principal: "claim.sub", Groups: "claims.groups +", Roles: identity.Roles{User: "groups", Admin: `"a" in groups`}})
	var got []string
	for _, p := range all {
		got = append(got, strings.Join(p.Key, ".")+" "+p.At.Error())
	}
	want := []string{`principal 1:1: there is no claim; did you mean "claims"?`, "groups 1:16: unexpected the end", "roles.user 1:1: the value has type list of strings, not bool"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q\nwant %q", got, want)
	}
	if _, err := identity.New(identity.Expressions{Groups: "groups"}); err == nil || errors.Is(err, identity.ErrNoRole) {
		t.Error("groups may use groups")
	}
}
