package gateway

import "sallyport/internal/tool"

// withoutPrivate returns a text with names of kinds in place of personal data and secrets, whatever the settings of privacy say.
func (g *Gateway) withoutPrivate(text string) string {
	text = g.opts.secrets.For("").Text(text)
	return g.Privacy.Redact(text)
}

// definition returns the digest of a tool's definition, "" for one that is not known.
func (g *Gateway) definition(id tool.ID) string {
	if e, known := g.catalog.known(id); known {
		return e.digest()
	}
	return ""
}
