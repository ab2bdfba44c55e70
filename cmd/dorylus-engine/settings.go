package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"dorylus/engine"
)

// layer is one source of settings, by name. Later layers win.
type layer struct {
	values map[string]string
	origin func(name string) string // "file settings.yaml", "env DORYLUS_LR"
}

// resolved is the configuration of a command line with the origin of each value.
type resolved struct {
	engine.Config
	origin map[string]string
}

// notInherited are settings that a resumed run does not take from the run it goes
// on with: they belong to one command line.
var notInherited = []string{"out", "resume", "json", "dry-run", "progress"}

// resolve puts the settings together: defaults of the model, then those of a run
// to resume, then the config file, the environment, and flags.
func (a *app) resolve(cmd *cobra.Command) (*resolved, error) {
	flags, err := flagLayer(cmd.Flags())
	if err != nil {
		return nil, err
	}
	env, configFile, err := envLayer(a.env)
	if err != nil {
		return nil, err
	}
	if f := cmd.Flags().Lookup(configFlag); f.Changed {
		configFile = f.Value.String()
	}
	layers := []layer{env, flags}
	if configFile != "" {
		file, err := fileLayer(configFile)
		if err != nil {
			return nil, err
		}
		layers = []layer{file, env, flags}
	}
	if run := lookup(layers, "resume"); run != "" {
		old, err := runLayer(run)
		if err != nil {
			return nil, err
		}
		layers = append([]layer{old}, layers...)
	}
	return apply(layers)
}

// apply sets what layers say on top of the defaults of the model that they name.
func apply(layers []layer) (*resolved, error) {
	model := lookup(layers, "model")
	if model == "" {
		model = engine.DefaultConfig("").Model
	}
	r := &resolved{Config: engine.DefaultConfig(model), origin: map[string]string{}}
	var errs []error
	for _, s := range r.Settings() {
		r.origin[s.Name] = "default"
		for _, l := range layers {
			text, ok := l.values[s.Name]
			if !ok {
				continue
			}
			r.origin[s.Name] = l.origin(s.Name)
			if err := s.Set(text); err != nil {
				errs = append(errs, fmt.Errorf("%w (from %s)", err, r.origin[s.Name]))
			}
		}
	}
	if len(errs) > 0 {
		return nil, usage(errors.Join(errs...))
	}
	return r, nil
}

// lookup is the value that the last layer gives to a setting, "" if none does.
func lookup(layers []layer, name string) string {
	value := ""
	for _, l := range layers {
		if text, ok := l.values[name]; ok {
			value = text
		}
	}
	return value
}

// flagLayer has the flags that were given.
func flagLayer(set *pflag.FlagSet) (layer, error) {
	l := layer{map[string]string{}, func(string) string { return "flag" }}
	set.Visit(func(f *pflag.Flag) {
		if _, ok := f.Value.(settingValue); ok {
			l.values[f.Name] = f.Value.String()
		}
	})
	return l, nil
}

// envPrefix begins the environment variables that are settings.
const envPrefix = "DORYLUS_"

// otherEnv are variables with the prefix that are not settings of a run.
var otherEnv = []string{"ISA", "TILE_KIB", "PRICES", "CUDA_DRIVER", "CUBLAS", "CUBIN", "CUEMU", "TEST_GPU"}

func isOtherEnv(rest string) bool { return slices.Contains(otherEnv, rest) }

// envName is the variable of a setting.
func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// envLayer has the settings in the environment, and the config file named there.
// An empty variable counts as not set.
func envLayer(env []string) (l layer, configFile string, err error) {
	l = layer{map[string]string{}, func(name string) string { return "env " + envName(name) }}
	known := settingNames()
	var errs []error
	for _, kv := range env {
		key, value, _ := strings.Cut(kv, "=")
		rest, ok := strings.CutPrefix(key, envPrefix)
		if !ok || value == "" || isOtherEnv(rest) {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		switch {
		case name == configFlag:
			configFile = value
		case slices.Contains(known, name):
			l.values[name] = value
		default:
			hint := ""
			if near := nearest(name, known); near != "" {
				hint = fmt.Sprintf("; did you mean %s?", envName(near))
			}
			errs = append(errs, fmt.Errorf("environment variable %s: no such setting%s", key, hint))
		}
	}
	return l, configFile, usage(errors.Join(errs...))
}

// fileLayer reads a YAML file of "name: value" lines.
func fileLayer(path string) (layer, error) {
	l := layer{map[string]string{}, func(string) string { return "file " + path }}
	data, err := os.ReadFile(path)
	if err != nil {
		return l, usagef("config file %s: %w", path, bare(err))
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return l, usagef("config file %s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return l, nil // empty, or comments only
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return l, usagef("config file %s: line %d: write one \"flag: value\" per line", path, top.Line)
	}
	known := settingNames()
	var errs []error
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("config file %s: line %d: %s: %s", path, key.Line, key.Value, fmt.Sprintf(format, args...)))
		}
		_, twice := l.values[key.Value]
		near := nearest(key.Value, known)
		switch {
		case !slices.Contains(known, key.Value) && near != "":
			bad("no such setting; did you mean %s?", near)
		case !slices.Contains(known, key.Value):
			bad("no such setting; see dorylus-engine config print")
		case twice:
			bad("it is set twice")
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			bad("give it one value")
		default:
			l.values[key.Value] = value.Value
		}
	}
	return l, usage(errors.Join(errs...))
}

// runLayer has the settings of the run in folder dir.
func runLayer(dir string) (layer, error) {
	path := filepath.Join(dir, configFile)
	if _, err := os.Stat(path); err != nil {
		return layer{}, fmt.Errorf("resume %s: %s: %w; name a folder that --out made", dir, configFile, bare(err))
	}
	l, err := fileLayer(path)
	if err != nil {
		return l, fmt.Errorf("resume %s: %w", dir, err)
	}
	for _, name := range notInherited {
		delete(l.values, name)
	}
	l.origin = func(string) string { return "run " + dir }
	return l, nil
}

func settingNames() []string {
	names := make([]string, len(settingHelp))
	for i, h := range settingHelp {
		names[i] = h.name
	}
	return names
}

// bare is err without the path and operation that package os puts around it.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
