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
)

// connect gives a sandbox the network of the allowed hosts, if there are any.
func (l *Launcher) connect(up config.Upstream, s *sandbox.Service, say func(line string)) error {
	var rules []egress.Rule
	for _, of := range []struct {
		hosts   []string
		private bool
	}{{up.Isolate.Hosts, false}, {up.Isolate.PrivateHosts, true}} {
		for _, host := range of.hosts {
			rule, err := egress.ParseRule(host, of.private)
			if err != nil {
				return err
			}
			rules = append(rules, rule)
		}
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
	s.ThirdParty.Network, s.ThirdParty.NameServer = egress.New(opts), egress.Gateway.String()
	addCertificates(s)
	return nil
}

// describe returns the line of the log about a refusal, with what would allow it.
func describe(r egress.Refusal) string {
	place := sanitize.Line(r.Host, 100)
	if r.Port != 0 {
		place += ":" + strconv.Itoa(int(r.Port))
	}
	text := "sallyport: refused " + place + ": " + r.Reason
	if r.Allow == "" {
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

// addCertificates gives the process the certificate authorities of this machine. Those that the gateway was given by a variable are
// also for programs that have their own, such as Node.js.
func addCertificates(s *sandbox.Service) {
	given := os.Getenv("SSL_CERT_FILE")
	for _, path := range append([]string{given}, strings.Fields(certificateFiles)...) {
		data, err := os.ReadFile(path)
		if err != nil || len(data) == 0 {
			continue
		}
		at := ownDir + "/ca.pem"
		s.Files = map[string][]byte{"ca.pem": data}
		names := []string{"SSL_CERT_FILE"}
		if path == given {
			names = append(names, "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
		}
		for _, name := range names {
			if _, set := s.ThirdParty.Env[name]; !set {
				s.ThirdParty.Env[name] = at
			}
		}
		return
	}
}
