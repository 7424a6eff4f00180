package httpapi

import (
	"net/http"

	"sallyport/gateway/plugin"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Plugins lists the plugins of the gateway. *plugin.Plugins implements it.
type Plugins interface {
	List() []plugin.Plugin
}

// PluginList is what GET /plugins gives.
type PluginList struct {
	// Plugins are sorted by name.
	Plugins []PluginState `json:"plugins"`
}

// PluginState is the state of one plugin.
type PluginState struct {
	// Name is its name, Version that in its manifest.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Folder is where its files are.
	Folder string `json:"folder,omitempty"`
	// Description is that in its manifest.
	Description string `json:"description,omitempty"`
	// Status is ready, held until somebody approves it, or off; Reason says why it does not run.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Offers is what it offers, Asks what it asks for, in words.
	Offers []string `json:"offers,omitempty"`
	Asks   []string `json:"asks,omitempty"`
}

func (a *api) plugins(*http.Request) (PluginList, error) {
	out := PluginList{Plugins: []PluginState{}}
	if a.opts.Plugins == nil {
		return out, &tool.Error{Kind: tool.NotFound, Message: "this process runs no plugins", Hint: "sallyport serve does"}
	}
	for _, p := range a.opts.Plugins.List() {
		out.Plugins = append(out.Plugins, PluginState{
			Name: p.Name, Version: p.Version, Folder: p.Folder, Description: sanitize.Line(p.Description, 300), Status: p.Status, Reason: sanitize.Line(p.Reason, 600), Offers: p.Offers, Asks: p.Asks,
		})
	}
	return out, nil
}
