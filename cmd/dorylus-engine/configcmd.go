package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// configCommand shows the settings that a command line would train with.
func (a *app) configCommand() *cobra.Command {
	top := &cobra.Command{
		Use:   "config",
		Short: "Show the settings that training would use, and where each comes from",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	show := &cobra.Command{
		Use:   "print",
		Short: "Print every setting with its origin",
		Long: `Print takes the flags of training and prints every setting with its origin: default, run (of --resume),
file (--config or DORYLUS_CONFIG), env (DORYLUS_...) or flag; later ones win. The output is a config file.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.resolve(cmd)
			if err != nil {
				return err
			}
			if r.JSON && cmd.Flags().Changed("json") {
				enc := json.NewEncoder(a.out)
				enc.SetIndent("", "  ")
				if err := enc.Encode(map[string]any{"config": r.values(), "origin": r.origin}); err != nil {
					return err
				}
			} else if _, err := fmt.Fprint(a.out, r.text()); err != nil {
				return err
			}
			return usage(r.Validate())
		},
	}
	addSettings(show)
	top.AddCommand(show)
	return top
}

// text is the settings as a config file, origins in comments.
func (r *resolved) text() string {
	var b strings.Builder
	for _, s := range r.Settings() {
		value := s.Text()
		if s.Type() == "text" {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, "%-42s # %s\n", s.Name+": "+value, r.origin[s.Name])
	}
	return b.String()
}

// values is the settings by name.
func (r *resolved) values() map[string]any {
	m := map[string]any{}
	for _, s := range r.Settings() {
		switch p := s.Ptr.(type) {
		case *string:
			m[s.Name] = *p
		case *int:
			m[s.Name] = *p
		case *uint64:
			m[s.Name] = *p
		case *float64:
			m[s.Name] = *p
		case *bool:
			m[s.Name] = *p
		}
	}
	return m
}
