package compat

import (
	"context"
	"encoding/json"

	"sallyport/gateway/environments"
)

// The tools of mcp_code_executor about environments and packages.

func packagesArgument(args json.RawMessage) ([]string, object, error) {
	in := struct {
		Packages []string `json:"packages"`
	}{}
	if err := decode(args, &in, "packages"); err != nil {
		return nil, nil, err
	}
	if len(in.Packages) == 0 {
		return nil, object{"status": "error", "error": "No packages specified"}, nil
	}
	return in.Packages, nil, nil
}

func (c codeExecutor) kind(ctx context.Context) string {
	chosen, err := c.gateway.Chosen(ctx)
	if err != nil {
		return "venv"
	}
	return chosen.Kind
}

func (c codeExecutor) install(ctx context.Context, args json.RawMessage) (object, error) {
	names, no, err := packagesArgument(args)
	if err != nil || no != nil {
		return no, err
	}
	said, err := c.gateway.InstallPackages(ctx, environments.Packages{Names: names, Language: "python"})
	if err != nil {
		return with(wrong(err), "env_type", c.kind(ctx)), nil
	}
	return object{"status": "success", "env_type": c.kind(ctx), "installed_packages": names, "output": said}, nil
}

func (c codeExecutor) check(ctx context.Context, args json.RawMessage) (object, error) {
	names, no, err := packagesArgument(args)
	if err != nil || no != nil {
		return no, err
	}
	versions, err := c.gateway.FindPackages(ctx, environments.Packages{Names: names, Language: "python"})
	if err != nil {
		return with(wrong(err), "env_type", c.kind(ctx)), nil
	}
	details, missing := object{}, []string{}
	for _, name := range names {
		if version, ok := versions[name]; ok {
			details[name] = object{"installed": true, "version": version}
			continue
		}
		details[name] = object{"installed": false, "error": "Package not found"}
		missing = append(missing, name)
	}
	return object{"status": "success", "env_type": c.kind(ctx), "all_installed": len(missing) == 0, "not_installed": missing, "package_details": details}, nil
}

// current returns the configuration as that server writes it.
func (c codeExecutor) current(ctx context.Context) (object, error) {
	chosen, err := c.gateway.Chosen(ctx)
	if err != nil {
		return nil, err
	}
	name := chosen.Name
	if chosen.Base != "" {
		name = chosen.Base
	}
	key := map[string]string{"conda": "conda_name", "venv": "venv_path", "venv-uv": "uv_venv_path"}[chosen.Kind]
	return object{"type": chosen.Kind, key: name}, nil
}

func (c codeExecutor) config(ctx context.Context, args json.RawMessage) (object, error) {
	if err := decode(args, &struct{}{}); err != nil {
		return nil, err
	}
	now, err := c.current(ctx)
	if err != nil {
		return wrong(err), nil
	}
	return object{"status": "success", "config": now}, nil
}

func (c codeExecutor) configure(ctx context.Context, args json.RawMessage) (object, error) {
	in := struct {
		Type  string `json:"type"`
		Conda string `json:"conda_name"`
		Venv  string `json:"venv_path"`
		UV    string `json:"uv_venv_path"`
	}{}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	folder, key := "", ""
	switch in.Type {
	case "conda":
		folder, key = in.Conda, "conda_name"
	case "venv":
		folder, key = in.Venv, "venv_path"
	case "venv-uv":
		folder, key = in.UV, "uv_venv_path"
	default:
		return object{"status": "error", "error": "Invalid arguments: 'type' is required and must be one of 'conda', 'venv', or 'venv-uv'"}, nil
	}
	if folder == "" {
		return object{"status": "error", "error": key + " is required when type is '" + in.Type + "'"}, nil
	}
	before, err := c.current(ctx)
	if err == nil {
		_, err = c.gateway.ChooseEnvironment(ctx, environments.Choice{Folder: folder})
	}
	var now object
	if err == nil {
		now, err = c.current(ctx)
	}
	if err != nil {
		return wrong(err), nil
	}
	return object{"status": "success", "message": "Environment configuration updated", "previous": before, "current": now}, nil
}
