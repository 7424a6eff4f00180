package examplecmd

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"sallyport/examples"
	"sallyport/internal/models"
	"sallyport/internal/models/scripted"
)

// model is a scripted model that listens on this machine.
type model struct {
	server *http.Server
	url    string
}

// addModel lets the commands of an example find a model: the real one of the user's variables, or a scripted one.
func (s *stage) addModel(e examples.Example) (err error) {
	if e.Replies == nil {
		return nil
	}
	api, azure := models.OpenAI, strings.Contains(e.Name, "azure")
	if azure {
		api = models.Azure
	}
	if s.hasModel(azure) {
		s.real = true
		return nil
	}
	if s.model, err = newModel(api, e.Replies); err != nil {
		return err
	}
	s.Say("no key of a model is set: a scripted model on this machine takes its part")
	if azure {
		s.env = append(s.env, "LLM_PROVIDER=azure_openai", "AZURE_OPENAI_ENDPOINT="+s.model.url, "AZURE_OPENAI_API_KEY="+scripted.Key, "AZURE_OPENAI_DEPLOYMENT="+scripted.Name, "AZURE_OPENAI_API_VERSION="+models.DefaultAPIVersion)
	} else {
		s.env = append(s.env, "LLM_PROVIDER=openai", "OPENAI_BASE_URL="+s.model.url, "OPENAI_API_KEY="+scripted.Key, "LLM_MODEL="+scripted.Name)
	}
	return nil
}

// hasModel reports whether the variables of the user name a real model, and makes it the provider of the commands.
func (s *stage) hasModel(azure bool) bool {
	names, provider := []string{"OPENAI_API_KEY"}, "openai"
	if azure {
		names, provider = []string{"AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"}, "azure_openai"
	}
	for _, name := range names {
		if value, _ := s.Env(name); value == "" {
			return false
		}
	}
	s.env = append(s.env, "LLM_PROVIDER="+provider)
	return true
}

func newModel(api models.API, replies []string) (*model, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listen for the scripted model: %w", err)
	}
	server := &http.Server{Handler: &scripted.Model{API: api, Reply: replyWith(replies)}, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with close
	return &model{server, "http://" + listener.Addr().String()}, nil
}

func (m *model) close() { _ = m.server.Close() }

var output = regexp.MustCompile(`(?s)Output:\n<(data-\w+)>\n(.*)\n</(data-\w+)>`)

// replyWith returns the replies one after the other, with what the last program printed in place of $OUTPUT.
func replyWith(replies []string) func(scripted.Turn) string {
	next := scripted.Script(replies...)
	return func(t scripted.Turn) string {
		printed := ""
		if m := output.FindStringSubmatch(t.Last()); m != nil {
			printed = m[2]
		}
		return strings.ReplaceAll(next(t), "$OUTPUT", printed)
	}
}
