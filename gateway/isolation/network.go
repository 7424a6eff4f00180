package isolation

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/egress"
	"sallyport/sandbox/egress/edge"
)

// connect gives a sandbox the network of the allowed hosts, if there are any.
func (l *Launcher) connect(up config.Upstream, s *sandbox.Service, say func(line string)) error {
	rules, names, err := rulesOf(up.Isolate)
	if err != nil {
		return err
	}
	observe := l.opts.Profile != nil && egress.Available() == nil
	if len(rules) == 0 && !observe {
		return nil
	}
	opts := egress.Options{Rules: rules, Lookup: l.opts.Lookup, OnRefused: func(r egress.Refusal) {
		l.opts.Logger.Warn("upstream was refused a host", "upstream", up.ID, "host", sanitize.Line(r.Host, 100), "port", r.Port, "reason", r.Reason)
		say(describe(r))
		if l.opts.Profile != nil {
			l.opts.Profile.refused(r)
		}
	}}
	if len(names) > 0 {
		if opts.Authority, err = edge.NewAuthority(names); err != nil {
			return err
		}
	}
	s.ThirdParty.Network, s.ThirdParty.NameServer = egress.New(opts), egress.Gateway.String()
	addCertificates(s, opts.Authority)
	return nil
}

// rulesOf returns the rules for the hosts of the settings, and the names of those with a header.
func rulesOf(set *config.Isolation) (rules []egress.Rule, names []string, err error) {
	for _, of := range []struct {
		hosts   []config.IsolationHost
		private bool
	}{{set.Hosts, false}, {set.PrivateHosts, true}} {
		for _, host := range of.hosts {
			rule, err := egress.ParseRule(host.Name, of.private)
			if err != nil {
				return nil, nil, err
			}
			if rule.Header = host.Header; len(rule.Header) > 0 {
				names = append(names, rule.Name)
			}
			rules = append(rules, rule)
		}
	}
	return rules, names, nil
}

// describe returns the line of the log about a refusal, with what would allow it.
func describe(r egress.Refusal) string {
	place := sanitize.Line(r.Host, 100)
	if r.Port != 0 {
		place += ":" + strconv.Itoa(int(r.Port))
	}
	text := "sallyport: refused " + place + ": " + r.Reason
	switch {
	case r.Untrusted():
		return text + "; if it pins certificates, use env in place of header"
	case r.Allow == "":
		return text
	}
	key := "hosts"
	if r.Private {
		key = "private_hosts"
	}
	return fmt.Sprintf("%s; to allow it, add to isolate: %s: [%q]", text, key, strings.TrimSuffix(sanitize.Line(r.Allow, 100), ":443"))
}

// certificateFiles are the usual paths of a system's certificate authorities.
const certificateFiles = "/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/pki/tls/cacert.pem /etc/ssl/cert.pem"

// certificateVariables name a file of certificate authorities for programs that do not use those of the system: Node.js, Python's
// requests and pip, curl, git, the AWS tools.
var certificateVariables = []string{"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"}

// addCertificates gives the process the certificate authorities of this machine and that of its sandbox, if it has one. With the
// latter, or with some that the gateway was given by a variable, they are also for programs that have their own.
func addCertificates(s *sandbox.Service, own *edge.Authority) {
	data, given := systemCertificates()
	names := []string{"SSL_CERT_FILE"}
	if own != nil {
		data = append(append(data, '\n'), own.PEM()...)
	}
	if own != nil || given {
		names = append(names, certificateVariables...)
	}
	if len(data) == 0 {
		return
	}
	s.Files = map[string][]byte{"ca.pem": data}
	for _, name := range names {
		if _, set := s.ThirdParty.Env[name]; !set {
			s.ThirdParty.Env[name] = ownDir + "/ca.pem"
		}
	}
}

// systemCertificates returns the certificate authorities of this machine; given is whether a variable names them.
func systemCertificates() (data []byte, given bool) {
	named := os.Getenv("SSL_CERT_FILE")
	for _, path := range append([]string{named}, strings.Fields(certificateFiles)...) {
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
			return data, path == named
		}
	}
	return nil, false
}
