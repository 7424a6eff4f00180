package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose reads a compose file as engines do: it must meet the schema of the specification. It returns the project, with the
// variables of the file env and the values of this tool.
func compose(path string, variables []string) (*types.Project, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, v := range variables {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, errors.New("a variable is NAME=VALUE")
		}
		env[name] = value
	}
	details := types.ConfigDetails{WorkingDir: filepath.Dir(path), ConfigFiles: []types.ConfigFile{{Filename: path, Content: text}}, Environment: env}
	return loader.LoadWithContext(context.Background(), details, func(o *loader.Options) { o.SetProjectName("sallyport", true) })
}
